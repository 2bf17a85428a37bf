//! The first program, `examples/hello.rs`, beside one with tokio alone: its crates and its build.
//!
//! The example's log is left out on both sides. Both programs have the same features of tokio and are
//! built for release from nothing, with all their dependencies.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::measure::Side;

const TOKIO: &str = "\
use std::time::Duration;

async fn ticker() {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::main]
async fn main() {
    let ticker = tokio::spawn(ticker());
    tokio::signal::ctrl_c().await.expect(\"a signal\");
    ticker.abort();
}
";

/// The crates that the program is built from, build dependencies and macros included.
pub(crate) fn crates(side: Side, _n: u64) -> f64 {
    let folder = package(side);
    let tree = cargo(&folder, &["tree", "--edges", "normal,build", "--prefix", "none"]);
    let crates = tree.lines().map(|line| line.trim_end_matches(" (*)"));
    // All but the program itself.
    (crates.collect::<BTreeSet<_>>().len() - 1) as f64
}

/// Nanoseconds of CPU time of a build from nothing.
pub(crate) fn build(side: Side, _n: u64) -> f64 {
    let folder = package(side);
    cargo(&folder, &["fetch"]);
    cargo(&folder, &["clean"]);
    let before = cpu_nanos();
    cargo(&folder, &["build", "--release"]);
    let took = cpu_nanos() - before;
    assert!(took > 0.0, "`/proc/self/stat` has the CPU time of child processes");
    took
}

/// Creates a package in the target directory, with the versions of this workspace's lockfile.
fn package(side: Side) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("hello-{}", side.name()));
    let (source, verger) = match side {
        Side::Tokio => (TOKIO.to_owned(), String::new()),
        Side::Verger => {
            let lines = include_str!("../../examples/hello.rs").lines();
            let lines = lines.filter(|line| !line.contains("tracing"));
            (
                lines.map(|line| format!("{line}\n")).collect(),
                format!("verger = {{ path = {root:?} }}\n"),
            )
        }
    };
    let manifest = format!(
        "[package]\nname = \"hello\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\n{verger}tokio = {{ version = \"1\", \
         features = [\"macros\", \"rt-multi-thread\", \"signal\", \"time\"] }}\n",
    );
    fs::create_dir_all(folder.join("src")).expect("the target directory is writable");
    fs::write(folder.join("src/main.rs"), source).expect("the folder exists");
    fs::write(folder.join("Cargo.toml"), manifest).expect("the folder exists");
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).expect("the workspace has one");
    folder
}

fn cargo(folder: &Path, arguments: &[&str]) -> String {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(arguments).current_dir(folder).env("CARGO_INCREMENTAL", "0");
    let output = cargo.env("CARGO_TARGET_DIR", folder.join("target")).output();
    let output = output.expect("cargo is installed");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo {}:\n{errors}", arguments.join(" "));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The CPU time of all child processes that have ended. Linux counts it in hundredths of a second.
fn cpu_nanos() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The program's name ends with `)` and is field 2; `cutime` and `cstime` are fields 16 and 17.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks = fields.skip(13).take(2).filter_map(|ticks| ticks.parse::<f64>().ok());
    ticks.sum::<f64>() * 1e7
}
