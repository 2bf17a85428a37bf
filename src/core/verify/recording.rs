//! A recording of a machine: a snapshot, each event after it with the answers of the user's code, and what followed.
//!
//! # Invariants
//!
//! 1. A replay has the same effects and ends in the same state: nothing that a step depends on is left out.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::core::user_code::{UserCalls, UserCode};
use crate::core::verify::fingerprint::Fingerprint;
use crate::core::{Effect, Key, Machine, MachineEvent};
use crate::exit::ExitReason;
use crate::policy::{Backoff, CurvePosition, OnExit, RetryAfter, Trigger};

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Recording {
    snapshot: Machine,
    steps: Vec<RecordedStep>,
}

#[derive(Debug)]
struct RecordedStep {
    event: MachineEvent,
    now: Instant,
    answers: VecDeque<UserAnswer>,
    effects: String,
}

/// An answer of the user's code, for a child.
#[derive(Clone, Debug, PartialEq)]
enum UserAnswer {
    OnError(Key, Option<OnExit>),
    RetryAfter(Key, Option<Duration>),
    Delay(Key, Option<Duration>),
    Spread(Key, Duration),
}

impl Recording {
    pub(super) fn of(machine: &Machine) -> Self {
        Self { snapshot: machine.clone(), steps: Vec::new() }
    }

    /// Records a step whose answers the listener has heard.
    pub(super) fn push(
        &mut self,
        event: MachineEvent,
        now: Instant,
        listener: Listener<'_>,
        effects: &[Effect],
    ) {
        let (answers, effects) = (listener.heard.into(), format!("{effects:?}"));
        self.steps.push(RecordedStep { event, now, answers, effects });
    }

    /// Replays the recording, and compares it with the machine that was recorded.
    pub(super) fn check(self, machine: &Machine) {
        let (mut replayed, end) = (self.snapshot, self.steps.last().map(|step| step.now));
        for RecordedStep { event, now, answers, effects } in self.steps {
            let (what, mut prompter) = (format!("{event:?}"), Prompter(answers));
            let mut again = Vec::new();
            replayed.on_event(event, now, &mut prompter, &mut again);
            assert_eq!(format!("{again:?}"), effects, "after {what}");
            assert_eq!(prompter.0, [], "after {what}, an answer is left");
        }
        let print = |machine: &Machine| {
            let mut print = Fingerprint::new(end?);
            print.machine(machine);
            Some(print.read())
        };
        assert_eq!(print(&replayed), print(machine), "the replay ends in the same state");
    }
}

/// Calls the user's code, and keeps its answers.
pub(super) struct Listener<'a> {
    calls: &'a mut UserCalls,
    heard: Vec<UserAnswer>,
}

impl<'a> Listener<'a> {
    pub(super) fn new(calls: &'a mut UserCalls) -> Self {
        Self { calls, heard: Vec::new() }
    }
}

impl UserCode for Listener<'_> {
    fn on_error(&mut self, key: Key, trigger: &Trigger, reason: &ExitReason) -> Option<OnExit> {
        let answer = self.calls.on_error(key, trigger, reason);
        self.heard.push(UserAnswer::OnError(key, answer));
        answer
    }

    fn retry_after(
        &mut self,
        key: Key,
        functions: &RetryAfter,
        reason: &ExitReason,
    ) -> Option<Duration> {
        let answer = self.calls.retry_after(key, functions, reason);
        self.heard.push(UserAnswer::RetryAfter(key, answer));
        answer
    }

    fn delay(&mut self, key: Key, backoff: &Backoff, position: CurvePosition) -> Option<Duration> {
        let answer = self.calls.delay(key, backoff, position);
        self.heard.push(UserAnswer::Delay(key, answer));
        answer
    }

    fn spread(&mut self, key: Key, backoff: &Backoff, wait: Duration) -> Duration {
        let answer = self.calls.spread(key, backoff, wait);
        self.heard.push(UserAnswer::Spread(key, answer));
        answer
    }
}

/// Gives the answers of a recording.
struct Prompter(VecDeque<UserAnswer>);

impl Prompter {
    fn next(&mut self) -> UserAnswer {
        self.0.pop_front().expect("an answer that was recorded")
    }
}

impl UserCode for Prompter {
    fn on_error(&mut self, key: Key, _trigger: &Trigger, _reason: &ExitReason) -> Option<OnExit> {
        match self.next() {
            UserAnswer::OnError(of, answer) if of == key => answer,
            other => panic!("{other:?} was recorded"),
        }
    }

    fn retry_after(
        &mut self,
        key: Key,
        _functions: &RetryAfter,
        _reason: &ExitReason,
    ) -> Option<Duration> {
        match self.next() {
            UserAnswer::RetryAfter(of, answer) if of == key => answer,
            other => panic!("{other:?} was recorded"),
        }
    }

    fn delay(&mut self, key: Key, _: &Backoff, _: CurvePosition) -> Option<Duration> {
        match self.next() {
            UserAnswer::Delay(of, answer) if of == key => answer,
            other => panic!("{other:?} was recorded"),
        }
    }

    fn spread(&mut self, key: Key, _: &Backoff, _: Duration) -> Duration {
        match self.next() {
            UserAnswer::Spread(of, answer) if of == key => answer,
            other => panic!("{other:?} was recorded"),
        }
    }
}
