//! Starts by a message, delayed delivery, and acknowledgements.
//!
//! # Invariants
//!
//! 1. A message starts a child only if its spec says so and the child was never started, or has ended
//!    by itself and was not stopped since, or is a temporary child whose group has restarted. Each start
//!    answers a message that came after the last start. Otherwise only a request starts such a child, or
//!    the group with which it was stopped.
//! 2. Messages are held back for a delayed restart of a child alone, and for no other start. The start
//!    is at once, or at the end of the last hold. The hold lasts until the shown deadline.
//! 3. An acknowledgement resets the backoff if and only if that is its rule.
//! 4. The machine shows which children come back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{ChildAccount, Invariants, Violation, ensure, is_ending};
use crate::core::child::{ChildState, DownState};
use crate::core::{ConditionEvent, Key, Machine, MachineEvent};
use crate::lifecycle::Lifecycle;
use crate::policy::{Reset, StartCause, Strategy};

impl ChildAccount {
    /// Whether a message may start the child.
    fn is_startable(&self) -> bool {
        let idle = self.incarnation == 0 || self.not_restarted;
        self.declaration.options.on_message && ((idle && !self.set_down) || self.dormant)
    }

    /// Whether a pending message has to start the child.
    pub(super) fn must_start_on_message(&self) -> bool {
        self.message_pending && self.is_startable()
    }

    /// Whether the child waits for its group, or its group for the child: it waits for a restart, and not
    /// for its start by a message.
    pub(super) fn awaits_restart(&self) -> bool {
        self.lifecycle == Lifecycle::Restarting && !self.not_restarted
    }
}

impl Invariants {
    /// Notes pending messages and acknowledgements.
    pub(super) fn note_message(&mut self, event: &MachineEvent) {
        let ending = self.ending;
        match *event {
            MachineEvent::Condition(ConditionEvent::MessagePending { key }) => {
                if let Some(child) = self.children.get_mut(&key) {
                    let open = child.live || child.due.is_some() || !child.decided;
                    let open = open && !child.ignores_messages;
                    let counts = child.declaration.options.on_message && !ending;
                    child.message_pending |= counts && (open || child.is_startable());
                }
            }
            MachineEvent::Acked { key, incarnation } => {
                let child = self.child(key);
                let runs = child.live && child.incarnation == incarnation;
                if runs && child.backoff().resets_on(Reset::OnAck) {
                    (child.consecutive_failures, child.drawn) = (0, 0);
                    child.own_grants.works();
                }
            }
            _ => {}
        }
    }

    /// Notes a granted restart: at once with messages held back, or after its delay.
    pub(super) fn note_delay(
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
        let by_message = child.not_restarted;
        if paused || !alone || by_message || !child.declaration.options.delays_delivery {
            return self.restart_due_at(key, since + delay);
        }
        let last = child.held.filter(|&held| held > now);
        child.held = Some(last.map_or(since + delay, |held| held + delay));
        self.restart_due_at(key, last.unwrap_or(now));
    }

    /// Checks a start against the pending and the held messages.
    pub(super) fn check_pending_message(
        &mut self,
        key: Key,
        cause: StartCause,
        shown: Option<Instant>,
        now: Instant,
    ) -> Result<(), Violation> {
        let child = self.child(key);
        // Its group has stopped it and passes it in the same event.
        child.dormant |= cause == StartCause::OnMessage
            && child.group_stop_from.is_some()
            && child.is_dormant_temporary();
        let kept = child.held.filter(|&held| cause == StartCause::Restart && held > now);
        child.held = kept;
        ensure(shown == kept, "messages are held while a restart waits")?;
        match cause {
            StartCause::OnMessage => {
                ensure(
                    child.message_pending,
                    "a message is pending for a child that is started by one",
                )?;
                ensure(
                    child.is_startable(),
                    "a message starts no child that was stopped or given up",
                )
            }
            StartCause::Initial | StartCause::Group => ensure(
                !child.is_startable(),
                "neither the supervisor nor a group starts a child that waits for a message",
            ),
            StartCause::Manual | StartCause::Restart | StartCause::Lease => Ok(()),
        }
    }

    pub(super) fn check_stays_down(&mut self, key: Key) -> Result<(), Violation> {
        self.reported.push(key);
        let child = self.child(key);
        child.set_down = true;
        ensure(!child.live, "only a child that is down stays down")
    }

    /// Notes the children that are down until a message comes: those that never ran, and temporary ones
    /// whose group has restarted. A message may start the latter even if they have to wait for it.
    fn note_dormant(&mut self, machine: &Machine, over: bool) -> Result<(), Violation> {
        let rules = Arc::clone(&self.rules);
        for (&key, child) in self.children.iter_mut().filter(|(_, child)| !child.removed) {
            let state = machine.children().state(key);
            child.ignores_messages =
                matches!(state, Some(ChildState::Down(down)) if down.ignores_messages());
            child.message_pending &= !child.ignores_messages;
            let dormant = state == Some(ChildState::Down(DownState::Dormant));
            let waits = state == Some(ChildState::Gated(StartCause::OnMessage));
            let was_dormant = dormant || (waits && child.dormant);
            child.dormant = was_dormant && child.is_dormant_temporary();
            ensure(
                over || !dormant || child.is_startable(),
                "only a child that a message may start is dormant",
            )?;
            ensure(
                !(dormant && child.incarnation > 0) || rules.strategy != Strategy::OneForOne,
                "a child that has run is dormant only after its group has restarted",
            )?;
        }
        Ok(())
    }

    /// Checks which children the machine shows as coming back, and that every change is reported.
    pub(super) fn check_returns(&mut self, machine: &Machine) -> Result<(), Violation> {
        let over = is_ending(machine) || self.finished.is_some();
        self.note_dormant(machine, over)?;
        let mut returning = Vec::new();
        for (key, child) in self.present() {
            let returns = machine.returns(key);
            let (state, name) = (machine.children().state(key), self.name(key));
            ensure(!(over && returns), "no child is restarted once the end has begun")?;
            let runs = child.live && !child.cancelled && !child.aborted;
            let expected = match state {
                _ if over => Some(false),
                _ if runs => Some(true),
                Some(ChildState::Backoff(_) | ChildState::AwaitingGroup | ChildState::Gated(_)) => {
                    Some(true)
                }
                Some(ChildState::Down(DownState::RestartsWithGroup)) | None => None,
                Some(ChildState::Down(_)) if child.is_startable() => Some(true),
                Some(ChildState::Down(DownState::New)) => Some(true),
                Some(ChildState::Down(_)) => Some(false),
                Some(_) => None,
            };
            let right = expected.is_none_or(|expected| returns == expected);
            ensure(right, format!("{name} comes back: {returns}, but is {state:?}"))?;
            // The change may be reported when the group is down.
            let reported = over || self.reported.contains(&key) || machine.decides_later();
            let silent = child.shown_returning && !child.live && !returns && !reported;
            ensure(
                !silent,
                format!("{name} is not restarted, and that is not reported: {state:?}"),
            )?;
            let open = child.shown_returning && !self.reported.contains(&key) && !over;
            returning.push((key, returns || open));
        }
        for (key, returns) in returning {
            self.child(key).shown_returning = returns;
        }
        Ok(())
    }
}
