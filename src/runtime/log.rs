//! One log line for each decision. Values that can contain spaces are quoted.
//!
//! | target | what |
//! | --- | --- |
//! | `verger::lifecycle` | a child is up, ends its supervisor, or was changed by a call (`info`), is unhealthy, or is waited for at a start, or the runtime was late (`warn`), every other edge (`debug`) |
//! | `verger::restart` | a child will be restarted (`warn`), its supervisor gave up, or fails with it (`error`) |
//! | `verger::dead_letter` | a message was not delivered (`warn`), or its loss was intended (`debug`) |
//! | `verger::shutdown` | a supervisor stops (`info`), a child was killed, or is waited for (`warn`), or has leaked (`error`) |

use std::time::{Duration, Instant};

use tracing::{Level, field};

use crate::core::{Decision, ExceededLimit, Report, WaitReason};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::path::{LazyPath, Path};
use crate::policy::{FailureLog, LetterLine, LogLevel};
use crate::runtime::request::CallNote;
use crate::subscriber::{debug, enabled, error, event, info, warn};

/// Returns whether any lifecycle log line is enabled.
pub(super) fn is_enabled() -> bool {
    enabled!(target: "verger::restart", Level::ERROR)
        || enabled!(target: "verger::lifecycle", Level::ERROR)
        || enabled!(target: "verger::shutdown", Level::ERROR)
}

