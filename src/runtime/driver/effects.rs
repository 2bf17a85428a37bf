//! Applying the machine's effects, and publishing what they mean.

use std::iter;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::state::{Driver, ExitInfo, Step};
use crate::child::{Incarnation, Phases, StopLevel};
use crate::core::{
    ANSWER_WITHIN, ConditionEffect, Decision, Effect, Finish, IncarnationNumber, Key, Report,
};
use crate::dead_letter::{DeadLetter, DeadLetterReason};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::policy::{ChildRules, FailureLog, RestartType, Shutdown, StartCause};
use crate::runtime::log;
use crate::runtime::outcome::{Cause, End};
use crate::status::EventKind;

impl Driver {
    pub(super) fn apply_effect(&mut self, effect: Effect, step: &mut Step) {
        let now = step.now;
        match effect {
            Effect::Start { key, incarnation, cause, held } => {
                if let (Some(until), Some(mailbox)) = (held, self.mailbox(key)) {
                    mailbox.delay_delivery(until);
                }
                self.start(key, incarnation, cause);
            }
            Effect::Cancel { key } => self.cancel(key, now),
            Effect::Close { key, all } => self.close(key, all),
            Effect::Abort { key } if self.aborts.cancelled.contains(&key) => {
                let incarnation = self.children.incarnation(key);
                self.aborts.postponed.extend(incarnation.map(|it| (key, it.number)));
            }
            Effect::Abort { key } => self.abort(key),
            Effect::Condition(ConditionEffect::SeekLease { key }) => self.seek_lease(key),
            Effect::Condition(ConditionEffect::EndLease { key, release }) => {
                self.leases.end(key, release)
            }
            Effect::Report(report) => {
                self.update_health_task(&report);
                self.measure_edge(&report, now);
                self.report(&report, step);
                if matches!(report.to, Lifecycle::Stopped | Lifecycle::Errored) {
                    self.note_down(report.key, step);
                }
            }
            Effect::Condition(ConditionEffect::Health { key, incarnation, problem }) => {
                self.publish_health((key, incarnation), problem, now);
            }
            Effect::Condition(ConditionEffect::CheckHeartbeat { key, incarnation }) => {
                self.heartbeats_due.push((key, incarnation));
            }
            Effect::Condition(ConditionEffect::RuntimeLate { late }) => {
                log::runtime_late(&self.shared.tree.log_bounds, self.shared.path(), late);
            }
            Effect::Leaked { key, incarnation } => {
                self.leak(key, incarnation, now);
                self.lose_message(key, incarnation, &Arc::new(ExitReason::Killed), now);
                self.note_down(key, step);
            }
            Effect::Ended { key, incarnation, reason, lived } => {
                // A child that failed while its task runs may still finish with its message.
                if self.children.incarnation(key).is_none() {
                    self.lose_message(key, incarnation, &reason, now);
                }
                self.note_start_failure(key, &reason);
                if !reason.is_clean() {
                    self.shared.tree.counters.failures.count();
                }
                step.exit = Some(ExitInfo { key, incarnation, reason, lifetime: lived });
            }
            Effect::Condition(ConditionEffect::Ask { key, incarnation, attempt, reason }) => {
                self.call_failure_callback((key, incarnation), attempt, reason, step);
            }
            Effect::Condition(ConditionEffect::Unanswered { key, incarnation }) => {
                let path = self.children.path(key);
                let problem = format!("didn't answer within {ANSWER_WITHIN:?}");
                log::undecided(
                    &self.shared.tree.log_bounds,
                    self.shared.path(),
                    &path,
                    incarnation,
                    &problem,
                );
            }
            Effect::Condition(ConditionEffect::Changed { key, changes }) => {
                self.children.change_properties(key, &changes)
            }
            Effect::Decided { key, incarnation, reason, decision, restart_type, log } => {
                let of = (key, incarnation, restart_type);
                self.decided(of, &reason, decision, log, step);
                self.note_down(key, step);
                if decision == Decision::FallBack {
                    self.replace(key, now);
                }
            }
            Effect::StaysDown { key } => self.note_down(key, step),
            Effect::Reply { ticket, answer } => self.reply_in_turn(ticket, answer, now),
            Effect::Removed { key, incarnation } => {
                let exit = step.exit.as_ref().filter(|it| it.key == key);
                let exit = exit.map(|it| (Arc::clone(&it.reason), it.lifetime));
                self.recent.gone(self.children.entry(key), incarnation, exit, now);
                self.remove(key, incarnation, now);
            }
            Effect::Up => {
                log::up(&self.shared.tree.log_bounds, self.shared.path());
                self.shared.progress.up();
                if let Some(ctx) = &self.above {
                    ctx.ready();
                }
            }
            Effect::Finish(finish) => {
                self.end = Some(match self.end_of(finish) {
                    // A clean end that had to be forced.
                    End::Stopped | End::AutoShutdown if self.seen_level == StopLevel::Abort => {
                        End::Aborted
                    }
                    end => end,
                });
            }
        }
    }

