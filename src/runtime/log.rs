//! One log line for each decision. Values that can contain spaces are quoted.
//!
//! Of the lines above `DEBUG`, `log_bounds` bounds those that a child can repeat without end.
//!
//! | target | what |
//! | --- | --- |
//! | `verger::lifecycle` | a child is up, ends its supervisor, or was changed by a call (`info`), is unhealthy, or is waited for at a start, or the runtime was late (`warn`), every other edge (`debug`) |
//! | `verger::restart` | a child will be restarted (`warn`), its supervisor gave up, or fails with it (`error`) |
//! | `verger::dead_letter` | a message was not delivered (`warn`), or its loss was intended (`debug`) |
//! | `verger::shutdown` | a supervisor stops (`info`), a child was killed, or is waited for (`warn`), or has leaked (`error`) |

use std::time::{Duration, Instant};

use tracing::{Level, field};

use crate::core::{Decision, Ending, ExceededLimit, Report, WaitReason};
use crate::exit::ExitReason;
use crate::human_duration::rounded;
use crate::lifecycle::Lifecycle;
use crate::path::Path;
use crate::policy::{AbortKind, FailureLog, LetterLine, LogLevel, OnExhausted};
use crate::runtime::log_bounds::{LineKind, LogBounds};
use crate::runtime::request::CallNote;
use crate::subscriber::{admits, as_tracing, debug, error, event, info, warn};

/// Logs a line that is one of a bounded number. The others have the level `DEBUG`.
macro_rules! bounded {
    (
        ($bounds:expr, $path:expr, $kind:ident), $level:ident, target: $target:literal, $message:literal,
        $($fields:tt)*
    ) => {
        if admits(Level::$level) {
            match $bounds.count($path, LineKind::$kind).map(LetterLine::note) {
                Some(note) => {
                    event!(target: $target, Level::$level, $($fields)*, "{}{note}", $message);
                }
                None => debug!(target: $target, $($fields)*, $message),
            }
        }
    };
}

/// What is known of an edge beside the report.
pub(super) struct EdgeFacts<'a> {
    /// A call has started the child.
    pub(super) by_call: bool,
    pub(super) killed: Option<AbortKind>,
    /// The cause, if the edge is the end of an incarnation.
    pub(super) cause: Option<&'a ExitReason>,
    /// The sibling that has failed, or that a call has restarted, and with which this child was restarted.
    pub(super) restarted_with: Option<&'a Path>,
}

/// An edge of a child's lifecycle.
pub(super) fn report(
    bounds: &LogBounds,
    report: &Report,
    child: &Path,
    facts: &EdgeFacts<'_>,
    now: Instant,
) {
    let EdgeFacts { by_call, killed, cause, restarted_with } = *facts;
    let restarted_with = restarted_with.map(field::display);
    let incarnation = report.incarnation;
    let (from, to) = (report.from, report.to);
    match (from, to) {
        // As in OTP, a child that is started by a call isn't logged at `info`.
        (_, Lifecycle::Active) if by_call => {
            debug!(target: "verger::lifecycle", %child, incarnation, restarted_with, "active");
        }
        (_, Lifecycle::Active) => bounded!(
            (bounds, child, Active), INFO, target: "verger::lifecycle", "active",
            %child, incarnation, restarted_with
        ),
        (Lifecycle::Deactivating, Lifecycle::Stopped) if killed == Some(AbortKind::Drained) => {
            bounded!(
                (bounds, child, Killed), INFO, target: "verger::shutdown",
                "aborted at the end of its drain",
                %child, incarnation, took = ?rounded(report.after(now))
            );
        }
        (Lifecycle::Deactivating, Lifecycle::Stopped) if killed == Some(AbortKind::Missed) => {
            bounded!(
                (bounds, child, Killed), WARN, target: "verger::shutdown", "killed",
                %child, incarnation, took = ?rounded(report.after(now))
            )
        }
        (Lifecycle::Deactivating, Lifecycle::Stopped) => {
            let ending = report.ending.map(Ending::word);
            let took = rounded(report.after(now));
            debug!(target: "verger::shutdown", %child, incarnation, ending, ?took, "stopped");
        }
        _ => {
            let cause = || cause.map(ExitReason::to_string);
            debug!(
                target: "verger::lifecycle",
                %child, incarnation, %from, %to, cause = cause(), "state changed"
            );
        }
    }
}

