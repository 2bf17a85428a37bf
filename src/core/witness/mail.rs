//! Who is started by a message, who waits with his messages, and what an acknowledgement is worth.
//!
//! # Invariants
//!
//! 1. A message starts whoever is to be started by one, was never started or was left when he ended,
//!    and was not stopped since; each start is the answer to a message that came after the last one.
//!    Nothing else starts him but a call, or the group with which he was stopped.
//! 2. Messages are held for a restart that would have waited, by a child alone, and for no other
//!    start; that comes at once, or at the end of the last hold. They are held until the wait is over
//!    that was told.
//! 3. An acknowledgement lets the backoff begin anew if that is one of its rules.
//! 4. The machine says who comes back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::state::{Down, State};
use super::super::{Key, Machine, MachineEvent};
use super::{Broken, Child, Witness, ensure, is_ending};
use crate::policy::{Reset, StartCause, Strategy};

impl Child {
    /// Whether a message may start it.
    fn is_startable(&self) -> bool {
        let idle = self.incarnation == 0 || self.left_alone;
        self.nature.options.on_message && idle && !self.put_down
    }
}

impl Witness {
    /// Notes what is said of messages.
    pub(super) fn note_mail(&mut self, event: &MachineEvent) {
        let rules = Arc::clone(&self.rules);
        let ending = self.ending;
        match *event {
            MachineEvent::MessagePending { key } => {
                if let Some(child) = self.children.get_mut(&key) {
                    let open = child.live || child.due.is_some() || !child.decided;
                    let heeded = child.nature.options.on_message && !ending;
                    child.mail |= heeded && (open || child.is_startable());
                }
            }
            MachineEvent::Acked { key, incarnation } => {
                let child = self.child(key);
                let runs = child.live && child.incarnation == incarnation;
                if runs && child.backoff(&rules).resets_on(Reset::OnAck) {
                    (child.streak, child.drawn) = (0, 0);
                    child.own.forgive();
                }
            }
            _ => {}
        }
    }

    /// A restart was granted: at once, with the messages held, or after its wait.
    pub(super) fn waits(
        &mut self,
        key: Key,
        since: Instant,
        delay: Duration,
        paused: bool,
        now: Instant,
    ) {
        let alone = self.strategy == Strategy::OneForOne;
        let child = self.child(key);
        if paused {
            child.held = None;
        }
        if paused || !alone || !child.nature.options.delays_traffic {
            return self.goes_at(key, since + delay);
        }
        let last = child.held.filter(|&held| held > now);
        child.held = Some(last.map_or(since + delay, |held| held + delay));
        self.goes_at(key, last.unwrap_or(now));
    }

    pub(super) fn hold(&mut self, key: Key, until: Instant) -> Result<(), Broken> {
        let first = self.holding.replace((key, until)).is_none();
        ensure(first, "a hold is followed by the start that it is for")
    }

    /// Checks a start against the messages that there are.
    pub(super) fn check_traffic(
        &mut self,
        key: Key,
        cause: StartCause,
        now: Instant,
    ) -> Result<(), Broken> {
        let said = self.holding.take();
        let child = self.child(key);
        let kept = child.held.filter(|&held| cause == StartCause::Restart && held > now);
        child.held = kept;
        ensure(said == kept.map(|until| (key, until)), "messages are held while a restart waits")?;
        match cause {
            StartCause::OnMessage => {
                ensure(child.mail, "a message has come for who is started by one")?;
                ensure(child.is_startable(), "a message starts nobody who was stopped or given up")
            }
            StartCause::Initial | StartCause::Group => {
                let gone = !child.is_startable();
                ensure(gone, "a supervisor or a group does not start who waits for a message")
            }
            StartCause::Manual | StartCause::Restart => Ok(()),
        }
    }

    pub(super) fn stays(&mut self, key: Key) -> Result<(), Broken> {
        self.told.push(key);
        let child = self.child(key);
        child.put_down = true;
        ensure(!child.live, "only who is down stays down")
    }

    /// Whether a message waits that is to start the child.
    pub(super) fn calls(&self, key: Key) -> bool {
        let child = &self.children[&key];
        child.mail && child.is_startable()
    }

    /// Checks what the machine says of who comes back, and that it tells when that has changed.
    pub(super) fn check_returns(&mut self, machine: &Machine) -> Result<(), Broken> {
        let over = is_ending(machine) || self.finished.is_some();
        let mut returning = Vec::new();
        for (key, child) in self.present() {
            let returns = machine.returns(key);
            let (state, name) = (machine.children().state(key), self.name(key));
            ensure(!(over && returns), "nobody comes back once the end has begun")?;
            let runs = child.live && !child.cancelled && !child.aborted;
            let expected = match state {
                _ if over => Some(false),
                _ if runs => Some(true),
                Some(State::Backoff | State::Awaiting | State::Gated(_)) => Some(true),
                Some(State::Down(Down::ByGroup)) | None => None,
                Some(State::Down(_)) if child.is_startable() => Some(true),
                Some(State::Down(Down::New)) => Some(true),
                Some(State::Down(_)) => Some(false),
                Some(_) => None,
            };
            let right = expected.is_none_or(|expected| returns == expected);
            ensure(right, format!("{name} comes back: {returns}, but is {state:?}"))?;
            // It may be told when the group is down.
            let told = over || self.told.contains(&key) || machine.decides_later();
            let silent = child.expected && !child.live && !returns && !told;
            ensure(!silent, format!("{name} does not come back, and nobody is told: {state:?}"))?;
            let open = child.expected && !self.told.contains(&key) && !over;
            returning.push((key, returns || open));
        }
        for (key, returns) in returning {
            self.child(key).expected = returns;
        }
        Ok(())
    }
}