    /// Keeps a failure if the first start has failed.
    fn note_start_failure(&mut self, key: Key, reason: &ExitReason) {
        let stopped =
            matches!(reason, ExitReason::Killed | ExitReason::Aborted) || reason.is_clean();
        if !stopped && self.machine.start_has_failed() {
            let (child, reason) = (self.children.path(key), reason.clone());
            self.start_failures.push(Cause { child, reason });
        }
    }

    fn start(&mut self, key: Key, incarnation: IncarnationNumber, cause: StartCause) {
        let counters = &self.shared.tree.counters;
        counters.starts.count();
        if incarnation > 1 {
            counters.restarts.count();
        }
        // A child that was given up may have been brought back.
        self.given_up.take_if(|it| it.0 == key);
        self.lifetimes.remove(&key);
        self.reopen_mailbox(key);
        self.measure_start(key, cause);
        if let Some(rules) = self.machine.rules_of(key) {
            let (watched, phases) = (rules.watchdog.is_some(), phases(rules));
            self.children.start(key, incarnation, cause, watched, phases);
        }
    }

    fn cancel(&mut self, key: Key, now: Instant) {
        self.aborts.has_stopped |= !self.is_supervisor(key);
        if self.is_due(now) {
            self.aborts.cancelled.insert(key);
        }
        self.close_mailbox(key);
        let Some(incarnation) = self.children.incarnation(key) else { return };
        if incarnation.cell.level() == StopLevel::None {
            self.start_stop_chain(key);
            self.children.cancel(key);
        } else {
            self.extend_stop_chain(key);
        }
    }

    fn close(&self, key: Key, all: bool) {
        if self.is_supervisor(key) {
            let level = if all { StopLevel::CloseAll } else { StopLevel::Close };
            self.children.raise_below(key, level);
        } else if let Some(mailbox) = self.mailbox(key) {
            mailbox.force_close();
        }
    }

    /// Links the children behind this one in an ordered stop, so that its exit cancels the next.
    fn start_stop_chain(&self, key: Key) {
        match (self.machine.stops_now(), self.children.incarnation(key)) {
            (Some(now), Some(incarnation)) if now == key => {
                let behind = self.behind(key);
                self.shared.stop_chain.replace(iter::once(Arc::clone(incarnation)).chain(behind));
            }
            (None, _) => self.shared.stop_chain.clear(),
            _ => {}
        }
    }

    /// Extends the stop chain if this child, cancelled by the chain, is the next to stop.
    fn extend_stop_chain(&self, key: Key) {
        if let Some(end) = self.shared.stop_chain.extensible_end()
            && self.machine.stops_now() == Some(key)
        {
            self.shared.stop_chain.extend(self.behind(end.0));
        }
    }

    /// Returns the children to link behind this one, up to a child without a task or with a mailbox,
    /// which the supervisor has to close before it cancels the child.
    fn behind(&self, mut last: Key) -> impl Iterator<Item = Arc<Incarnation>> {
        iter::from_fn(move || {
            let key = self.machine.stops_after(last)?;
            let next = self.children.incarnation(key)?;
            if self.children.mailbox(key).is_some() {
                return None;
            }
            last = key;
            Some(Arc::clone(next))
        })
    }