/// The end of an incarnation that a decision is about.
#[derive(Clone, Copy)]
pub(super) struct Ended<'a> {
    pub(super) incarnation: u32,
    pub(super) reason: &'a ExitReason,
    /// How long it had been `Active`, if it was.
    pub(super) lived: Option<Duration>,
    /// It is permanent, and has returned `Ok`.
    pub(super) returned: bool,
    /// It is a child of a dynamic supervisor.
    pub(super) dynamic: bool,
    /// Who has killed it, and why.
    pub(super) killed_by: Option<&'a CallNote>,
}

/// The number of restarts that the limit had granted.
fn granted(limit: ExceededLimit) -> Option<u64> {
    match limit {
        ExceededLimit::Supervisor { restarts, .. } | ExceededLimit::Own { restarts, .. } => {
            u64::try_from(restarts).ok()
        }
        ExceededLimit::Consecutive { restarts, .. } | ExceededLimit::Delays { restarts } => {
            Some(restarts.into())
        }
        ExceededLimit::FailingFor { .. } => None,
    }
}

fn limit_text(limit: ExceededLimit) -> String {
    match limit {
        ExceededLimit::Supervisor { intensity, .. } => {
            format!("{} for all children", intensity.in_words())
        }
        ExceededLimit::Own { intensity, .. } => intensity.in_words(),
        ExceededLimit::Consecutive { max, .. } => format!("{max} consecutive"),
        ExceededLimit::FailingFor { max } => format!("failing for {max:?}"),
        ExceededLimit::Delays { .. } => "the delays of the backoff".to_owned(),
    }
}

/// What to write for a child that the program can do without.
const REMEDY: &str =
    "if the program can do without it, give it on_exhausted(OnExhausted::Pause(..))";

/// What was decided of a child that has ended by itself. `limit` returns how much of the limit that applies is used, with
/// the number of the attempt.
pub(super) fn decided(
    bounds: &LogBounds,
    child: &Path,
    end: Ended<'_>,
    decision: Decision,
    log: FailureLog,
    limit: &dyn Fn(u32) -> Option<String>,
) {
    let Ended { incarnation, reason, lived, returned, dynamic, killed_by } = end;
    let lived = lived.map(|lived| field::debug(rounded(lived)));
    // Rendered only where the line is enabled.
    let cause = || reason.to_string();
    match decision {
        Decision::Restart { attempt, delay } => {
            let level = log.level(attempt);
            if !admits(as_tracing(level)) {
                return;
            }
            let line = bounds.count(child, LineKind::Restarting);
            let level = match (line, level) {
                (Some(_), level) => level,
                (None, LogLevel::Trace) => LogLevel::Trace,
                (None, _) => LogLevel::Debug,
            };
            if line.is_none() && !admits(as_tracing(level)) {
                return;
            }
            let (delay, limit) = (rounded(delay), limit(attempt));
            let note = line.map_or("", LetterLine::note);
            let (pause, unlogged) = match line {
                Some(LetterLine::Last { pause, .. }) => (Some(field::debug(pause)), None),
                Some(LetterLine::Resumed { unlogged, .. }) => (None, Some(unlogged)),
                Some(LetterLine::Counted { .. }) | None => (None, None),
            };
            let by = killed_by.map(|call| &*call.by);
            let why = killed_by.and_then(|call| call.reason.as_deref());
            /// The level of a `tracing` event is a constant of its call site.
            macro_rules! restarting {
                ($level:expr) => {
                    event!(
                        target: "verger::restart", $level,
                        %child, incarnation, cause = cause(), by, reason = why, attempt, ?delay, limit, lived,
                        pause, unlogged,
                        "restarting{note}"
                    )
                };
            }
            match level {
                LogLevel::Trace => restarting!(Level::TRACE),
                LogLevel::Debug => restarting!(Level::DEBUG),
                LogLevel::Info => restarting!(Level::INFO),
                LogLevel::Warn => restarting!(Level::WARN),
                LogLevel::Error => restarting!(Level::ERROR),
            }
        }
        // Connections that are closed, which may be most of a log.
        Decision::Leave if reason.is_clean() && dynamic => {
            debug!(target: "verger::lifecycle", %child, incarnation, lived, "ended normally");
        }
        Decision::Leave if reason.is_clean() => bounded!(
            (bounds, child, Decided), INFO, target: "verger::lifecycle", "ended normally",
            %child, incarnation, lived
        ),
        // Whoever has awaited the task decides how bad its panic is.
        Decision::Leave if matches!(reason, ExitReason::Panicked(panic) if panic.is_returned()) => {
            bounded!(
                (bounds, child, Decided), INFO, target: "verger::lifecycle", "returned its panic",
                %child, incarnation, cause = cause(), lived
            );
        }
        Decision::Leave => bounded!(
            (bounds, child, Decided), WARN, target: "verger::restart", "not restarted",
            %child, incarnation, cause = cause(), lived
        ),
        Decision::FallBack => bounded!(
            (bounds, child, Decided), ERROR, target: "verger::restart", "falling back",
            %child, incarnation, cause = cause(), lived
        ),
        Decision::Pause { length } => bounded!(
            (bounds, child, Decided), ERROR, target: "verger::restart", "pausing",
            %child, incarnation, cause = cause(), lived, ?length
        ),
        Decision::Exit => error!(
            target: "verger::restart",
            %child, incarnation, cause = cause(), "ending the program"
        ),
        Decision::GiveUp { limit, source, failing, then } => {
            let (restarts, failing) = (granted(limit), rounded(failing));
            let limit = limit_text(limit);
            let hint = match then {
                _ if returned => Some("did you mean restart type transient?"),
                OnExhausted::Escalate => Some(REMEDY),
                _ => None,
            };
            bounded!(
                (bounds, child, Decided), ERROR, target: "verger::restart", "giving up",
                %child, incarnation, cause = cause(), lived, ?failing, restarts, limit, %source,
                %then, hint
            );
        }
        Decision::FailStart => bounded!(
            (bounds, child, Decided), ERROR, target: "verger::restart", "failing the first start",
            %child, incarnation, cause = cause()
        ),
        Decision::EndSupervisor => bounded!(
            (bounds, child, Decided), INFO, target: "verger::lifecycle", "ending its supervisor",
            %child, incarnation, cause = cause(), lived
        ),
        Decision::FailSupervisor => bounded!(
            (bounds, child, Decided), ERROR, target: "verger::restart", "failing its supervisor",
            %child, incarnation, cause = cause(), lived
        ),
        Decision::Decline => bounded!(
            (bounds, child, Decided), ERROR, target: "verger::restart", "given up by the callback",
            %child, incarnation, cause = cause(), lived
        ),
        Decision::Escalate => bounded!(
            (bounds, child, Decided), ERROR, target: "verger::restart", "escalated by the callback",
            %child, incarnation, cause = cause(), lived
        ),
    }
}

