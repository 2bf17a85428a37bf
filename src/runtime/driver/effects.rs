//! Doing what the machine says, and telling whoever listens.

use std::sync::Arc;
use std::time::Instant;

use super::{Caller, Driver, Ending, Step};
use crate::child::StopLevel;
use crate::core::{
    self, ANSWER_WITHIN, Decision, Effect, Finish, Incarnation, Key, Machine, Report, Ticket,
};
use crate::dead_letter::{DeadLetter, DeadLetterReason, Provenance};
use crate::error::ControlError;
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::policy::{FailureLog, Shutdown, StartCause};
use crate::runtime::end::{Cause, End};
use crate::runtime::line::Link;
use crate::runtime::request::{Begun, Started};
use crate::runtime::trace;
use crate::status::EventKind;

impl<M: Machine> Driver<M> {
    /// Where it lies: an effect is moved in pieces of another width than it was written in, for which
    /// the processor waits. That was a fortieth of a restart's time.
    pub(super) fn perform(&mut self, effect: &mut Effect, step: &mut Step<'_>) {
        let now = step.now;
        match *effect {
            Effect::Start { key, incarnation, cause } => {
                // It was brought back, and that may not have been told.
                self.given_up.take_if(|it| it.0 == key);
                self.lived.remove(&key);
                self.reopen_mailbox(key);
                if let Some(options) = self.machine.options(key) {
                    let rules = &self.hub.blueprint.rules;
                    self.tasks.start(key, incarnation, cause, rules, options);
                }
            }
            Effect::Hold { key, until } => {
                if let Some(mailbox) = self.mailbox(key) {
                    mailbox.keep_back(until);
                }
            }
            Effect::Cancel { key } => {
                if self.is_due(now) {
                    self.asked.insert(key, ());
                }
                if self.heeds_edges || self.supervises {
                    self.close_mailbox(key);
                }
                match self.tasks.is_asked(key) {
                    Some(false) => {
                        self.line_up(key);
                        self.tasks.cancel(key, self.machine.returns(key));
                    }
                    // The end of the child behind it has.
                    Some(true) => self.line_up_more(key),
                    None => {}
                }
            }
            Effect::Abort { key } if self.asked.get(&key).is_some() => {
                if let Some(incarnation) = self.tasks.runs(key) {
                    self.late.push_back((key, incarnation));
                }
            }
            Effect::Abort { key } => self.abort(key),
            Effect::Report(ref report) => {
                self.watch(report);
                self.report(report, step);
                if matches!(report.to, Lifecycle::Stopped | Lifecycle::Errored) {
                    self.note_down(report.key, step);
                }
            }
            Effect::Health { key, incarnation, ref mut problem } => {
                self.is_well(key, incarnation, problem.take(), now);
            }
            Effect::Leaked { key, incarnation } => {
                self.leak(key, incarnation, now);
                self.note_down(key, step);
            }
            Effect::Ended { key, incarnation, ref reason, lived } => {
                let reason = self.audience.is_there().then(|| Arc::clone(reason));
                step.ending = Some(Ending { key, incarnation, reason, lived });
            }
            Effect::Ask { key, incarnation, attempt, ref mut reason } => {
                let reason = std::mem::replace(&mut **reason, ExitReason::Normal);
                self.ask_about((key, incarnation), attempt, reason, step);
            }
            Effect::Unanswered { key, incarnation } => {
                let path = self.tasks.path(&self.hub, key);
                let problem = format!("didn't answer within {ANSWER_WITHIN:?}");
                trace::undecided(&self.hub, &path, incarnation, &problem);
            }
            Effect::Changed { key, ref changes } => self.tasks.change(key, changes),
            Effect::Decided { key, incarnation, ref reason, decision, log } => {
                self.decided((key, incarnation), reason, decision, log, step);
                self.note_down(key, step);
            }
            Effect::Replaced { key } => self.replaced(key),
            Effect::Stays { key } => {
                self.note_down(key, step);
                self.tasks.let_go(key);
            }
            Effect::Reply { ticket, ref mut answer } => {
                let answer = std::mem::replace(answer, core::Answer::Done);
                self.reply(ticket, answer, step);
            }
            Effect::Removed { key, incarnation } => {
                if self.audience.listens {
                    let path = self.tasks.path(&self.hub, key);
                    self.hub.publish(now, path, incarnation, || EventKind::Removed);
                }
                self.take_mailbox(key);
                self.tasks.remove(key);
                self.fallbacks.remove(&key);
                self.lived.remove(&key);
                self.health.remove(key);
            }
            Effect::Up => {
                trace::up(&self.hub);
                self.hub.progress.up();
                if let Some(ctx) = &self.above {
                    ctx.ready();
                }
            }
            Effect::Finish(ref mut finish) => {
                let finish = std::mem::replace(&mut **finish, Finish::Stopped);
                self.end = Some(match self.end_of(finish) {
                    // It would have ended like that, but had to be made to.
                    End::Stopped | End::AutoShutdown if self.heard == StopLevel::Abort => {
                        End::Aborted
                    }
                    end => end,
                });
            }
        }
    }

