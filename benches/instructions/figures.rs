//! The figures that are checked in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const HEAD: &str = "\
# Instructions for one event, written by `cargo bench --bench instructions -- --write`.
# They were counted with these tools; with others, each may differ by some per cent:
";

/// Counts by scenario, and what they were counted with.
pub(crate) struct Figures {
    pub(crate) tools: String,
    pub(crate) counts: BTreeMap<String, u64>,
}

impl Figures {
    /// None yet, with the tools that are installed.
    pub(crate) fn new() -> Self {
        let [rustc, libc, valgrind] =
            [("rustc", "-V"), ("ldd", "--version"), ("valgrind", "--version")].map(first_line);
        let tools = format!("{rustc}; {}; {libc}; {valgrind}", env::consts::ARCH);
        Self { tools, counts: BTreeMap::new() }
    }

    pub(crate) fn read() -> Self {
        let text = fs::read_to_string(file()).unwrap_or_default();
        let tools = text.lines().filter_map(|line| line.strip_prefix("# ")).next_back();
        let count = |line: &str| {
            let (name, count) = line.split_once(" = ")?;
            Some((name.to_owned(), count.parse().ok()?))
        };
        Self {
            tools: tools.unwrap_or_default().to_owned(),
            counts: text.lines().filter_map(count).collect(),
        }
    }

    pub(crate) fn write(&self) {
        let lines = self.counts.iter().map(|(name, count)| format!("{name} = {count}\n"));
        let text = format!("{HEAD}# {}\n\n{}", self.tools, lines.collect::<String>());
        fs::write(file(), text).expect("the sources are writable");
    }
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/instructions/figures.txt")
}

fn first_line((tool, argument): (&str, &str)) -> String {
    let output = Command::new(tool).arg(argument).output();
    let output = output.map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output).lines().next().unwrap_or_default().to_owned()
}
