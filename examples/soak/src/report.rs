//! The lines on standard output.

use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::memory::{Growth, Memory};
use crate::tally::Tally;

/// Prints a line and flushes it. A closed standard output is not an error.
macro_rules! say {
    ($($arg:tt)*) => {{
        use std::io::Write;
        let mut out = std::io::stdout().lock();
        writeln!(out, $($arg)*).and_then(|()| out.flush()).ok();
    }};
}

pub(crate) use say;

/// The result of a run, in addition to the counters.
#[derive(Debug)]
pub(crate) struct Report {
    /// How long the tree was broken and repaired.
    pub(crate) time: Duration,
    /// The smallest number of live children at rest.
    pub(crate) children: u64,
    pub(crate) memory: Memory,
}

/// Prints the result, the verdict last.
pub(crate) fn print(report: &Report, tally: &Tally) -> ExitCode {
    let of = |counter: &std::sync::atomic::AtomicU64| counter.load(Relaxed);
    say!(
        "checked: events={} missed={} audits={} calls={} grants={} refusals={} doubts={} planned_leaks={}",
        of(&tally.events),
        of(&tally.missed),
        of(&tally.audits),
        of(&tally.calls),
        of(&tally.grants),
        of(&tally.refusals),
        of(&tally.doubts),
        of(&tally.planned_leaks),
    );
    let samples = report.memory.samples();
    let mib = |kib: u64| kib as f64 / 1024.0;
    let (least, most) = (samples.iter().min().copied(), samples.iter().max().copied());
    let (least, most) = (mib(least.unwrap_or_default()), mib(most.unwrap_or_default()));
    let count = samples.len();
    match report.memory.growth() {
        None => say!("memory: samples={count} min={least:.1} max={most:.1} MiB, too few to judge"),
        Some(Growth { warm, end, limit }) => {
            let (warm, end, limit) = (mib(warm), mib(end), mib(limit));
            say!(
                "memory: samples={count} min={least:.1} max={most:.1} warm={warm:.1} end={end:.1} \
                 limit={limit:.1} MiB"
            );
            if end > limit {
                tally.violation(format!("memory grew from {warm:.1} to {end:.1} MiB"));
            }
        }
    }
    let (leaked, violations) = (of(&tally.leaked), tally.violations());
    say!(
        "soak: minutes={:.2} children={} starts={} restarts={} panics={} hangs={} aborts={} \
         leaked={leaked} violations={violations}",
        report.time.as_secs_f64() / 60.0,
        report.children,
        of(&tally.starts),
        of(&tally.restarts),
        of(&tally.panics),
        of(&tally.hangs),
        of(&tally.aborts),
    );
    if leaked == 0 && violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
