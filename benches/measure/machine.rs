//! Where it was measured, and with what.

use std::process::Command;
use std::{fmt, fs, thread};

use serde_json::{Value, json};

#[derive(Clone, Debug)]
pub(crate) struct Machine {
    cores: usize,
    processor: String,
    rustc: String,
    tokio: String,
    verger: &'static str,
}

impl Machine {
    pub(crate) fn here() -> Self {
        Self {
            cores: thread::available_parallelism().map_or(0, usize::from),
            processor: processor().unwrap_or_else(|| "an unknown processor".to_owned()),
            rustc: rustc().unwrap_or_else(|| "an unknown rustc".to_owned()),
            tokio: locked("tokio").unwrap_or_else(|| "of an unknown version".to_owned()),
            verger: env!("CARGO_PKG_VERSION"),
        }
    }

    pub(crate) fn json(&self) -> Value {
        let Self { cores, processor, rustc, tokio, verger } = self;
        json!({
            "cores": cores, "processor": processor, "rustc": rustc, "tokio": tokio,
            "verger": verger,
        })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cores, processor, rustc, tokio, verger } = self;
        write!(f, "{cores} cores of {processor}, {rustc}, tokio {tokio}, verger {verger}")
    }
}

fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The compiler that is called here, which need not be the one that built this.
fn rustc() -> Option<String> {
    let output = Command::new("rustc").arg("--version").output().ok()?;
    Some(
        String::from_utf8(output.stdout)
            .ok()?
            .split_whitespace()
            .take(2)
            .collect::<Vec<_>>()
            .join(" "),
    )
}

/// The version in the lockfile that this was built with.
fn locked(package: &str) -> Option<String> {
    let lock = include_str!("../../Cargo.lock");
    let rest = lock.split_once(&format!("name = \"{package}\"\nversion = \""))?.1;
    Some(rest.split_once('"')?.0.to_owned())
}