/// The failure callback did not decide.
pub(super) fn undecided(bounds: &LogBounds, child: &Path, incarnation: u32, problem: &str) {
    bounded!(
        (bounds, child, Undecided), ERROR, target: "verger::restart",
        "no decision by the callback: escalating",
        %child, incarnation, problem
    );
}

pub(super) fn unhealthy(bounds: &LogBounds, child: &Path, incarnation: u32, problem: &str) {
    bounded!(
        (bounds, child, Unhealthy), WARN, target: "verger::lifecycle", "unhealthy",
        %child, incarnation, problem
    );
}

pub(super) fn healthy(bounds: &LogBounds, child: &Path, incarnation: u32) {
    bounded!(
        (bounds, child, Healthy), INFO, target: "verger::lifecycle", "healthy again",
        %child, incarnation
    );
}

/// The child waits for its lease: another holder has it, or the engine can't tell.
pub(super) fn standby(
    bounds: &LogBounds,
    child: &Path,
    lease: &str,
    holder: Option<&str>,
    problem: Option<&str>,
) {
    match problem {
        Some(problem) => bounded!(
            (bounds, child, LeaseUnknown), WARN, target: "verger::lease",
            "the lease can't be asked for",
            %child, lease, error = problem
        ),
        None => bounded!(
            (bounds, child, Standby), INFO, target: "verger::lease", "on standby",
            %child, lease, holder
        ),
    }
}

pub(super) fn lease_granted(bounds: &LogBounds, child: &Path, lease: &str, token: u64) {
    bounded!(
        (bounds, child, LeaseGranted), INFO, target: "verger::lease", "lease granted",
        %child, lease, token
    );
}

pub(super) fn lease_lost(bounds: &LogBounds, child: &Path, lease: &str, cause: &str) {
    bounded!(
        (bounds, child, LeaseLost), WARN, target: "verger::lease", "lease lost",
        %child, lease, cause
    );
}

