//! One measurement in a process of its own: nobody else's memory, caches of the allocator or
//! threads are in the figure.
//!
//! The process is this program once more, as `--measure ROW WHO N`. It prints its figures.

use std::process::{self, Command, Stdio};
use std::time::Duration;
use std::{env, thread};

use super::row::{Row, Side, Who};

const MEASURE: &str = "--measure";

/// What takes longer hangs.
const LIMIT: Duration = Duration::from_secs(600);

/// Measures and prints, if that is what this process was started for.
pub(crate) fn answer<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Option<String> {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let [measure, row, who, n] = &arguments[..] else { return None };
    if measure != MEASURE {
        return None;
    }
    let row = rows.into_iter().find(|it| it.name == row)?;
    thread::spawn(|| {
        thread::sleep(LIMIT);
        eprintln!("not over after {LIMIT:?}");
        process::exit(1);
    });
    let who = if who == Who::Raw.name() { Who::Raw } else { Who::Verger };
    let figures = (row.run)(Side { who, n: n.parse().ok()? });
    assert_eq!(figures.len(), row.parts.len(), "a figure for each part of `{}`", row.name);
    let figures: Vec<_> = figures.iter().map(f64::to_string).collect();
    Some(figures.join(" "))
}

/// The figures of one side of a row, a figure for each part.
///
/// # Errors
///
/// What the process said on its way down.
pub(crate) fn measure(row: &Row, side: Side) -> Result<Vec<f64>, String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(program)
        .args([MEASURE, row.name, side.who.name(), &side.n.to_string()])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    let told = String::from_utf8_lossy(&output.stdout);
    let figures: Vec<f64> = told.split_whitespace().flat_map(str::parse).collect();
    if output.status.success() && figures.len() == row.parts.len() {
        return Ok(figures);
    }
    let error = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "`{}` by {} at {} ended with {}: {}",
        row.name,
        side.who.name(),
        side.n,
        output.status,
        error.trim()
    ))
}
