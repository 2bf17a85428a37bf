//! One line in the log for each decision.
//!
//! | target | what |
//! | --- | --- |
//! | `verger::lifecycle` | a child is up, or ends its supervisor (`info`), is unhealthy (`warn`), every other edge (`debug`) |
//! | `verger::restart` | it will be started again (`warn`), its supervisor gave up, or fails with it (`error`) |
//! | `verger::dead_letter` | a message was not delivered (`warn`), or was not to be (`debug`) |
//! | `verger::shutdown` | a supervisor stops (`info`), who had to be killed (`warn`) or leaked (`error`) |

use std::time::Duration;

use tracing::level_filters::LevelFilter;
use tracing::span::Id;
use tracing::{Dispatch, Level, Span, debug, dispatcher, error, info, warn};

use super::hub::Hub;
use crate::core::{Decision, Report};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::path::Path;
use crate::policy::{FailureLog, LogLevel};

/// Whether anybody wants to read anything about the lifecycle at all.
pub(super) fn is_read() -> bool {
    tracing::enabled!(target: "verger::restart", Level::ERROR)
        || tracing::enabled!(target: "verger::lifecycle", Level::ERROR)
        || tracing::enabled!(target: "verger::shutdown", Level::ERROR)
}

/// The span, if anybody wants to read it, in as little room as one that nobody does.
pub(super) fn boxed(span: Span) -> Option<Box<Span>> {
    (!span.is_none()).then(|| Box::new(span))
}

/// The spans that were entered on this thread are left until it is dropped.
#[derive(Debug)]
pub(super) struct Aside {
    dispatch: Dispatch,
    /// The innermost first.
    left: Vec<Id>,
}

/// No span is entered as often as that, unless somebody never says that it was left.
const SPANS: usize = 256;

/// Whoever takes a supervisor's turn does so in no span of his own: what the supervisor says then has
/// nothing to do with it.
pub(super) fn aside() -> Option<Aside> {
    if LevelFilter::current() == LevelFilter::OFF {
        return None;
    }
    // What a subscriber does about that is to find the dispatcher, too.
    let dispatch = dispatcher::get_default(Dispatch::clone);
    let mut left = Vec::new();
    while left.len() < SPANS
        && let Some(id) = dispatch.current_span().id()
    {
        dispatch.exit(id);
        left.push(id.clone());
    }
    (!left.is_empty()).then_some(Aside { dispatch, left })
}

impl Drop for Aside {
    fn drop(&mut self) {
        for id in self.left.iter().rev() {
            self.dispatch.enter(id);
        }
    }
}

/// An edge of a child's lifecycle, and how its incarnation ended if that is what the edge is.
pub(super) fn report(
    report: &Report,
    child: &Path,
    by_hand: bool,
    brutal: bool,
    cause: Option<&ExitReason>,
) {
    let incarnation = report.incarnation;
    let (from, to) = (report.from, report.to);
    match (from, to) {
        // OTP, too, keeps children that a caller starts out of the log at this level.
        (_, Lifecycle::Active) if by_hand => {
            debug!(target: "verger::lifecycle", %child, incarnation, "active");
        }
        (_, Lifecycle::Active) => {
            info!(target: "verger::lifecycle", %child, incarnation, "active");
        }
        // To be killed is what a child with `BrutalKill` asks for.
        (Lifecycle::Deactivating, Lifecycle::Stopped)
            if report.ending == Some("killed") && !brutal =>
        {
            warn!(
                target: "verger::shutdown",
                %child, incarnation, after = ?report.after, "killed"
            );
        }
        (Lifecycle::Deactivating, Lifecycle::Stopped) => {
            let ending = report.ending;
            let took = report.after;
            debug!(target: "verger::shutdown", %child, incarnation, ending, ?took, "stopped");
        }
        _ => {
            let cause = cause.map(tracing::field::display);
            debug!(target: "verger::lifecycle", %child, incarnation, %from, %to, cause);
        }
    }
}

/// What becomes of a child that has ended by itself.
pub(super) fn decided(
    hub: &Hub,
    child: &Path,
    incarnation: u32,
    cause: &ExitReason,
    lived: Duration,
    decision: Decision,
    log: FailureLog,
) {
    match decision {
        Decision::Restart { attempt, delay } => {
            /// A level is a part of the place in the code that logs, so there is one for each.
            macro_rules! restarting {
                ($level:expr) => {
                    tracing::event!(
                        target: "verger::restart", $level,
                        %child, incarnation, %cause, attempt, ?delay, ?lived, "restarting"
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
        Decision::Leave if cause.is_clean() => {
            info!(target: "verger::lifecycle", %child, incarnation, ?lived, "ended normally");
        }
        Decision::Leave => {
            warn!(target: "verger::restart", %child, incarnation, %cause, ?lived, "not restarted");
        }
        Decision::FallBack => error!(
            target: "verger::restart",
            supervisor = %hub.path(), %child, incarnation, %cause, ?lived, "falls back"
        ),
        Decision::Pause { length } => error!(
            target: "verger::restart",
            supervisor = %hub.path(), %child, incarnation, %cause, ?lived, ?length, "pauses"
        ),
        Decision::Exit => error!(
            target: "verger::restart",
            supervisor = %hub.path(), %child, incarnation, %cause, "ends the program"
        ),
        Decision::GiveUp => error!(
            target: "verger::restart",
            supervisor = %hub.path(), %child, incarnation, %cause, ?lived, "gave up"
        ),
        Decision::EndSupervisor => info!(
            target: "verger::lifecycle",
            supervisor = %hub.path(), %child, incarnation, %cause, ?lived, "ends its supervisor"
        ),
        Decision::FailSupervisor => error!(
            target: "verger::restart",
            supervisor = %hub.path(), %child, incarnation, %cause, ?lived, "fails its supervisor"
        ),
        Decision::Decline => error!(
            target: "verger::restart",
            supervisor = %hub.path(), %child, incarnation, %cause, ?lived, "given up by the callback"
        ),
        Decision::Escalate => error!(
            target: "verger::restart",
            supervisor = %hub.path(), %child, incarnation, %cause, ?lived, "escalated by the callback"
        ),
    }
}

/// The callback that was asked about a failure did not decide.
pub(super) fn undecided(hub: &Hub, child: &Path, incarnation: u32, problem: &str) {
    error!(
        target: "verger::restart",
        supervisor = %hub.path(), %child, incarnation, problem,
        "no decision by the callback: escalating"
    );
}

pub(super) fn unhealthy(child: &Path, incarnation: u32, problem: &str) {
    warn!(target: "verger::lifecycle", %child, incarnation, problem, "unhealthy");
}

pub(super) fn healthy(child: &Path, incarnation: u32) {
    info!(target: "verger::lifecycle", %child, incarnation, "healthy again");
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

pub(super) fn up(hub: &Hub) {
    info!(target: "verger::lifecycle", supervisor = %hub.path(), "up");
}

pub(super) fn stopping(hub: &Hub, reason: &str) {
    info!(target: "verger::shutdown", supervisor = %hub.path(), reason, "stopping");
}

pub(super) fn ended(hub: &Hub) {
    info!(target: "verger::shutdown", supervisor = %hub.path(), "stopped");
}
