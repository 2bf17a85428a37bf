//! One measurement in a process of its own.

use std::process::{self, Command, Stdio};
use std::time::Duration;
use std::{env, thread};

use super::machine::{processor, rustc};

const MEASURE: &str = "--measure";
/// A measurement that takes longer is reported as failed.
const LIMIT: Duration = Duration::from_secs(600);

/// The implementation that does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Hand-written tokio.
    Tokio,
    Verger,
}

impl Side {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tokio => "tokio",
            Self::Verger => "verger",
        }
    }
}

/// Measures and prints the figures, if this process was started by [`measure`].
pub(crate) fn answer(work: impl FnOnce(&str, Side, u64) -> Vec<f64>) -> bool {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let [flag, row, side, n] = &arguments[..] else { return false };
    if flag != MEASURE {
        return false;
    }
    thread::spawn(|| {
        thread::sleep(LIMIT);
        eprintln!("no result after {LIMIT:?}");
        process::exit(1);
    });
    let side = if side == Side::Tokio.name() { Side::Tokio } else { Side::Verger };
    let figures = work(row, side, n.parse().expect("`measure` passes a number"));
    println!("{}", figures.iter().map(f64::to_string).collect::<Vec<_>>().join(" "));
    true
}

/// Runs this program once more to measure one side of a row.
///
/// # Errors
///
/// What the process printed before it failed.
pub(crate) fn measure(row: &str, side: Side, n: u64) -> Result<Vec<f64>, String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args([MEASURE, row, side.name(), &n.to_string()]).stdin(Stdio::null());
    let output = command.output().map_err(|error| error.to_string())?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let figures: Vec<f64> = printed.split_whitespace().flat_map(str::parse).collect();
    if output.status.success() && !figures.is_empty() {
        return Ok(figures);
    }
    let error = String::from_utf8_lossy(&output.stderr);
    Err(format!("{} with n = {n}: {}: {}", side.name(), output.status, error.trim()))
}

/// The machine and the versions, for the line below a table.
pub(crate) fn machine() -> String {
    let lockfile = include_str!("../../Cargo.lock");
    let tokio = lockfile.split_once("name = \"tokio\"\nversion = \"").map_or("", |(_, rest)| rest);
    let tokio = tokio.split('"').next().unwrap_or_default();
    let verger = env!("CARGO_PKG_VERSION");
    format!("{}, {}, tokio {tokio}, verger {verger}", processor(), rustc())
}
