//! What it costs to build a first program, and how large it is: by hand on tokio, and with verger.
//!
//! Each build begins with nothing built. The programs do the same: `by_hand.rs` what
//! `examples/hello.rs` does, as far as one would write it by hand. Without a log they print.

#![expect(clippy::print_stdout, reason = "the table is what it is run for")]

#[path = "../measure/package.rs"]
mod package;

use std::collections::BTreeSet;
use std::time::Duration;
use std::{env, fs};

use self::package::{Package, machine, processor_time, spread};

const ROUNDS: usize = 3;

/// The packages that verger is built on whatever it is written like: its runtime, its log, its
/// registry, the trait that children implement, and its configuration.
const PACKAGES: [&str; 6] =
    ["async-trait", "dashmap", "humantime-serde", "serde", "tokio", "tracing"];

const BY_HAND: &str = include_str!("by_hand.rs");
const HELLO: &str = include_str!("../../examples/hello.rs");

/// As a user would ask for it.
const TOKIO: &str = r#"{ version = "1", features = ["macros", "rt-multi-thread", "time"] }"#;
const LOG: &str = "tracing = \"0.1\"\ntracing-subscriber = \"0.3\"\n";

fn main() {
    if !env::args().any(|arg| arg == "--bench") {
        println!("nothing to test; `cargo bench --bench hello` measures");
        return;
    }
    let programs = programs();
    println!("{}, {ROUNDS} rounds, seconds and ratios as min–median–max\n", machine());
    println!("{:<24} {:>7} {:>14} {:>8}", "", "crates", "stripped bytes", "ratio");
    for program in &programs {
        // Fetches as well, so that the network is in no time.
        program.package.cargo(&["build", "--release"]);
        let (size, base) = (program.size(), programs[program.base].size());
        let ratio = size as f64 / base as f64;
        println!("{:<24} {:>7} {size:>14} {ratio:>8.2}", program.name, program.crates());
    }
    for profile in ["debug", "release"] {
        println!("\n{:<24} {:>20} {:>20}   ratio of the second", profile, "clock", "processors");
        let times = rounds(&programs, profile);
        for (program, took) in programs.iter().zip(&times) {
            let [clock, processors] = [0, 1].map(|which| took.iter().map(move |it| it[which]));
            let base = times[program.base].iter().map(|it| it[1]);
            let ratios = processors.clone().zip(base).map(|(took, base)| took / base);
            let [clock, processors] = [spread(clock), spread(processors)];
            println!("{:<24} {clock:>20} {processors:>20}   {}", program.name, spread(ratios));
        }
    }
    if processor_time().is_zero() {
        println!("\nNobody tells what the processors did on this system.");
    }
}

struct Program {
    name: &'static str,
    package: Package,
    /// What it is compared with, by index.
    base: usize,
}

impl Program {
    fn create(name: &'static str, base: usize, dependencies: &str, source: &str) -> Self {
        let strip = "[profile.release]\nstrip = true\n";
        let manifest = format!("[dependencies]\n{dependencies}\n{strip}");
        let package = Package::create(&format!("hello-{name}"), &manifest);
        package.write("src/main.rs", source);
        Self { name, package, base }
    }

    /// What is compiled for it, besides itself.
    fn crates(&self) -> usize {
        let tree = self.package.cargo(&["tree", "--edges=normal,build", "--prefix=none"]).stdout;
        let tree = String::from_utf8_lossy(&tree);
        let crates = tree.lines().map(|line| line.trim_end_matches(" (*)"));
        crates.collect::<BTreeSet<_>>().len() - 1
    }

    fn size(&self) -> u64 {
        let file = self.package.target().join(format!("release/hello-{}", self.name));
        fs::metadata(file).expect("it was built").len()
    }
}

fn programs() -> [Program; 6] {
    let verger = |options: &str| {
        let path = env!("CARGO_MANIFEST_DIR");
        format!("tokio = {TOKIO}\nverger = {{ path = {path:?}{options} }}\n")
    };
    let tokio = TOKIO.replace(']', ", \"signal\"]");
    let by_hand = format!("tokio = {tokio}\n");
    let bare = replaced(HELLO, ".with_graceful_shutdown(signals())", ".run()");
    let bare = replaced(&bare, "signals, ", "");
    [
        Program::create("tokio", 0, &by_hand, &printing(BY_HAND)),
        Program::create("verger", 0, &verger(""), &printing(HELLO)),
        Program::create(
            "verger-without-features",
            0,
            &verger(", default-features = false"),
            &printing(&bare),
        ),
        Program::create("packages-alone", 0, &packages(), &printing(BY_HAND)),
        Program::create("tokio-with-log", 4, &(by_hand + LOG), BY_HAND),
        Program::create("verger-with-log", 4, &(verger("") + LOG), HELLO),
    ]
}

/// What verger takes of its packages, with the program's features of tokio, but not verger.
fn packages() -> String {
    let manifest = include_str!("../../Cargo.toml");
    let (_, dependencies) = manifest.split_once("\n[dependencies]\n").expect("it has some");
    let (dependencies, _) = dependencies.split_once("\n\n").unwrap_or((dependencies, ""));
    let package = |name: &&str| {
        let line = dependencies.lines().find(|line| line.split(' ').next() == Some(name));
        let line = line.unwrap_or_else(|| panic!("verger doesn't depend on {name}"));
        match *name {
            "tokio" => replaced(line, "[", "[\"rt-multi-thread\", \"signal\", "),
            _ => line.to_owned(),
        }
    };
    PACKAGES.iter().map(package).collect::<Vec<_>>().join("\n") + "\n"
}

/// The same program without a log.
fn printing(source: &str) -> String {
    let source = replaced(source, "    tracing_subscriber::fmt().init();\n", "");
    replaced(&source, "tracing::info!", "println!").replace("tracing::warn!", "println!")
}

fn replaced(source: &str, from: &str, to: &str) -> String {
    assert!(source.contains(from), "the program has no longer `{from}`");
    source.replace(from, to)
}

/// Seconds by the clock and of the processors, by program and round.
fn rounds(programs: &[Program], profile: &str) -> Vec<Vec<[f64; 2]>> {
    let mut times = vec![Vec::new(); programs.len()];
    for _ in 0..ROUNDS {
        for (program, times) in programs.iter().zip(&mut times) {
            program.package.cargo(&["clean"]);
            let args: &[&str] =
                if profile == "release" { &["build", "--release"] } else { &["build"] };
            let (_, took) = program.package.time(args);
            times.push(took.map(|took| Duration::as_secs_f64(&took)));
        }
    }
    times
}
