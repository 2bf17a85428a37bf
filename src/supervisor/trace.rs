//! One line in the log for each decision.
//!
//! | target | what |
//! | --- | --- |
//! | `verger::lifecycle` | a child is up (`info`), every other edge (`debug`) |
//! | `verger::restart` | it will be started again (`warn`), its supervisor gave up (`error`) |
//! | `verger::shutdown` | a supervisor stops (`info`), who had to be killed (`warn`) or leaked (`error`) |

use std::time::Duration;

use tracing::{Level, debug, error, info, warn};

use super::hub::Hub;
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::machine::{History, Report};
use crate::path::Path;
use crate::policy::{RestartType, StartCause};

/// What is known of a child when an edge of it is told.
pub(super) struct Told<'a> {
    pub(super) path: Path,
    pub(super) history: Option<&'a History>,
    /// Started by a caller, or by its supervisor.
    pub(super) cause: Option<StartCause>,
    pub(super) restart: Option<RestartType>,
    /// How long its last incarnation was Active.
    pub(super) lived: Option<Duration>,
}

/// Whether anybody wants to read anything about the lifecycle at all.
pub(super) fn is_read() -> bool {
    tracing::enabled!(target: "verger::restart", Level::ERROR)
        || tracing::enabled!(target: "verger::lifecycle", Level::ERROR)
        || tracing::enabled!(target: "verger::shutdown", Level::ERROR)
}

pub(super) fn report(report: &Report, told: &Told<'_>) {
    let child = &told.path;
    let incarnation = report.incarnation;
    let (from, to) = (report.from, report.to);
    match (from, to) {
        // OTP, too, keeps children that a caller starts out of the log at this level.
        (_, Lifecycle::Active) if told.cause == Some(StartCause::Manual) => {
            debug!(target: "verger::lifecycle", %child, incarnation, "active");
        }
        (_, Lifecycle::Active) => {
            info!(target: "verger::lifecycle", %child, incarnation, "active");
        }
        (Lifecycle::Errored | Lifecycle::Stopped, Lifecycle::Restarting)
        | (Lifecycle::Errored, Lifecycle::Resolved) => {
            let history = told.history;
            let cause = history.and_then(|history| history.last.as_ref());
            let cause = cause.map_or_else(|| "ended normally".to_owned(), ExitReason::to_string);
            let attempt = history.map_or(0, |history| history.attempt);
            let delay = history.and_then(|history| history.next).map_or(Duration::ZERO, |n| n.1);
            let lived = told.lived.unwrap_or_default();
            warn!(
                target: "verger::restart",
                %child, incarnation, %cause, attempt, ?delay, ?lived, "restarting"
            );
        }
        (Lifecycle::Deactivating, Lifecycle::Stopped) if report.ending == Some("killed") => {
            warn!(
                target: "verger::shutdown",
                %child, incarnation, after = ?report.after, "killed, its grace was over"
            );
        }
        (Lifecycle::Deactivating, Lifecycle::Stopped) if report.ending == Some("normal") => {
            let lived = told.lived.unwrap_or_default();
            info!(target: "verger::lifecycle", %child, incarnation, ?lived, "ended normally");
        }
        (Lifecycle::Errored, Lifecycle::Stopped)
            if told.restart == Some(RestartType::Temporary) =>
        {
            let cause = told.history.and_then(|history| history.last.as_ref());
            let cause = cause.map(tracing::field::display);
            let lived = told.lived.unwrap_or_default();
            warn!(target: "verger::restart", %child, incarnation, cause, ?lived, "not restarted");
        }
        (Lifecycle::Deactivating, Lifecycle::Stopped) => {
            let ending = report.ending;
            let took = report.after;
            debug!(target: "verger::shutdown", %child, incarnation, ending, ?took, "stopped");
        }
        (_, Lifecycle::Errored) | (Lifecycle::Errored, Lifecycle::Stopped) => {
            let cause = told.history.and_then(|history| history.last.as_ref());
            let cause = cause.map(tracing::field::display);
            debug!(target: "verger::lifecycle", %child, incarnation, %from, %to, cause);
        }
        _ => debug!(target: "verger::lifecycle", %child, incarnation, %from, %to),
    }
}

pub(super) fn gave_up(hub: &Hub, child: &Path, incarnation: u32, reason: &ExitReason) {
    error!(
        target: "verger::restart",
        supervisor = %hub.path, %child, incarnation, cause = %reason, "gave up"
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

pub(super) fn up(hub: &Hub) {
    info!(target: "verger::lifecycle", supervisor = %hub.path, "up");
}

pub(super) fn stopping(hub: &Hub, reason: &str) {
    info!(target: "verger::shutdown", supervisor = %hub.path, reason, "stopping");
}

pub(super) fn ended(hub: &Hub) {
    info!(target: "verger::shutdown", supervisor = %hub.path, "stopped");
}