/// The runtime was late, so that missed heartbeats say nothing.
pub(super) fn runtime_late(bounds: &LogBounds, child: &Path, late: Duration) {
    let late = rounded(late);
    bounded!(
        (bounds, child, RuntimeLate), WARN, target: "verger::lifecycle",
        "the runtime was late: no child is called hung",
        %child, ?late
    );
}

/// `waits`: the child's task only waits for a thread.
pub(super) fn leaked(bounds: &LogBounds, child: &Path, incarnation: u32, waits: bool) {
    match waits {
        true => bounded!(
            (bounds, child, Leaked), WARN, target: "verger::shutdown",
            "aborted, and waiting for a thread that another child blocks",
            %child, incarnation
        ),
        false => bounded!(
            (bounds, child, Leaked), ERROR, target: "verger::shutdown",
            "leaked: aborted, and still running; does it block its thread?",
            %child, incarnation
        ),
    }
}

pub(super) fn leak_ended(bounds: &LogBounds, child: &Path, incarnation: u32) {
    bounded!(
        (bounds, child, LeakEnded), INFO, target: "verger::shutdown", "leaked child has ended",
        %child, incarnation
    );
}

/// What a start or a stop has been waiting for since `waited` ago.
pub(super) fn waiting(child: &Path, reason: WaitReason, requires: Option<&Path>, waited: Duration) {
    let waited = rounded(waited);
    match reason {
        WaitReason::Readiness => {
            warn!(target: "verger::lifecycle", %child, ?waited, "waiting for readiness");
        }
        WaitReason::Requirement(_) => {
            let requires = requires.map(field::display);
            warn!(target: "verger::lifecycle", %child, requires, ?waited, "waiting for a requirement");
        }
        WaitReason::Restart(delay) => {
            let delay = rounded(delay);
            warn!(target: "verger::lifecycle", %child, ?delay, ?waited, "waiting for a restart");
        }
        WaitReason::Decision => {
            warn!(target: "verger::lifecycle", %child, ?waited, "waiting for the failure callback");
        }
        WaitReason::Stop { left } => {
            let grace_left = left.map(|left| field::debug(rounded(left)));
            warn!(target: "verger::shutdown", %child, grace_left, ?waited, "waiting for the child to stop");
        }
        WaitReason::Abort { .. } => {
            warn!(target: "verger::shutdown", %child, ?waited, "waiting for the aborted child to end");
        }
    }
}

/// More children are waited for than were named.
pub(super) fn waiting_for_more(child: &Path, waited: Duration) {
    let waited = rounded(waited);
    warn!(target: "verger::lifecycle", %child, ?waited, "waiting for more children");
}

/// A worker has called `ready` although it was active already.
pub(super) fn needless_ready(child: &Path) {
    warn!(
        target: "verger::lifecycle", %child,
        "`ready` has no effect: the child is active as soon as it is started; set `readiness(Readiness::Signal)`"
    );
}

/// An error or a panic in `deactivate`.
pub(super) fn deactivate_failed(
    bounds: &LogBounds,
    child: &Path,
    incarnation: u32,
    cause: &ExitReason,
) {
    bounded!(
        (bounds, child, DeactivateFailed), WARN, target: "verger::lifecycle", "deactivate failed",
        %child, incarnation, cause = cause.to_string()
    );
}

/// A call has changed a child.
pub(super) fn called(
    child: &Path,
    call: &'static str,
    note: Option<&CallNote>,
    remark: Option<&'static str>,
) {
    let by = note.map(|note| &*note.by);
    let reason = note.and_then(|note| note.reason.as_deref());
    info!(target: "verger::lifecycle", %child, call, by, reason, remark, "changed by a call");
}

/// The root is active. The supervisor above logs the same of a supervisor below it.
pub(super) fn root_active(bounds: &LogBounds, child: &Path) {
    bounded!(
        (bounds, child, Active), INFO, target: "verger::lifecycle", "active",
        %child
    );
}

pub(super) fn shutting_down(bounds: &LogBounds, child: &Path, cause: &str) {
    bounded!(
        (bounds, child, ShuttingDown), INFO, target: "verger::shutdown", "shutting down",
        %child, cause
    );
}

pub(super) fn stopped(bounds: &LogBounds, child: &Path) {
    bounded!(
        (bounds, child, Stopped), INFO, target: "verger::shutdown", "stopped",
        %child
    );
}
