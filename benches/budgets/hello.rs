//! What the first program costs to compile: `examples/hello.rs`, beside one that has tokio alone.
//!
//! The example's log is left out, because whoever writes a log chooses one, with verger or without.
//! Both programs have the same features of tokio, those that the example needs. They are built for
//! release, and everything they depend on with them: that is where a crate costs most, since all of
//! it is optimised, and what is built wherever a program is shipped from.

use std::fs;

use crate::measure::{Budget, Package, Part, Row, Side, Unit, Who};

pub(crate) const ROWS: &[Row] = &[
    Row::new("hello-crates", |side| crates(side.who))
        .what("the crates that the first example is built from, besides itself")
        .alone(Side::verger(1))
        .parts(&[Part::new("", Unit::Count, Budget::AtMost(42.0))])
        .rounds(1),
    Row::new("hello-build", |side| build(side.who))
        .what("build the first example and all it needs, processor time")
        .beside_raw(1)
        .parts(&[Part::new("", Unit::Nanos, Budget::AtMost(2.3))])
        .rounds(3),
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

fn program(who: Who) -> Package {
    let (source, dependency) = match who {
        Who::Raw => (RAW.to_owned(), String::new()),
        Who::Verger => {
            (hello(), format!("verger = {{ path = {:?} }}\n", env!("CARGO_MANIFEST_DIR")))
        }
    };
    let manifest = format!(
        "[dependencies]\n{dependency}\
         tokio = {{ version = \"1\", features = [\"macros\", \"rt-multi-thread\", \"signal\", \"time\"] }}\n",
    );
    let package = Package::create(&name(who), &manifest);
    package.write("src/main.rs", &source);
    // Nothing is left to download.
    package.cargo(&["fetch"]);
    package
}

fn name(who: Who) -> String {
    format!("budgets-{}", who.name())
}

/// By name and version, with those that only the build needs, such as macros.
fn crates(who: Who) -> Vec<f64> {
    let tree = ["tree", "--edges", "normal,build", "--prefix", "none", "--no-dedupe"];
    let tree = String::from_utf8_lossy(&program(who).cargo(&tree).stdout).into_owned();
    let itself = format!("{} v0.0.0", name(who));
    let mut crates: Vec<_> = tree.lines().map(name_and_version).collect();
    crates.retain(|it| !it.is_empty() && *it != itself);
    crates.sort_unstable();
    crates.dedup();
    vec![crates.len() as f64]
}

/// From nothing. Processor time, since the clock would tell how many cores there are.
fn build(who: Who) -> Vec<f64> {
    let program = program(who);
    if program.target().exists() {
        fs::remove_dir_all(program.target()).expect("what is ours can be removed");
    }
    let (_, [_, worked]) = program.time(&["build", "--release"]);
    assert!(!worked.is_zero(), "/proc/self/stat tells processor time");
    vec![worked.as_secs_f64() * 1e9]
}

/// The example without its log.
fn hello() -> String {
    let lines = include_str!("../../examples/hello.rs").lines();
    lines.filter(|line| !line.contains("tracing")).map(|line| format!("{line}\n")).collect()
}

fn name_and_version(line: &str) -> String {
    line.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}