    pub(super) fn abort(&mut self, key: Key) {
        if self.is_supervisor(key) {
            self.children.raise_below(key, StopLevel::Abort);
        } else {
            // Its end was reported when it failed, and is not reported as killed.
            let is_failing = self.machine.is_failing(key) && self.machine.is_ending();
            if is_failing && !self.is_brutally_killed(key) {
                self.shared.tree.missed_grace();
            }
            self.aborts.has_stopped = true;
            self.children.abort(key);
        }
    }

    fn is_brutally_killed(&self, key: Key) -> bool {
        let rules = self.machine.rules_of(key);
        rules.is_some_and(|rules| rules.shutdown == Shutdown::BrutalKill)
    }

    pub(super) fn is_supervisor(&self, key: Key) -> bool {
        self.machine.rules_of(key).is_some_and(|rules| rules.is_supervisor())
    }

    fn leak(&mut self, key: Key, incarnation: IncarnationNumber, now: Instant) {
        // A supervisor that doesn't end has leaked what is below it. Its own task can go.
        self.aborts.has_stopped = true;
        self.children.abort(key);
        self.leaked.insert((key, incarnation));
        self.shared.leaked(now, self.children.path(key), key, incarnation);
    }

    fn remove(&mut self, key: Key, incarnation: IncarnationNumber, now: Instant) {
        if self.shared.tree.has_listeners() {
            let path = self.children.path(key);
            self.shared.publish(now, path, incarnation, || EventKind::Removed);
        }
        self.remove_mailbox(key, now);
        if let Some(entry) = self.children.entry(key).filter(|entry| entry.serial.is_none()) {
            self.shared.note_required(entry.factory.name(), &[]);
        }
        self.children.remove(key);
        self.user_code.forget(key);
        self.fallbacks.remove(&key);
        self.lifetimes.remove(&key);
        self.told_ready.remove(&key);
        self.recent.forget_calls(key);
        self.health.remove(key);
        self.leases.remove(key);
    }

    /// Replaces the child with its fallback, under the child's name.
    fn replace(&mut self, key: Key, now: Instant) {
        let Some(spec) = self.fallbacks.remove(&key) else { return };
        self.remove_mailbox(key, now);
        self.children.replace(key, Arc::clone(&spec.factory));
        if let Some(mailbox) = spec.factory.mailbox() {
            self.bind_mailbox(key, &spec, mailbox);
        }
        self.health.remove(key);
        self.health.add(key, spec.health.as_ref());
        if let Some(further) = &spec.fallback {
            self.fallbacks.insert(key, Arc::clone(further));
        }
    }

    /// Logs and publishes an edge of a child's lifecycle.
    fn report(&self, report: &Report, step: &Step) {
        let Step { now, logged, published, .. } = *step;
        let killed = report.ending == Some("killed") && !self.is_killing_expected(report);
        if killed {
            self.shared.tree.missed_grace();
        }
        if !logged && !published {
            return;
        }
        let path = self.children.path(report.key);
        let exit = step.exit_of(report.key, report.incarnation);
        let reason = exit.filter(|_| report.ending.is_some()).map(|it| Arc::clone(&it.reason));
        if logged {
            let cause = self.children.incarnation(report.key).map(|it| it.start_cause);
            let at_debug = cause == Some(StartCause::Manual);
            let bounds = &self.shared.tree.log_bounds;
            log::report(bounds, report, &path, at_debug, killed, reason.as_deref(), now);
        }
        if published {
            let waits = report.to == Lifecycle::Restarting;
            let view = waits.then(|| self.machine.view(report.key, now)).flatten();
            let history = view.and_then(|view| view.history);
            let wait = history.and_then(|history| Some((history.attempt, history.next?.1)));
            let (from, to, after) = (report.from, report.to, report.after(now));
            let kind = || EventKind::Moved { from, to, after, reason, wait };
            self.shared.publish(now, path, report.incarnation, kind);
        }
    }

