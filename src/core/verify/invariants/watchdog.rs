//! Heartbeats: which child is asked for its last one, and which child has hung.
//!
//! # Invariants
//!
//! 1. A child is asked for its last heartbeat only while it is Active, and once its interval is over.
//! 2. A child has hung only if it is Active, has a watchdog, has sent no heartbeat for its interval, and
//!    its supervisor does not end. This is found when its last heartbeat is known, and only then.
//! 3. Such a child has hung, unless a tick was late by more than a second within its interval.

use std::time::{Duration, Instant};

use super::{Invariants, Violation, ensure};
use crate::core::child::Timer;
use crate::core::{ConditionEvent, IncarnationNumber, Key, Machine, MachineEvent};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;

/// Whether a child has hung.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hung {
    No,
    /// The machine decides, since the runtime was late.
    Maybe,
    Yes,
}

impl Invariants {
    /// Notes the answer of a child that was asked for its last heartbeat, and a tick that comes late.
    pub(super) fn note_heartbeat(&mut self, event: &MachineEvent, machine: &Machine, now: Instant) {
        self.heard = None;
        let due = machine.children().timers.next();
        let late = due.is_some_and(|due| now > due + Duration::from_secs(1));
        if late && matches!(event, MachineEvent::Tick) {
            self.late = Some(now);
        }
        let &MachineEvent::Condition(ConditionEvent::Heartbeat { key, incarnation, last }) = event
        else {
            return;
        };
        let interval = self.children[&key].rules.watchdog;
        let (late, ending) = (self.late, self.ending);
        let child = self.child(key);
        if !child.live || child.incarnation != incarnation {
            return;
        }
        child.heartbeat_due = false;
        let Some(interval) = interval.filter(|_| child.lifecycle == Lifecycle::Active) else {
            return;
        };
        let silent = |since: Instant| since + interval <= now;
        let hung = silent(child.since) && last.is_none_or(silent) && !ending;
        let hung = match (hung, late.is_none_or(silent)) {
            (false, _) => Hung::No,
            (true, false) => Hung::Maybe,
            (true, true) => Hung::Yes,
        };
        self.heard = Some((key, hung));
    }

    pub(super) fn check_asked(
        &mut self,
        key: Key,
        incarnation: IncarnationNumber,
        now: Instant,
    ) -> Result<(), Violation> {
        let interval = self.children[&key].rules.watchdog;
        let child = self.child(key);
        let right = child.live && child.incarnation == incarnation;
        let active = right && child.lifecycle == Lifecycle::Active;
        let due = interval.is_some_and(|interval| child.since + interval <= now);
        let first = !std::mem::replace(&mut child.heartbeat_due, true);
        ensure(active && due && first, "an Active child is asked for its heartbeat when it is due")
    }

    pub(super) fn check_hung_exit(
        &mut self,
        key: Key,
        reason: &ExitReason,
    ) -> Result<(), Violation> {
        // An exit of the task can have any reason in a test.
        if self.ended.is_some_and(|(ended, _)| ended == key) && !self.children[&key].live {
            return Ok(());
        }
        let hung = matches!(reason, ExitReason::Hung(_));
        let heard = self.heard.take_if(|(heard, hung)| *heard == key && *hung != Hung::No);
        ensure(hung == heard.is_some(), "a child has hung only if it missed its heartbeat")
    }

    /// Checks that a child that has hung has failed.
    pub(super) fn check_hung(&self) -> Result<(), Violation> {
        let left = self.heard.is_some_and(|(_, hung)| hung == Hung::Yes);
        ensure(!left, "a child that misses its heartbeat has hung")
    }

    /// Checks the timer of an Active child.
    pub(super) fn check_watchdog(&self, machine: &Machine, key: Key) -> Result<(), Violation> {
        let child = &self.children[&key];
        let watched = child.rules.watchdog.is_some();
        let armed = machine.children().timers.at(Timer::Child(key)).is_some();
        let right = if watched { armed || child.heartbeat_due || self.ending } else { !armed };
        ensure(right, format!("{} has a timer if it has a watchdog", self.name(key)))
    }
}
