//! Applying the effects of the machine.

use std::time::Duration;

use super::fake_child::{Heart, Script};
use super::{Happening, Simulation, TranscriptLine};
use crate::core::{
    ChildAnswer, ConditionEffect, ConditionEvent, Decision, Effect, Finish, IncarnationNumber, Key,
    MachineEvent, Report,
};
use crate::exit::ExitReason;
use crate::policy::Resolution;

impl Simulation {
    pub(super) fn apply_effect(&mut self, effect: Effect) {
        match effect {
            Effect::Start { key, incarnation, cause, held } => {
                if let Some(until) = held {
                    let left = until - self.now;
                    self.act(format!("hold {} {left:?}", self.fakes[&key].name));
                }
                let name = format!("{}#{incarnation}", self.fakes[&key].name);
                self.transcript.push((self.now, TranscriptLine::Cause, format!("{name} {cause}")));
                self.act(format!("start {name}"));
                if let Heart::Manual(last) = &mut self.fakes.get_mut(&key).expect("a child").heart {
                    *last = None;
                }
                self.script(key, incarnation);
            }
            Effect::Condition(ConditionEffect::SeekLease { key }) => {
                self.act(format!("seek {}", self.fakes[&key].name))
            }
            Effect::Condition(ConditionEffect::EndLease { key, release }) => {
                let how = if release { "release" } else { "abandon" };
                self.act(format!("{how} {}", self.fakes[&key].name));
            }
            Effect::StaysDown { key } => {
                let line = format!("{} stays", self.fakes[&key].name);
                self.transcript.push((self.now, TranscriptLine::Other, line));
            }
            Effect::Cancel { key } => {
                let (name, stops) = (self.fakes[&key].name.clone(), self.fakes[&key].stops);
                self.act(format!("cancel {name}"));
                self.end_after(stops, key, ExitReason::Shutdown);
            }
            Effect::Close { key, all } => {
                let how = if all { "close at once" } else { "close" };
                let line = format!("{how} {}", self.fakes[&key].name);
                self.transcript.push((self.now, TranscriptLine::Other, line));
            }
            Effect::Abort { key } => {
                let (name, dies) = (self.fakes[&key].name.clone(), self.fakes[&key].dies);
                self.act(format!("abort {name}"));
                self.end_after(dies, key, ExitReason::Aborted);
            }
            Effect::Leaked { key, incarnation } => {
                self.act(format!("leaked {}#{incarnation}", self.fakes[&key].name));
            }
            Effect::Decided {
                key,
                decision: Decision::GiveUp { .. } | Decision::FailStart,
                ..
            } => {
                self.act(format!("gave up {}", self.fakes[&key].name));
            }
            Effect::Decided { key, decision: Decision::EndSupervisor, .. } => {
                self.act(format!("{} ends all", self.fakes[&key].name));
            }
            Effect::Decided { key, decision: Decision::FailSupervisor, .. } => {
                self.act(format!("{} fails all", self.fakes[&key].name));
            }
            Effect::Decided { key, decision: Decision::Pause { .. }, .. } => {
                self.act(format!("pause {}", self.fakes[&key].name));
            }
            Effect::Decided { key, decision: Decision::Decline, .. } => {
                self.act(format!("declined {}", self.fakes[&key].name));
            }
            Effect::Decided { key, decision: Decision::Escalate, .. } => {
                self.act(format!("escalated {}", self.fakes[&key].name));
            }
            Effect::Condition(ConditionEffect::Health { key, problem, .. }) => {
                let health = if problem.is_some() { "unhealthy" } else { "healthy" };
                self.act(format!("{health} {}", self.fakes[&key].name));
            }
            Effect::Condition(ConditionEffect::CheckHeartbeat { key, incarnation }) => {
                let last = match self.fakes[&key].heart {
                    Heart::Beats => Some(self.now),
                    Heart::Manual(last) => last,
                    Heart::Unanswered => return,
                };
                self.event(MachineEvent::Condition(ConditionEvent::Heartbeat {
                    key,
                    incarnation,
                    last,
                }));
            }
            Effect::Condition(ConditionEffect::RuntimeLate { late }) => {
                self.act(format!("late by {late:?}"))
            }
            Effect::Decided { key, decision: Decision::FallBack, .. } => {
                self.act(format!("replaced {}", self.fakes[&key].name));
                let fake = self.fakes.get_mut(&key).expect("a child");
                *fake = *fake.fallback.take().expect("a fallback");
            }
            Effect::Decided { .. } | Effect::Ended { .. } => {}
            Effect::Condition(ConditionEffect::Ask { key, incarnation, attempt, .. }) => {
                let name = &self.fakes[&key].name;
                self.act(format!("ask {name}#{incarnation} ({attempt})"));
                self.reply_to(key, incarnation);
            }
            Effect::Condition(ConditionEffect::Unanswered { key, incarnation }) => {
                self.act(format!("no answer {}#{incarnation}", self.fakes[&key].name));
            }
            Effect::Condition(ConditionEffect::Changed { key, .. }) => {
                self.act(format!("changed {}", self.fakes[&key].name))
            }
            Effect::Removed { key, .. } => self.act(format!("removed {}", self.fakes[&key].name)),
            Effect::Report(report) => self.report(report),
            Effect::Reply { ticket, answer } => {
                let answer = answer_text(&answer);
                let line = format!("reply {ticket}: {answer}");
                self.transcript.push((self.now, TranscriptLine::Other, line));
                self.answers.insert(ticket, answer);
            }
            Effect::Up => self.act("up".to_owned()),
            Effect::Finish(finish) => {
                let line = self.finish_text(&finish);
                self.act(line);
            }
        }
    }