    /// If this child's end is waited for in an ordered stop, those before it need not wait for this
    /// supervisor then. If nobody stops in order any more, nobody is lined up.
    fn line_up(&self, key: Key) {
        match (self.machine.stops_now(), self.tasks.runs(key)) {
            (Some(now), Some(incarnation)) if now == key => {
                self.hub.line.set(self.links((key, incarnation)));
            }
            (None, _) => self.hub.line.cut(),
            _ => {}
        }
    }

    /// The same if some were lined up, and there are others behind them.
    fn line_up_more(&self, key: Key) {
        if let Some(end) = self.hub.line.end()
            && self.machine.stops_now() == Some(key)
        {
            self.hub.line.extend(self.links(end));
        }
    }

    /// Who may be asked by the end of this run, and so on.
    fn links(&self, mut last: (Key, Incarnation)) -> impl Iterator<Item = Link> {
        // In a group, who runs mostly does. The task of one who does not is let go when that is told.
        let returns = !self.machine.is_ending();
        std::iter::from_fn(move || {
            let run = self.tasks.to_be_asked(self.machine.stops_after(last.0)?, returns)?;
            let behind = std::mem::replace(&mut last, (run.key, run.incarnation()));
            Some(Link { behind, run })
        })
    }

    pub(super) fn abort(&self, key: Key) {
        self.tasks.abort(key, self.is_supervisor(key));
    }

    pub(super) fn is_supervisor(&self, key: Key) -> bool {
        self.machine.options(key).is_some_and(|options| options.supervisor.is_some())
    }

    fn end_of(&self, finish: Finish) -> End {
        let cause = |key, reason| {
            let given_up = self.given_up.as_ref().filter(|it| it.0 == key);
            let child = given_up.map_or_else(|| self.tasks.path(&self.hub, key), |it| it.1.clone());
            Box::new(Cause { child, reason })
        };
        match finish {
            Finish::Stopped => End::Stopped,
            Finish::Aborted => End::Aborted,
            Finish::AutoShutdown => End::AutoShutdown,
            Finish::StartFailed { key, reason } => End::StartFailed { cause: cause(key, reason) },
            Finish::Failed { key, reason } => {
                End::GaveUp { cause: cause(key, reason), cleanly: false }
            }
            Finish::Exit { key, reason, code } => match reason {
                // A supervisor below says so: it is the same end.
                ExitReason::Exit { child, source, .. } => {
                    let reason = (*source).clone();
                    End::Exit { cause: Box::new(Cause { child, reason }), code }
                }
                reason => End::Exit { cause: cause(key, reason), code },
            },
            Finish::Escalated { key, reason } => {
                let cleanly = self.hub.blueprint.rules.gives_up_cleanly;
                End::GaveUp { cause: cause(key, reason), cleanly }
            }
        }
    }

    fn report(&mut self, report: &Report, step: &Step<'_>) {
        if !self.audience.is_there() {
            return;
        }
        let path = self.tasks.path(&self.hub, report.key);
        let ending = step.ending(report.key, report.incarnation);
        let reason = ending.filter(|_| report.ending.is_some()).and_then(|it| it.reason.clone());
        if self.audience.reads {
            let by_hand = self.tasks.cause(report.key) == Some(StartCause::Manual);
            let rules = &self.hub.blueprint.rules;
            let options = self.machine.options(report.key);
            let shutdown = options.map(|options| rules.shutdown(options));
            let brutal = shutdown == Some(Shutdown::BrutalKill);
            trace::report(report, &path, by_hand, brutal, reason.as_deref());
        }
        if self.audience.listens {
            let waits = report.to == Lifecycle::Restarting;
            let view = waits.then(|| self.machine.view(report.key, step.now)).flatten();
            let history = view.and_then(|view| view.history);
            let wait = history.and_then(|history| Some((history.attempt, history.next?.1)));
            let (from, to, after) = (report.from, report.to, report.after);
            let kind = || EventKind::Moved { from, to, after, reason, wait };
            self.hub.publish(step.now, path, report.incarnation, kind);
        }
    }

