//! The lines on standard output.

use std::process::ExitCode;

use crate::audit::{Findings, Report};
use crate::kills;
use crate::service::Outcome;

/// Prints a line and flushes it. A closed standard output is not an error.
macro_rules! say {
    ($($arg:tt)*) => {{
        use std::io::Write;
        let mut out = std::io::stdout().lock();
        writeln!(out, $($arg)*).and_then(|()| out.flush()).ok();
    }};
}

/// Prints an error. Nothing happens if stderr can't be written.
macro_rules! complain {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

pub(crate) use {complain, say};

/// Prints how the run ended, the verdict last.
pub(crate) fn print(outcome: &Outcome) -> ExitCode {
    let Outcome { gave_up, tree, struck, report, restarts, dead_letters } = outcome;
    if let Some(error) = gave_up {
        complain!("feed: {error}");
    }
    say!("");
    if let Some(struck) = struck {
        let (panics, errors) = (struck.panics, struck.errors);
        let (hangs, aborts) = (struck.hangs, struck.aborts);
        say!("chaos: panics={panics} errors={errors} hangs={hangs} aborts={aborts}");
    }
    print_audit(report);
    say!("\n{}\n", tree.trim_end());
    let Ok(report) = report else { return ExitCode::FAILURE };
    let Findings { lines, stored, lost, duplicated } = report.total();
    say!(
        "lines={lines} stored={stored} lost={lost} duplicated={duplicated} restarts={restarts} \
         dead_letters={dead_letters}"
    );
    if lost == 0 && duplicated == 0 && gave_up.is_none() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Prints how a run with kills ended, the verdict last.
pub(crate) fn print_kills(outcome: &kills::Outcome) -> ExitCode {
    let kills::Outcome { kills, problem, report } = outcome;
    if let Some(problem) = problem {
        complain!("feed: {problem}");
    }
    print_audit(report);
    let Ok(report) = report else { return ExitCode::FAILURE };
    let Findings { lines, stored, lost, duplicated } = report.total();
    say!("kills={kills} lines={lines} stored={stored} lost={lost} duplicated={duplicated}");
    if lost == 0 && duplicated == 0 && problem.is_none() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Prints what the audit found of each kind of source, or why there was no audit.
fn print_audit(report: &Result<Report, String>) {
    match report {
        Ok(report) => {
            let of = |found: Findings| format!("{} of {}", found.stored, found.lines);
            let (file, clients) = (of(report.file), of(report.clients));
            let (others, unknown) = (of(report.external), report.unknown);
            say!("audit: file {file}, clients {clients}, others {others}, earlier {unknown}");
        }
        Err(error) => complain!("feed: the audit failed: {error}"),
    }
}