    pub(super) fn end_after(&mut self, after: Option<Duration>, key: Key, reason: ExitReason) {
        let incarnation = self.invariants.children[&key].incarnation;
        if let Some(after) = after {
            self.schedule(after, key, incarnation, Happening::Exited(reason));
        }
    }

    pub(super) fn reply_to(&mut self, key: Key, incarnation: IncarnationNumber) {
        let fake = self.fakes.get_mut(&key).expect("a child");
        if fake.silent {
            return;
        }
        let (after, resolution) =
            fake.answers.pop_front().unwrap_or((Duration::ZERO, Resolution::Restart));
        self.schedule(after, key, incarnation, Happening::Answered(resolution.into()));
    }

    pub(super) fn script(&mut self, key: Key, incarnation: IncarnationNumber) {
        let fake = self.fakes.get_mut(&key).expect("a child");
        let script = fake.scripts.pop_front().unwrap_or(Script::Run);
        let Some(after) = fake.ready else { return };
        let happening = match script {
            Script::Run if !fake.options.facts.signals => return,
            Script::Run => Happening::Ready,
            Script::Ignore => Happening::Ignored,
            other => Happening::Exited(other.reason()),
        };
        self.schedule(after, key, incarnation, happening);
    }

    pub(super) fn schedule(
        &mut self,
        after: Duration,
        key: Key,
        incarnation: IncarnationNumber,
        what: Happening,
    ) {
        self.serial += 1;
        self.agenda.insert((self.now + after, self.serial), (key, incarnation, what));
    }

    pub(super) fn report(&mut self, report: Report) {
        let Report { key, from, to, ending, .. } = report;
        let ending = ending.map(|ending| format!(" ({})", ending.word())).unwrap_or_default();
        let line = format!("{}: {from} → {to}{ending}", self.fakes[&key].name);
        self.transcript.push((self.now, TranscriptLine::Edge(key), line));
    }

    pub(super) fn finish_text(&self, finish: &Finish) -> String {
        let name = |key: &Key| &self.fakes[key].name;
        match finish {
            Finish::Stopped => "finish stopped".to_owned(),
            Finish::Aborted => "finish aborted".to_owned(),
            Finish::AutoShutdown => "finish auto".to_owned(),
            Finish::Failed { key, reason } => {
                format!("finish failed {}: {}", name(key), reason.kind())
            }
            Finish::Escalated { key, reason } => {
                format!("finish escalated {}: {}", name(key), reason.kind())
            }
            Finish::Exit { key, reason, code } => {
                format!("finish exit {code} {}: {}", name(key), reason.kind())
            }
            Finish::StartFailed { key, reason } => {
                format!("finish start failed {}: {}", name(key), reason.kind())
            }
        }
    }

    /// Checks that nothing more happens by itself, and that every child that should be up is up.
    pub(in crate::core) fn check_rest(&self) {
        if let Err(broken) = self.invariants.check_rest(&self.machine) {
            panic!("broken: {broken}\n{}", self.tail());
        }
    }

    pub(super) fn check(&self, right: bool, what: &str) {
        assert!(right, "broken: {what}\n{}", self.tail());
    }
}

fn answer_text(answer: &ChildAnswer) -> String {
    match answer {
        ChildAnswer::Done => "done".to_owned(),
        ChildAnswer::Started(incarnation) => format!("started {incarnation}"),
        ChildAnswer::Ignored => "ignored".to_owned(),
        ChildAnswer::Gated => "gated".to_owned(),
        ChildAnswer::Withheld(why) => why.word().to_owned(),
        ChildAnswer::Dormant => "dormant".to_owned(),
        ChildAnswer::Failed(reason) => format!("failed {}", reason.kind()),
        ChildAnswer::Running => "running".to_owned(),
        ChildAnswer::Restarting => "restarting".to_owned(),
        ChildAnswer::InvalidState(lifecycle) => format!("invalid state {lifecycle}"),
        ChildAnswer::NotFound => "not found".to_owned(),
        ChildAnswer::ShuttingDown => "shutting down".to_owned(),
        ChildAnswer::MaxChildren(max) => format!("max {max}"),
        ChildAnswer::Stopped => "stopped".to_owned(),
        ChildAnswer::Spent => "spent".to_owned(),
    }
}