    fn leak(&mut self, key: Key, incarnation: Incarnation, now: Instant) {
        // A supervisor that did not end has leaked what is below it; the rest of it goes now.
        self.tasks.abort_task(key);
        self.leaked.insert((key, incarnation), ());
        self.hub.leaked(now, self.tasks.path(&self.hub, key), key, incarnation);
    }

    fn decided(
        &mut self,
        (key, incarnation): (Key, Incarnation),
        reason: &Arc<ExitReason>,
        decision: Decision,
        log: FailureLog,
        step: &Step<'_>,
    ) {
        let now = step.now;
        let before = self.lived.remove(&key).filter(|&(of, _)| of == incarnation);
        if !decision.is_accounted_for() && !self.audience.is_there() {
            return;
        }
        let path = self.tasks.path(&self.hub, key);
        let ending = step.ending(key, incarnation);
        let lived = ending.and_then(|ending| ending.lived);
        let lived = lived.or(before.map(|(_, lived)| lived)).unwrap_or_default();
        trace::decided(&self.hub, &path, incarnation, reason, lived, decision, log);
        if decision == Decision::FallBack {
            let reason = Arc::clone(reason);
            self.hub.publish(now, path.clone(), incarnation, || EventKind::FellBack { reason });
        }
        if let Decision::Pause { length } = decision {
            let reason = Arc::clone(reason);
            let kind = || EventKind::Paused { reason, length };
            self.hub.publish(now, path.clone(), incarnation, kind);
        }
        if decision.is_accounted_for() {
            self.given_up = Some(Box::new((key, path.clone())));
        }
        if decision.fails() {
            self.hub.publish(now, path.clone(), incarnation, || EventKind::GaveUp {
                reason: Arc::clone(reason),
            });
            let at = self.hub.tree.wall(now);
            let letter = DeadLetter::about_child(
                DeadLetterReason::GaveUp,
                path.clone(),
                incarnation,
                Arc::clone(reason),
                at,
            );
            self.hub.send_letter(&letter, &Provenance::default(), now);
        }
    }

    /// The child grows from another seed from now on, under its old name.
    fn replaced(&mut self, key: Key) {
        let Some(spec) = self.fallbacks.remove(&key) else { return };
        self.take_mailbox(key);
        let mailbox = spec.seed.mailbox();
        self.tasks.replace(key, Arc::clone(&spec.seed), mailbox.is_some());
        self.supervises |= spec.options.supervisor.is_some();
        if let Some(mailbox) = mailbox {
            self.give_mailbox(key, &spec, &mailbox);
        }
        self.health.remove(key);
        self.health.add(key, spec.health.as_ref());
        if let Some(further) = &spec.fallback {
            self.fallbacks.insert(key, Arc::clone(further));
        }
    }

    fn reply(&mut self, ticket: Ticket, answer: core::Answer, step: &mut Step<'_>) {
        let asking = step.asking.take_if(|(it, _)| *it == ticket).map(|(_, caller)| caller);
        let Some(caller) = asking.or_else(|| self.callers.remove(&ticket)) else { return };
        let Caller { child, call, answer: caller } = caller;
        self.answered = true;
        let path = || child.under(self.hub.path());
        let result = match answer {
            core::Answer::Done => Ok(Begun::Done),
            core::Answer::Ignored => Ok(Begun::Declined),
            core::Answer::Gated => Ok(Begun::Gated),
            core::Answer::Dormant => Ok(Begun::Dormant),
            core::Answer::Started(incarnation) => Ok(Begun::Up(incarnation)),
            core::Answer::Failed(reason) => {
                Err(ControlError::ActivationFailed { path: path(), reason })
            }
            core::Answer::Running => Err(ControlError::Running { path: path() }),
            core::Answer::Restarting => Err(ControlError::Restarting { path: path() }),
            core::Answer::Unfit(state) => {
                Err(ControlError::InvalidState { path: path(), state, call })
            }
            core::Answer::NotFound => Err(ControlError::NotFound { path: path() }),
            core::Answer::ShuttingDown => Err(self.shutting_down()),
            core::Answer::MaxChildren(max) => Err(self.max_children(max)),
            core::Answer::Stopped => Err(ControlError::Stopped { path: path() }),
        };
        let result = result.map(|result| Started { child, result });
        // A caller who has gone away needs no answer.
        let _ = caller.send(result);
    }

    pub(super) fn shutting_down(&self) -> ControlError {
        ControlError::ShuttingDown { path: self.hub.path().clone() }
    }

    pub(super) fn max_children(&self, max: usize) -> ControlError {
        ControlError::MaxChildren { path: self.hub.path().clone(), max }
    }
}