    /// Whether the child is always killed, or has leaked, which was logged then. A supervisor that was
    /// aborted reports its own children.
    fn is_killing_expected(&self, report: &Report) -> bool {
        self.is_brutally_killed(report.key)
            || self.leaked.contains(&(report.key, report.incarnation))
    }

    /// Logs and publishes what was decided of a child that has ended by itself.
    fn decided(
        &mut self,
        (key, incarnation, restart_type): (Key, IncarnationNumber, RestartType),
        reason: &Arc<ExitReason>,
        decision: Decision,
        levels: FailureLog,
        step: &Step,
    ) {
        let now = step.now;
        self.measure_decision(key, decision);
        let before = self.lifetimes.remove(&key).filter(|&(of, _)| of == incarnation);
        if !decision.gives_up() && !step.logged && !step.published {
            return;
        }
        let path = self.children.path(key);
        let lifetime = step.exit_of(key, incarnation).and_then(|exit| exit.lifetime);
        let lived = lifetime.or(before.map(|(_, lifetime)| lifetime));
        let permanent = restart_type == RestartType::Permanent;
        let returned = permanent && matches!(**reason, ExitReason::Normal);
        let supervisor = self.shared.path();
        let end = log::Ended { incarnation, reason, lived, returned };
        log::decided(&self.shared.tree.log_bounds, supervisor, &path, end, decision, levels);
        let publish = |kind| self.shared.publish(now, path.clone(), incarnation, || kind);
        if decision == Decision::FallBack {
            publish(EventKind::FellBack { reason: Arc::clone(reason) });
        }
        if let Decision::Pause { length } = decision {
            publish(EventKind::Paused { reason: Arc::clone(reason), length });
        }
        if decision.fails() {
            publish(EventKind::GaveUp { reason: Arc::clone(reason) });
            let at = self.shared.tree.wall_clock(now);
            let letter = DeadLetter::about_child(
                DeadLetterReason::GaveUp,
                path.clone(),
                incarnation,
                Arc::clone(reason),
                at,
            );
            self.shared.dead_letters.child(&letter, now);
        }
        if decision.gives_up() {
            self.given_up = Some((key, path));
        }
    }

    fn end_of(&self, finish: Finish) -> End {
        let cause = |key, reason| {
            let given_up = self.given_up.as_ref().filter(|it| it.0 == key);
            let child = given_up.map_or_else(|| self.children.path(key), |it| it.1.clone());
            Box::new(Cause { child, reason })
        };
        match finish {
            Finish::Stopped => End::Stopped,
            Finish::Aborted => End::Aborted,
            Finish::AutoShutdown => End::AutoShutdown,
            Finish::StartFailed { key, reason } => {
                let cause = cause(key, reason);
                let mut others = self.start_failures.clone();
                others.retain(|other| other.child != cause.child);
                End::StartFailed { cause, others }
            }
            Finish::Failed { key, reason } => {
                End::GaveUp { cause: cause(key, reason), cleanly: false }
            }
            Finish::Exit { key, reason, code } => match reason {
                // The supervisor below has ended for the same cause.
                ExitReason::Exit { child, source, .. } => {
                    let reason = (*source).clone();
                    End::Exit { cause: Box::new(Cause { child, reason }), code }
                }
                reason => End::Exit { cause: cause(key, reason), code },
            },
            Finish::Escalated { key, reason } => {
                let cleanly = self.blueprint.rules.gives_up_cleanly;
                End::GaveUp { cause: cause(key, reason), cleanly }
            }
        }
    }
}

fn phases(rules: &ChildRules) -> Phases {
    let is_supervisor = rules.is_supervisor();
    let grace = match rules.shutdown {
        Shutdown::Timeout(grace) if !is_supervisor => Some(grace),
        Shutdown::BrutalKill if !is_supervisor => Some(Duration::ZERO),
        _ => None,
    };
    Phases { signals_ready: !rules.spec.signals_itself, is_supervisor, grace }
}
