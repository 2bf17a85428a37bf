//! Who goes with whom, and in which order.
//!
//! A failure *condemns* those of its range that are there: they must go before anybody of the range
//! is started, and their ends are free. Knows decisions, starts and stops; nothing of sweeps.
//!
//! # Invariants
//!
//! 1. Nobody of a range is started before all of it has gone, nor before the wait is over.
//! 2. A restart is one that was decided, and nothing has come between.
//! 3. In turn, nobody is started while one before him, started in the same way, is not ready.
//! 4. Whoever is asked to end with others is asked when those behind him have gone.
//! 5. An end is decided, unless it is free, or told to the one who asked for the start.
//! 6. A temporary child that has ended is forgotten, unless it leaked, is yet to be started, was to
//!    be restarted, or whoever called it back by hand was told that it did not come up.
//! 7. Once the child that a group waits for is stopped by hand, its group stays down.
//! 8. Nobody is started by hand to be asked to end at once.
//! 9. A supervisor that is to end, does.
//! 10. It asks its children in the order that it has said, unless it aborts them.
//! 11. A group waits for one child.

use std::time::Instant;

use super::super::state::{Down, State, is_live};
use super::super::{ChildAnswer, ChildRequest, IncarnationNumber, Key, Machine, MachineEvent};
use super::{Broken, Question, Witness, ensure, is_ending};
use crate::lifecycle::Lifecycle;
use crate::policy::{AutoShutdown, RestartType, Start, StartCause, Strategy};

/// Who stops now, and who is said to come after him. Nobody does while those that are down are passed,
/// which may take several events.
pub(super) fn line(machine: &Machine) -> Vec<(Key, IncarnationNumber)> {
    let live = |key: &Key| machine.children().state(*key).is_some_and(is_live);
    let first = machine.stops_now().filter(live);
    let line = std::iter::successors(first, |&key| machine.stops_after(key));
    line.filter_map(|key| Some((key, machine.children().slots.get(key)?.incarnation))).collect()
}

impl Witness {
    /// Of those who were in the line, the first one who is there stops now, or will when those who are
    /// down have been passed once more; and the others come after him as they did.
    pub(super) fn check_line(
        &self,
        before: &[(Key, IncarnationNumber)],
        machine: &Machine,
    ) -> Result<(), Broken> {
        let there = |&(key, incarnation): &(Key, IncarnationNumber)| {
            let child = &self.children[&key];
            child.live && child.incarnation == incarnation
        };
        let Some(first) = before.iter().find(|it| there(it)).filter(|_| !self.aborting) else {
            return Ok(());
        };
        let right = match machine.stops_now() {
            Some(key) if key == first.0 => *first == before[0] || self.children[&key].cancelled,
            Some(key) => machine.is_to_stop(first.0) && !self.children[&key].live,
            None => machine.is_to_stop(first.0),
        };
        ensure(right, "who was in the line is asked when it is his turn")?;
        let asked = |key| self.children[&key].cancelled || self.children[&key].aborted;
        let pairs = before.iter().zip(&before[1..]).filter(|(it, next)| there(it) && there(next));
        let goes_on = pairs
            .map(|(behind, next)| (behind.0, next.0))
            .all(|(behind, next)| machine.stops_after(behind) == Some(next) || asked(next));
        ensure(goes_on, "whoever was in the line keeps his place")
    }

    /// Those of the child's range that are there must go.
    pub(super) fn condemn(&mut self, key: Key, with_itself: bool) {
        if self.strategy == Strategy::OneForOne {
            return;
        }
        self.abandoned = false;
        let range = self.strategy.affected(self.children[&key].place);
        for (&other, child) in &mut self.children {
            let concerned = range.contains(&child.place) && (with_itself || other != key);
            if child.question == Question::Open && concerned {
                child.question = Question::Overtaken;
            }
            if child.live && concerned {
                let from = *range.start();
                child.condemned = Some(child.condemned.map_or(from, |before| before.min(from)));
            }
        }
    }

