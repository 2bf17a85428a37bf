//! Tells of what happens: events for subscribers, log lines, and letters about children that were given up.
//!
//! perf: budgets row "restart-error": nothing here runs while nobody listens, unless a supervisor gives up.

use std::sync::Arc;
use std::time::Duration;

use super::StepView;
use super::recent::Recent;
use crate::core::{Decision, Effect, IncarnationNumber, Key, Report};
use crate::dead_letter::{DeadLetter, DeadLetterReason};
use crate::exit::ExitReason;
use crate::human_duration::HumanDuration;
use crate::lifecycle::Lifecycle;
use crate::policy::{FailureLog, RestartType, StartCause};
use crate::runtime::log;
use crate::status::EventKind;

/// Tells of an effect.
pub(super) fn before(effect: &Effect, recent: &Recent, view: &StepView<'_>) {
    match effect {
        Effect::Report(report) => tell_edge(report, recent.restarted, view),
        Effect::Decided { key, incarnation, reason, decision, restart_type, lived, log } => {
            // A failure that was decided on later has the lifetime that the machine remembers.
            let exit = view.exit_of(*key, *incarnation);
            let lived = exit.and_then(|exit| exit.lifetime).or(*lived);
            let returned =
                *restart_type == RestartType::Permanent && matches!(**reason, ExitReason::Normal);
            let dynamic = view.blueprint.is_dynamic();
            let by_kill = matches!(**reason, ExitReason::Aborted);
            let killed_by = by_kill.then(|| recent.killed_by(*key)).flatten();
            let incarnation = *incarnation;
            let end = log::Ended { incarnation, reason, lived, returned, dynamic, killed_by };
            tell_decision(*key, reason, end, *decision, *log, view);
        }
        Effect::Removed { key, incarnation } => {
            publish(view, *key, *incarnation, EventKind::Removed)
        }
        Effect::Up if view.above.is_none() => {
            log::root_active(&view.shared.tree.log_bounds, view.shared.path());
        }
        _ => {}
    }
}

fn publish(view: &StepView<'_>, key: Key, incarnation: IncarnationNumber, kind: EventKind) {
    if view.step.published {
        view.shared.publish(view.now, view.path(key), incarnation, || kind);
    }
}

/// Logs and publishes an edge of a child's lifecycle.
fn tell_edge(report: &Report, restarted: Option<Key>, view: &StepView<'_>) {
    let (key, now) = (report.key, view.now);
    let exit = view.exit_of(key, report.incarnation).filter(|_| report.ending.is_some());
    let reason = exit.map(|it| Arc::clone(&it.reason));
    if view.step.logged {
        let cause = view.children.incarnation(key).map(|it| it.start_cause);
        let in_group = cause == Some(StartCause::Group);
        let restarted = restarted.filter(|_| in_group).map(|key| view.path(key));
        let facts = log::EdgeFacts {
            by_call: cause == Some(StartCause::Manual),
            killed: view.killed(report),
            cause: reason.as_deref(),
            restarted_with: restarted.as_ref(),
        };
        log::report(&view.shared.tree.log_bounds, report, &view.path(key), &facts, now);
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

/// Returns how much is used of the limit that applies to a child: its own one, or else its supervisor's.
fn limit_used(key: Key, attempt: u32, view: &StepView<'_>) -> Option<String> {
    let child = view.machine.view(key, view.now)?;
    let limits = child.rules.limits(child.policy.as_deref());
    let consecutive = limits.and_then(|limits| limits.consecutive);
    let (used, max, period) = match (child.limit, consecutive) {
        (Some((own, used)), _) => (used, own.max(), own.period()),
        (None, Some(max)) => return Some(format!("{attempt}/{max} consecutive")),
        (None, None) => {
            let (used, max, period) = view.machine.intensity(view.now);
            (used, max?, period)
        }
    };
    match period {
        Duration::MAX => Some(format!("{used}/{max}")),
        period => Some(format!("{used}/{max} in {}", HumanDuration(period))),
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
    let limit = |attempt| limit_used(key, attempt, view);
    log::decided(&view.shared.tree.log_bounds, &path, end, decision, levels, &limit);
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
