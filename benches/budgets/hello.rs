//! What the first program costs to compile: `examples/hello.rs`, beside one that has tokio alone.
//!
//! The example's log is left out, because whoever writes a log chooses one, with verger or without.
//! Both programs have the same features of tokio, those that the example needs. They are built for
//! release, and everything they depend on with them: that is where a crate costs most, since all of
//! it is optimised, and what is built wherever a program is shipped from.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

use crate::measure::{Budget, Part, Row, Side, Unit, Who, worked_by_children};

pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "hello-crates",
        what: "the crates that the first example is built from, besides itself",
        base: None,
        ours: Side::verger(1),
        parts: &[Part::new("", Unit::Count, Budget::AtMost(42.0))],
        rounds: 1,
        run: |side| Project::create(side.who).crates(),
    },
    Row {
        name: "hello-build",
        what: "build the first example and all it needs, processor time",
        base: Some(Side::raw(1)),
        ours: Side::verger(1),
        parts: &[Part::new("", Unit::Nanos, Budget::AtMost(2.3))],
        rounds: 3,
        run: |side| Project::create(side.who).build(),
    },
];

/// What the example does, less the restarts.
const RAW: &str = "\
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

/// A throwaway package.
struct Project {
    root: PathBuf,
}

impl Project {
    fn create(who: Who) -> Self {
        let verger = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("budgets").join(who.name());
        fs::create_dir_all(root.join("src")).expect("the target directory is writable");
        let (program, dependency) = match who {
            Who::Raw => (RAW.to_owned(), String::new()),
            Who::Verger => (hello(), format!("verger = {{ path = {verger:?} }}\n")),
        };
        let manifest = format!(
            "[package]\nname = \"hello\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
             [dependencies]\n{dependency}\
             tokio = {{ version = \"1\", features = [\"macros\", \"rt-multi-thread\", \"signal\", \"time\"] }}\n\n\
             # Not a member of the workspace around it.\n[workspace]\n",
        );
        write(&root.join("Cargo.toml"), &manifest);
        write(&root.join("src/main.rs"), &program);
        // The versions that are there already.
        let lock = fs::read_to_string(verger.join("Cargo.lock")).unwrap_or_default();
        write(&root.join("Cargo.lock"), &lock);
        let project = Self { root };
        // Nothing is left to download.
        project.cargo(&["fetch"]);
        project
    }

    fn cargo(&self, arguments: &[&str]) -> String {
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(arguments).current_dir(&self.root).env("CARGO_TARGET_DIR", self.target());
        let Output { status, stdout, stderr } = cargo.output().expect("it can be started");
        let told = String::from_utf8_lossy(&stderr);
        assert!(status.success(), "{cargo:?} failed:\n{told}");
        String::from_utf8_lossy(&stdout).into_owned()
    }

    fn target(&self) -> PathBuf {
        self.root.join("target")
    }

    /// By name and version, with those that only the build needs, such as macros.
    fn crates(&self) -> Vec<f64> {
        let tree =
            self.cargo(&["tree", "--edges", "normal,build", "--prefix", "none", "--no-dedupe"]);
        let mut crates: Vec<_> = tree.lines().map(name_and_version).collect();
        crates.retain(|it| !it.is_empty() && it != "hello v0.0.0");
        crates.sort_unstable();
        crates.dedup();
        vec![crates.len() as f64]
    }

    /// From nothing. Processor time, since the clock would tell how many cores there are.
    fn build(&self) -> Vec<f64> {
        if self.target().exists() {
            fs::remove_dir_all(self.target()).expect("what is ours can be removed");
        }
        let before = worked_by_children().expect("/proc/self/stat tells processor time");
        self.cargo(&["build", "--release"]);
        vec![worked_by_children().expect("it did before") - before]
    }
}

/// The example without its log.
fn hello() -> String {
    let lines = include_str!("../../examples/hello.rs").lines();
    lines.filter(|line| !line.contains("tracing")).map(|line| format!("{line}\n")).collect()
}

fn name_and_version(line: &str) -> String {
    line.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
