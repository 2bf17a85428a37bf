//! Where it was measured.

use std::process::Command;
use std::{fs, thread};

use super::columns::ask;

/// The machine, in words.
pub fn here() -> String {
    let cores = thread::available_parallelism().map_or(0, usize::from);
    let processor = of("/proc/cpuinfo", "model name").unwrap_or_else(|| "some processor".into());
    let memory = of("/proc/meminfo", "MemTotal")
        .and_then(|memory| memory.split_whitespace().next()?.parse::<u64>().ok())
        .map_or(String::new(), |kib| format!(", {:.0} GiB", kib as f64 / 1024.0 / 1024.0));
    let rustc = ask(Command::new("rustc").arg("--version")).unwrap_or_else(|_| "some rustc".into());
    let rustc: Vec<_> = rustc.split_whitespace().take(2).collect();
    format!("{cores} cores of {processor}{memory}, Linux; {}, release, thin LTO", rustc.join(" "))
}

/// What is said of something in a file of `/proc`.
fn of(file: &str, what: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(what))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