/// An edge of a child's lifecycle, with the cause if the edge is the end of an incarnation.
pub(super) fn report(
    report: &Report,
    child: &Path,
    at_debug: bool,
    killed: bool,
    cause: Option<&ExitReason>,
    now: Instant,
) {
    let incarnation = report.incarnation;
    let (from, to) = (report.from, report.to);
    match (from, to) {
        // As in OTP, a child that is started by a call isn't logged at `info`.
        (_, Lifecycle::Active) if at_debug => {
            debug!(target: "verger::lifecycle", %child, incarnation, "active");
        }
        (_, Lifecycle::Active) => {
            info!(target: "verger::lifecycle", %child, incarnation, "active");
        }
        (Lifecycle::Deactivating, Lifecycle::Stopped) if killed => {
            warn!(
                target: "verger::shutdown",
                %child, incarnation, after = ?report.after(now), "killed"
            );
        }
        (Lifecycle::Deactivating, Lifecycle::Stopped) => {
            let ending = report.ending;
            let took = report.after(now);
            debug!(target: "verger::shutdown", %child, incarnation, ending, ?took, "stopped");
        }
        _ => {
            let cause = || cause.map(ExitReason::to_string);
            debug!(target: "verger::lifecycle", %child, incarnation, %from, %to, cause = cause());
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
}

/// How often a limit was hit: the restarts with the refused one, or the time of failing.
fn hits(limit: Option<ExceededLimit>) -> (Option<u64>, Option<field::DebugValue<Duration>>) {
    match limit {
        Some(ExceededLimit::Supervisor { restarts, .. } | ExceededLimit::Own { restarts, .. }) => {
            (u64::try_from(restarts).ok(), None)
        }
        Some(
            ExceededLimit::Consecutive { restarts, .. }
            | ExceededLimit::Delays { attempts: restarts },
        ) => (Some(restarts.into()), None),
        Some(ExceededLimit::FailingFor { failing, .. }) => (None, Some(field::debug(failing))),
        None => (None, None),
    }
}

fn limit_text(limit: ExceededLimit) -> String {
    match limit {
        ExceededLimit::Supervisor { intensity, .. } => intensity.in_words(),
        ExceededLimit::Own { intensity, .. } => {
            format!("{} for this child", intensity.in_words())
        }
        ExceededLimit::Consecutive { max, .. } => format!("{max} consecutive"),
        ExceededLimit::FailingFor { max, .. } => format!("failing for {max:?}"),
        ExceededLimit::Delays { .. } => "the delays of the backoff".to_owned(),
    }
}

/// What was decided of a child that has ended by itself.
pub(super) fn decided(
    supervisor: &LazyPath,
    child: &Path,
    end: Ended<'_>,
    decision: Decision,
    log: FailureLog,
    line: LetterLine,
) {
    let Ended { incarnation, reason, lived, returned } = end;
    let lived = lived.map(field::debug);
    // Rendered only where the line is enabled.
    let cause = || reason.to_string();
    match decision {
        Decision::Restart { attempt, delay } => {
            let (pause, unlogged, note) = match line {
                LetterLine::Counted { .. } => (None, None, ""),
                LetterLine::Last { pause, .. } => {
                    (Some(field::debug(pause)), None, "; no more are logged for a while")
                }
                LetterLine::Resumed { unlogged, .. } => {
                    (None, Some(unlogged), "; some before were not logged")
                }
            };
            /// The level of a `tracing` event is a constant of its call site.
            macro_rules! restarting {
                ($level:expr) => {
                    event!(
                        target: "verger::restart", $level,
                        %child, incarnation, cause = cause(), attempt, ?delay, lived, pause, unlogged,
                        "restarting{note}"
                    )
                };
            }
            match log.level(attempt) {
                LogLevel::Trace => restarting!(Level::TRACE),
                LogLevel::Debug => restarting!(Level::DEBUG),
                LogLevel::Info => restarting!(Level::INFO),
                LogLevel::Warn => restarting!(Level::WARN),
                LogLevel::Error => restarting!(Level::ERROR),
            }
        }
        Decision::Leave if reason.is_clean() => {
            info!(target: "verger::lifecycle", %child, incarnation, lived, "ended normally");
        }
        Decision::Leave => {
            warn!(target: "verger::restart", %child, incarnation, cause = cause(), lived, "not restarted");
        }
        Decision::FallBack => error!(
            target: "verger::restart",
            %supervisor, %child, incarnation, cause = cause(), lived, "falling back"
        ),
        Decision::Pause { length } => error!(
            target: "verger::restart",
            %supervisor, %child, incarnation, cause = cause(), lived, ?length, "pausing"
        ),
        Decision::Exit => error!(
            target: "verger::restart",
            %supervisor, %child, incarnation, cause = cause(), "ending the program"
        ),
        Decision::GiveUp { limit } => {
            let (restarts, failing) = hits(limit);
            let limit = limit.map(limit_text);
            let limit = limit.as_deref();
            let hint = if returned { "; did you mean restart type transient?" } else { "" };
            error!(
                target: "verger::restart",
                %supervisor, %child, incarnation, cause = cause(), lived, restarts, failing, limit,
                "giving up{hint}"
            );
        }
        Decision::EndSupervisor => info!(
            target: "verger::lifecycle",
            %supervisor, %child, incarnation, cause = cause(), lived, "ending its supervisor"
        ),
        Decision::FailSupervisor => error!(
            target: "verger::restart",
            %supervisor, %child, incarnation, cause = cause(), lived, "failing its supervisor"
        ),
        Decision::Decline => error!(
            target: "verger::restart",
            %supervisor, %child, incarnation, cause = cause(), lived, "given up by the callback"
        ),
        Decision::Escalate => error!(
            target: "verger::restart",
            %supervisor, %child, incarnation, cause = cause(), lived, "escalated by the callback"
        ),
    }
}

/// The failure callback did not decide.
pub(super) fn undecided(supervisor: &LazyPath, child: &Path, incarnation: u32, problem: &str) {
    error!(
        target: "verger::restart",
        %supervisor, %child, incarnation, problem,
        "no decision by the callback: escalating"
    );
}

pub(super) fn unhealthy(child: &Path, incarnation: u32, problem: &str) {
    warn!(target: "verger::lifecycle", %child, incarnation, problem, "unhealthy");
}

pub(super) fn healthy(child: &Path, incarnation: u32) {
    info!(target: "verger::lifecycle", %child, incarnation, "healthy again");
}

/// The runtime was late, so that missed heartbeats say nothing.
pub(super) fn runtime_late(supervisor: &LazyPath, late: Duration) {
    warn!(
        target: "verger::lifecycle",
        %supervisor,
        "the runtime was late by {late:?}, no child is called hung"
    );
}

pub(super) fn leaked(child: &Path, incarnation: u32) {
    error!(
        target: "verger::shutdown",
        %child, incarnation, "leaked: aborted, and still running; does it block its thread?"
    );
}

pub(super) fn leak_ended(child: &Path, incarnation: u32) {
    info!(target: "verger::shutdown", %child, incarnation, "leaked child has ended");
}

/// What a start or a stop has been waiting for since `waited` ago.
pub(super) fn waiting(child: &Path, reason: WaitReason, requires: Option<&Path>, waited: Duration) {
    match reason {
        WaitReason::Readiness => {
            warn!(target: "verger::lifecycle", %child, ?waited, "waiting for readiness");
        }
        WaitReason::Requirement(_) => {
            let requires = requires.map(field::display);
            warn!(target: "verger::lifecycle", %child, requires, ?waited, "waiting for a requirement");
        }
        WaitReason::Restart(delay) => {
            warn!(target: "verger::lifecycle", %child, ?delay, ?waited, "waiting for a restart");
        }
        WaitReason::Decision => {
            warn!(target: "verger::lifecycle", %child, ?waited, "waiting for the failure callback");
        }
        WaitReason::Stop { left } => {
            let grace_left = left.map(field::debug);
            warn!(target: "verger::shutdown", %child, grace_left, ?waited, "waiting for the child to stop");
        }
        WaitReason::Abort => {
            warn!(target: "verger::shutdown", %child, ?waited, "waiting for the aborted child to end");
        }
    }
}

/// More children are waited for than were named.
pub(super) fn waiting_for_more(supervisor: &LazyPath, waited: Duration) {
    warn!(target: "verger::lifecycle", %supervisor, ?waited, "waiting for more children");
}

/// A worker has called `ready` although it was active already.
pub(super) fn needless_ready(child: &Path) {
    warn!(
        target: "verger::lifecycle", %child,
        "`ready` has no effect: the child is active as soon as it is started; set `readiness(Readiness::Signal)`"
    );
}

/// An error or a panic in `deactivate`.
pub(super) fn deactivate_failed(child: &Path, incarnation: u32, cause: &ExitReason) {
    let cause = cause.to_string();
    warn!(target: "verger::lifecycle", %child, incarnation, cause, "deactivate failed");
}

/// A call has changed a child.
pub(super) fn called(child: &Path, call: &'static str, note: Option<&CallNote>) {
    let by = note.map(|note| &*note.by);
    let reason = note.and_then(|note| note.reason.as_deref());
    info!(target: "verger::lifecycle", %child, call, by, reason, "changed by a call");
}

pub(super) fn up(supervisor: &LazyPath) {
    info!(target: "verger::lifecycle", %supervisor, "up");
}

pub(super) fn shutting_down(supervisor: &LazyPath, cause: &str) {
    info!(target: "verger::shutdown", %supervisor, cause, "shutting down");
}

pub(super) fn stopped(supervisor: &LazyPath) {
    info!(target: "verger::shutdown", %supervisor, "stopped");
}
