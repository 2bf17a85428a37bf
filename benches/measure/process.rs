//! One measurement in a process of its own: nobody else's memory, caches of the allocator or
//! threads are in the figure.
//!
//! The process is this program once more, as `--measure ROW WHO N`. It prints its figures.

use std::process::{self, Command, Stdio};
use std::time::Duration;
use std::{env, thread};

use super::row::{Row, Side, Who, Work};

const MEASURE: &str = "--measure";
/// Instead of who does the work.
const BOTH: &str = "both";

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
    let n = n.parse().ok()?;
    let sides = match row.work {
        Work::OneSide(run) => {
            let who = if who == Who::Raw.name() { Who::Raw } else { Who::Verger };
            vec![run(Side { who, n })]
        }
        Work::BothSides(run) => run([Side::raw(n), Side::verger(n)]).to_vec(),
    };
    for figures in &sides {
        assert_eq!(figures.len(), row.parts.len(), "a figure for each part of `{}`", row.name);
    }
    let figures: Vec<_> = sides.concat().iter().map(f64::to_string).collect();
    Some(figures.join(" "))
}

/// The figures of one side of a row, a figure for each part.
///
/// # Errors
///
/// What the process said on its way down.
pub(crate) fn measure(row: &Row, side: Side) -> Result<Vec<f64>, String> {
    ask(row, side.who.name(), side.n, row.parts.len())
}

/// The same for both sides of a row whose work is that of both.
///
/// # Errors
///
/// As for one.
pub(crate) fn measure_both(row: &Row) -> Result<(Vec<f64>, Vec<f64>), String> {
    let mut base = ask(row, BOTH, row.ours.n, 2 * row.parts.len())?;
    let ours = base.split_off(row.parts.len());
    Ok((base, ours))
}

fn ask(row: &Row, who: &str, n: u64, wanted: usize) -> Result<Vec<f64>, String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(program)
        .args([MEASURE, row.name, who, &n.to_string()])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    let told = String::from_utf8_lossy(&output.stdout);
    let figures: Vec<f64> = told.split_whitespace().flat_map(str::parse).collect();
    if output.status.success() && figures.len() == wanted {
        return Ok(figures);
    }
    let error = String::from_utf8_lossy(&output.stderr);
    let (row, status) = (row.name, output.status);
    Err(format!("`{row}` by {who} at {n} ended with {status}: {}", error.trim()))
}
