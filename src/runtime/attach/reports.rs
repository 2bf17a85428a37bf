//! Tells of what happens: events for subscribers, log lines, and letters about children that were given up.
//!
//! perf: budgets row "restart-error": nothing here runs while nobody listens, unless a supervisor gives up.

use std::sync::Arc;

use super::StepView;
use crate::core::{Decision, Effect, IncarnationNumber, Key, Report};
use crate::dead_letter::{DeadLetter, DeadLetterReason};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::policy::{FailureLog, RestartType, StartCause};
use crate::runtime::log;
use crate::status::EventKind;

/// Tells of an effect.
pub(super) fn before(effect: &Effect, view: &StepView<'_>) {
    match effect {
        Effect::Report(report) => tell_edge(report, view),
        Effect::Decided { key, incarnation, reason, decision, restart_type, lived, log } => {
            // A failure that was decided on later has the lifetime that the machine remembers.
            let exit = view.exit_of(*key, *incarnation);
            let lived = exit.and_then(|exit| exit.lifetime).or(*lived);
            let returned =
                *restart_type == RestartType::Permanent && matches!(**reason, ExitReason::Normal);
            let end = log::Ended { incarnation: *incarnation, reason, lived, returned };
            tell_decision(*key, reason, end, *decision, *log, view);
        }
        Effect::Removed { key, incarnation } => {
            publish(view, *key, *incarnation, EventKind::Removed)
        }
        Effect::Up => log::up(&view.shared.tree.log_bounds, view.shared.path()),
        _ => {}
    }
}

fn publish(view: &StepView<'_>, key: Key, incarnation: IncarnationNumber, kind: EventKind) {
    if view.step.published {
        view.shared.publish(view.now, view.path(key), incarnation, || kind);
    }
}

/// Logs and publishes an edge of a child's lifecycle.
fn tell_edge(report: &Report, view: &StepView<'_>) {
    let (key, now) = (report.key, view.now);
    let exit = view.exit_of(key, report.incarnation).filter(|_| report.ending.is_some());
    let reason = exit.map(|it| Arc::clone(&it.reason));
    if view.step.logged {
        let cause = view.children.incarnation(key).map(|it| it.start_cause);
        let (at_debug, killed) = (cause == Some(StartCause::Manual), view.is_killed(report));
        let bounds = &view.shared.tree.log_bounds;
        log::report(bounds, report, &view.path(key), at_debug, killed, reason.as_deref(), now);
    }
    if view.step.published {
        let waits = report.to == Lifecycle::Restarting;
        let history = waits.then(|| view.machine.view(key, now)).flatten();
        let history = history.and_then(|child| child.history);
        let wait = history.and_then(|history| Some((history.attempt, history.next?.1)));
        let (from, to, after) = (report.from, report.to, report.after(now));
        let moved = EventKind::Moved { from, to, after, reason, wait };
        publish(view, key, report.incarnation, moved);
    }
}

/// Logs and publishes what was decided of a child that has ended by itself.
fn tell_decision(
    key: Key,
    reason: &Arc<ExitReason>,
    end: log::Ended<'_>,
    decision: Decision,
    levels: FailureLog,
    view: &StepView<'_>,
) {
    let path = view.path(key);
    let (supervisor, bounds) = (view.shared.path(), &view.shared.tree.log_bounds);
    log::decided(bounds, supervisor, &path, end, decision, levels);
    if decision == Decision::FallBack {
        publish(view, key, end.incarnation, EventKind::FellBack { reason: Arc::clone(reason) });
    }
    if let Decision::Pause { length } = decision {
        let paused = EventKind::Paused { reason: Arc::clone(reason), length };
        publish(view, key, end.incarnation, paused);
    }
    if decision.fails() {
        publish(view, key, end.incarnation, EventKind::GaveUp { reason: Arc::clone(reason) });
        let at = view.shared.tree.wall_clock(view.now);
        let (gave_up, reason) = (DeadLetterReason::GaveUp, Arc::clone(reason));
        let letter = DeadLetter::about_child(gave_up, path, end.incarnation, reason, at);
        view.shared.dead_letters.child(&letter, view.now);
    }
}
