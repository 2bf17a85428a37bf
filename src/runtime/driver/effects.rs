//! Applying the machine's effects.

use std::iter;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::state::Driver;
use crate::child::{Incarnation, Phases, StopLevel};
use crate::core::{
    ConditionEffect, Decision, Effect, Ending, Finish, IncarnationNumber, Key, Report,
};
use crate::exit::ExitReason;
use crate::policy::{AbortKind, ChildRules, Shutdown, StartCause};
use crate::runtime::attach::Step;
use crate::runtime::outcome::{Cause, End};

impl Driver {
    pub(super) fn apply_effect(&mut self, effect: &Effect, step: &Step, now: Instant) {
        match *effect {
            Effect::Start { key, incarnation, cause, .. } => self.start(key, incarnation, cause),
            Effect::Cancel { key } => self.cancel(key, now),
            Effect::Close { key, all } => {
                if self.machine.is_supervisor(key) {
                    let level = if all { StopLevel::CloseAll } else { StopLevel::Close };
                    self.children.raise_below(key, level);
                }
            }
            Effect::Abort { key } if self.aborts.cancelled.contains(&key) => {
                let incarnation = self.children.incarnation(key);
                self.aborts.postponed.extend(incarnation.map(|it| (key, it.number)));
            }
            Effect::Abort { key } => self.abort(key, now),
            Effect::Report(ref report @ Report { ending: Some(Ending::Killed(_)), .. }) => {
                if self.attached(step, now).1.killed(report) == Some(AbortKind::Missed) {
                    self.missed_grace(report.key, now);
                }
            }
            Effect::Report(_) => {}
            Effect::Leaked { key, incarnation } => self.leak(key, incarnation, now),
            Effect::Ended { key, ref reason, .. } => {
                self.note_start_failure(key, reason);
                if !reason.is_clean() {
                    self.shared.tree.counters.failures.count();
                }
            }
            Effect::Decided { key, decision, .. } => {
                if decision.gives_up() {
                    self.given_up = Some((key, self.children.path(key)));
                }
                if decision == Decision::FallBack {
                    self.children.fall_back(key);
                }
            }
            Effect::Reply { ticket, ref answer } => {
                self.reply_in_turn(ticket, answer.clone(), now);
            }
            Effect::StaysDown { .. } => {}
            Effect::Removed { key, .. } => self.remove(key),
            Effect::Up => {
                self.shared.progress.up();
                if let Some(ctx) = &self.above {
                    ctx.ready();
                }
            }
            Effect::Finish(ref finish) => {
                self.end = Some(match self.end_of(finish.clone()) {
                    // A clean end that had to be forced.
                    End::Stopped | End::AutoShutdown if self.seen_level == StopLevel::Abort => {
                        End::Aborted
                    }
                    end => end,
                });
            }
            Effect::Condition(ConditionEffect::Changed { key, ref changes }) => {
                self.children.change_properties(key, changes);
            }
            Effect::Condition(_) => {}
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
        if let Some(rules) = self.machine.rules_of(key) {
            let (watched, phases) = (rules.watchdog.is_some(), phases(rules));
            self.children.start(key, incarnation, cause, watched, phases);
        }
    }

    fn cancel(&mut self, key: Key, now: Instant) {
        self.aborts.has_stopped |= !self.machine.is_supervisor(key);
        if self.is_due(now) {
            self.aborts.cancelled.insert(key);
        }
        let Some(incarnation) = self.children.incarnation(key) else { return };
        if incarnation.cell.level() == StopLevel::None {
            self.start_stop_chain(key);
            self.children.cancel(key);
        } else {
            self.extend_stop_chain(key);
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

    pub(super) fn abort(&mut self, key: Key, now: Instant) {
        if self.machine.is_supervisor(key) {
            if let Some(incarnation) = self.children.incarnation(key)
                && (self.machine.abort_kind(key) == Some(AbortKind::Brutal) || self.is_brutal())
            {
                incarnation.mark_brutal();
            }
            self.children.raise_below(key, StopLevel::Abort);
        } else {
            // Its end was reported when it failed, and is not reported as killed.
            if self.machine.is_failing(key)
                && self.machine.abort_kind(key) == Some(AbortKind::Missed)
            {
                self.missed_grace(key, now);
            }
            self.aborts.has_stopped = true;
            self.children.abort(key);
        }
    }

    /// Notes that a worker was aborted because it missed its grace, if that is part of a stop. A supervisor notes those
    /// below it itself.
    fn missed_grace(&self, key: Key, now: Instant) {
        if self.machine.is_ending() && !self.machine.is_supervisor(key) && !self.is_brutal() {
            self.shared.progress.stopping(now);
            self.shared.note_killed(&self.children.path(key));
        }
    }

    /// Whether the supervisor above aborts this one without a grace.
    fn is_brutal(&self) -> bool {
        self.above.as_ref().is_some_and(|ctx| ctx.incarnation.is_brutal())
    }

    fn leak(&mut self, key: Key, incarnation: IncarnationNumber, now: Instant) {
        let waits = self
            .machine
            .rules_of(key)
            .is_some_and(|rules| self.children.waits_for_thread(key, rules.leak_timeout));
        if waits && self.machine.abort_kind(key) == Some(AbortKind::Missed) {
            self.missed_grace(key, now);
        }
        // A supervisor that doesn't end has leaked what is below it. Its own task can go.
        self.aborts.has_stopped = true;
        self.children.abort(key);
        self.leaked.insert((key, incarnation));
        self.shared.leaked(now, self.children.path(key), (key, incarnation), waits);
    }

    fn remove(&mut self, key: Key) {
        if let Some(entry) = self.children.entry(key).filter(|entry| entry.serial.is_none()) {
            self.shared.note_required(entry.factory.name(), &[]);
        }
        self.children.remove(key);
        self.user_code.forget(key);
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
        _ if is_supervisor => None,
        Shutdown::BrutalKill => Some(Duration::ZERO),
        shutdown => shutdown.grace(),
    };
    Phases { signals_ready: !rules.spec.facts.signals_itself, is_supervisor, grace }
}