    /// Notes of an event what cannot be seen of its effects.
    pub(super) fn note(&mut self, event: &MachineEvent, machine: &Machine, now: Instant) {
        match *event {
            MachineEvent::Healthy { key, incarnation } => {
                let child = self.child(key);
                if child.live && child.incarnation == incarnation {
                    (child.streak, child.drawn) = (0, 0);
                    child.own.forgive();
                }
            }
            MachineEvent::StopSelf { key, incarnation } => {
                let child = self.child(key);
                let runs = matches!(child.lifecycle, Lifecycle::Active | Lifecycle::Activating);
                child.itself |= runs && child.live && child.incarnation == incarnation;
            }
            MachineEvent::Request { key, request, .. } if !self.ending => {
                let child = &self.children[&key];
                let runs = matches!(child.lifecycle, Lifecycle::Active | Lifecycle::Activating);
                let waits = child.lifecycle == Lifecycle::Restarting;
                match request {
                    ChildRequest::RestartRunning if runs && child.live => self.condemn(key, true),
                    ChildRequest::Wake if waits => {
                        self.child(key).held = None;
                        self.hurry(key, now);
                    }
                    ChildRequest::Terminate if waits => self.abandon(key, now),
                    ChildRequest::Retry if is_parked(machine, key) => {
                        self.granted.clear();
                        self.child(key).own.clear();
                        self.abandoned = false;
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// The child's wait is over, and so is that of its group.
    fn hurry(&mut self, key: Key, now: Instant) {
        for (&other, child) in &mut self.children {
            if other == key || self.strategy != Strategy::OneForOne {
                child.due = child.due.map(|due| due.min(now));
            }
        }
    }

    /// The rest of the group stays down, if it has not begun to start.
    fn abandon(&mut self, key: Key, now: Instant) {
        let waits = self.children[&key].due.is_some_and(|due| due > now);
        self.abandoned |= self.strategy != Strategy::OneForOne && waits;
    }

    pub(super) fn check_start(
        &mut self,
        key: Key,
        cause: StartCause,
        now: Instant,
    ) -> Result<(), Broken> {
        let child = &self.children[&key];
        if cause == StartCause::Restart {
            let decided = child.due.is_some_and(|due| due <= now);
            ensure(decided, "a restart was decided, and its wait is over")?;
        }
        for (_, other) in self.present() {
            let waits = other.lifecycle == Lifecycle::Restarting;
            if waits && other.due.is_some_and(|due| due > now) {
                let range = self.strategy.affected(other.place);
                ensure(!range.contains(&child.place), "a group waits before it starts")?;
            }
            let condemned = other.live && other.condemned.is_some_and(|from| from <= child.place);
            // Who is down already may be called back while the rest of his range is parked.
            let called = matches!(cause, StartCause::Manual | StartCause::OnMessage);
            if condemned && !called {
                return Err("nobody of a range is started before all of it has gone".to_owned());
            }
        }
        let again = cause == StartCause::Group && child.incarnation > 0;
        if self.abandoned && again && child.nature.requires.is_empty() {
            return Err("a group whose wait was ended by hand stays down".to_owned());
        }
        let swept = |cause| matches!(cause, StartCause::Initial | StartCause::Group);
        if self.ordered && self.rules.start == Start::Sequential && swept(cause) {
            let early = self.present().any(|(_, other)| {
                other.place < child.place
                    && other.lifecycle == Lifecycle::Activating
                    && other.cause.is_some_and(swept)
                    && other.nature.requires.is_empty()
            });
            let free = !child.nature.requires.is_empty();
            ensure(free || !early, "each is started when the one before is ready")?;
        }
        self.child(key).cause = Some(cause);
        Ok(())
    }

    pub(super) fn check_cancel(&self, key: Key) -> Result<(), Broken> {
        let in_vain = self.asked.is_some() && self.fresh.contains(&key);
        ensure(!in_vain, "nobody is started by hand to be asked to end at once")?;
        let child = &self.children[&key];
        let by_itself = child.itself || child.lifecycle == Lifecycle::Errored;
        let asked = self.asked.and_then(|ticket| self.waiting.get(&ticket));
        let by_hand =
            asked.is_some_and(|&(of, request)| of == key && request == ChildRequest::Terminate);
        let together = child.condemned.is_some() || (self.ending && !self.aborting);
        if !self.ordered || !together || by_itself || by_hand {
            return Ok(());
        }
        // Who was called back by hand meanwhile is not asked.
        let behind = self.present().any(|(_, other)| {
            let asked = self.ending || other.condemned.is_some();
            other.live && other.place > child.place && asked
        });
        ensure(!behind, "whoever is asked to end is the last one that is there")
    }

    /// Checks what was answered to a caller.
    pub(super) fn check_answer(
        &mut self,
        key: Key,
        request: ChildRequest,
        answer: &ChildAnswer,
    ) -> Result<(), Broken> {
        let child = self.child(key);
        match (request, answer) {
            (ChildRequest::RestartStopped, ChildAnswer::Failed(_)) => {
                child.told_failed = true;
                Ok(())
            }
            (ChildRequest::Terminate | ChildRequest::Delete, ChildAnswer::Done) => {
                ensure(!child.live, "who was told that a child is down finds it down")
            }
            (_, ChildAnswer::Started(incarnation)) => {
                ensure(child.incarnation == *incarnation, "an answer names the incarnation")
            }
            _ => Ok(()),
        }
    }

    /// Whether the child is a significant one whose end is to be the end of all.
    pub(super) fn is_last(&self, key: Key) -> bool {
        let mut others = self.present().filter(|&(other, _)| other != key);
        let significant = self.children[&key].nature.options.significant;
        significant
            && match self.rules.auto_shutdown {
                AutoShutdown::Never => false,
                AutoShutdown::AnySignificant => true,
                AutoShutdown::AllSignificant => others.all(|(_, other)| {
                    !other.nature.options.significant || other.lifecycle == Lifecycle::Stopped
                }),
            }
    }

    pub(super) fn check_end(&self, machine: &Machine) -> Result<(), Broken> {
        let over = is_ending(machine) || self.finished.is_some();
        let awaited =
            self.present().filter(|(_, child)| child.lifecycle == Lifecycle::Restarting).count();
        let alone = self.strategy == Strategy::OneForOne;
        ensure(over || alone || awaited <= 1, "a group waits for one child")?;
        ensure(over || !self.ending, "what is to end, ends")?;
        let children = machine.children();
        let left = children.significant_left - children.significant_leaving;
        let auto = match self.rules.auto_shutdown {
            // A group may be about to start the others, or to say whether it will.
            AutoShutdown::AllSignificant => {
                self.significant_left && left == 0 && !machine.decides_later()
            }
            AutoShutdown::AnySignificant | AutoShutdown::Never => self.significant_left,
        };
        ensure(over || !auto || !self.ordered, "a significant end is the end of all")?;
        let mut present = self.present();
        let stopping = present.any(|(_, other)| other.live && (other.cancelled || other.aborted));
        let free = self.strategy != Strategy::OneForOne && stopping;
        ensure(self.left.is_none() || free || self.told_failed || over, "an end is decided")?;
        for (key, child) in self.present() {
            let restart = machine.children().restart_type(key);
            let has_ended = child.incarnation > 0 && !child.live && !child.leaked;
            // Its own word may bring it back all the same.
            let own = child.policy.as_ref().and_then(|policy| policy.restart.as_ref());
            let own = own.is_some_and(|own| own.restart_type() != RestartType::Temporary);
            let returns = own || child.replaced;
            if restart == RestartType::Temporary && has_ended && !over && !returns {
                let state = machine.children().state(key);
                let kept = match state {
                    // Only who is brought back is asked about.
                    Some(State::Gated(_) | State::Asking { .. }) => true,
                    // An exception to its type brings it back, or would have, had its group not.
                    Some(State::Backoff | State::Awaiting | State::Down(_))
                        if child.returns || child.asked_once =>
                    {
                        true
                    }
                    // Its group may have told it since whether it comes back.
                    Some(State::Down(Down::ByHand | Down::ByGroup | Down::Rested)) => {
                        child.told_failed
                    }
                    _ => false,
                };
                let name = self.name(key);
                ensure(kept, format!("{name} is temporary and has ended: {state:?}"))?;
            }
        }
        Ok(())
    }
}

fn is_parked(machine: &Machine, key: Key) -> bool {
    let state = machine.children().state(key);
    matches!(state, Some(State::Down(Down::GivenUp | Down::Leaked)))
}
