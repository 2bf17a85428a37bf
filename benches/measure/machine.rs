//! This machine, and the memory of this process. `peers` includes this file.

use std::process::Command;
use std::{fs, thread};

/// `2 cores of AMD EPYC`.
pub(crate) fn processor() -> String {
    let cores = thread::available_parallelism().map_or(0, usize::from);
    let model = field("/proc/cpuinfo", "model name");
    let model = if model.is_empty() { "unknown processor" } else { &model };
    format!("{cores} cores of {model}")
}

/// `rustc 1.95.0`.
pub(crate) fn rustc() -> String {
    let rustc = Command::new("rustc").arg("--version").output();
    let rustc = rustc.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    rustc.unwrap_or_default().split(" (").next().unwrap_or_default().to_owned()
}

/// The peak resident set of this process so far. Zero without `/proc`.
pub(crate) fn peak_bytes() -> u64 {
    kib("/proc/self/status", "VmHWM") * 1024
}

/// A field in kibibytes: `MemTotal:  24000000 kB`.
pub(crate) fn kib(file: &str, name: &str) -> u64 {
    field(file, name).trim_end_matches(" kB").parse().unwrap_or(0)
}

fn field(file: &str, name: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.trim_start_matches([' ', '\t', ':']).trim_end().to_owned()
}
