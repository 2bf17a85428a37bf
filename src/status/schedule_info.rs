//! What a status shows of a periodic child.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::string_enum::string_enum;

/// The schedule of a periodic child (feature `periodic`), and its runs since its supervisor was started.
///
/// The example of the module `periodic` reads one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScheduleInfo {
    /// When runs are due, such as `every 10s` or `30 4 * * * in Europe/Berlin`.
    pub plan: Arc<str>,
    /// The planned time of the next run. `None` if it depends on the end of a run, and if no run is planned any more.
    pub next: Option<SystemTime>,
    /// How many runs are running.
    pub running: usize,
    /// How many runs have ended.
    pub runs: u64,
    /// How many of them have failed.
    pub failed: u64,
    /// How many runs in a row have failed, up to the last one and since the child was started or restarted.
    pub failed_in_a_row: u64,
    /// How many planned runs were skipped, because the one before took too long or the child was down. Of the runs of a
    /// cron expression that are missed at once, a thousand are counted.
    pub skipped: u64,
    /// The run that has ended last.
    pub last: Option<LastRun>,
}

/// A run of a periodic child that has ended.
///
/// The example of the module `periodic` reads one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LastRun {
    /// The time for which it was planned.
    pub planned: SystemTime,
    /// When it began.
    pub began: SystemTime,
    /// How long it took.
    pub took: Duration,
    /// How it ended.
    pub outcome: RunOutcome,
    /// Why it failed, if it did.
    pub problem: Option<Arc<str>>,
}

/// How a run of a periodic child ended.
///
/// The example of the module `periodic` compares one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RunOutcome {
    /// It returned `()` or `Ok`.
    Done,
    /// It returned an error, panicked, or took longer than its limit. The child
    /// hasn't necessarily failed.
    Failed,
    /// The next run has replaced it.
    Replaced,
    /// It was aborted with its child.
    Aborted,
}

string_enum!(
    RunOutcome, "outcome of a run":
    Done = "done",
    Failed = "failed",
    Replaced = "replaced",
    Aborted = "aborted",
);
