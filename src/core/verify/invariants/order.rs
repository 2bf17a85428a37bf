//! Groups and orders: which children stop and start together, and in which order.
//!
//! A failure begins a *group stop* of the running children of its range: they must exit before any child
//! of the range is started, and their exits are not charged. These checks use decisions, starts and
//! stops, and do not look at the machine's group operation.
//!
//! # Invariants
//!
//! 1. No child of a range is started before the whole range is down, nor before its deadline.
//! 2. A restart was decided before, and no other decision came since.
//! 3. In a sequential start, no child is started while an earlier child of that start is not ready.
//! 4. A child that is stopped with its group is cancelled when the children behind it are down.
//! 5. An end is decided, unless it is not charged, or is the answer to the caller that requested the
//!    start.
//! 6. A temporary child that has ended is removed, unless a message may start it, it has leaked, is yet to
//!    be started, was to be restarted, or its caller was answered that its start failed.
//! 7. When a caller terminates the child that a group waits for, the group stays down.
//! 8. No child is started at a request only to be cancelled in the same event.
//! 9. A supervisor that has to end does end.
//! 10. Children are cancelled in the order that the machine has shown before, unless it aborts them.
//! 11. A group waits for one child.
//! 12. A caller that waits for a start waits for at most one restart of the child's group. A caller that
//!     only seeks the child waits for any number.
//! 13. Once the time for an ordered stop is over, all children with the lowest stop order that is left are
//!     cancelled, and no child with a higher one, unless the stop order no longer counts.

use std::time::Instant;

use super::{ChildAccount, Invariants, PendingDecision, Violation, ensure, is_ending};
use crate::core::child::{ChildState, DownState};
use crate::core::{
    ChildAnswer, ChildRequest, Declaration, IncarnationNumber, Key, Machine, MachineEvent,
};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::policy::{AutoShutdown, RestartType, Start, StartCause, Strategy};

/// The child that stops now, and those that are shown to stop after it. There is none while the walk
/// passes children that are down, which may take several events.
pub(super) fn stop_chain(machine: &Machine) -> Vec<(Key, IncarnationNumber)> {
    let live = |key: &Key| machine.children().state(*key).is_some_and(ChildState::is_live);
    let first = machine.stops_now().filter(live);
    let chain = std::iter::successors(first, |&key| machine.stops_after(key));
    chain.filter_map(|key| Some((key, machine.children().entries.get(key)?.incarnation))).collect()
}

impl Invariants {
    /// Checks that the first remaining child of the stop chain stops now, or will once the walk has passed
    /// the children that are down, and that the rest of the chain is unchanged.
    pub(super) fn check_stop_chain(
        &self,
        before: &[(Key, IncarnationNumber)],
        machine: &Machine,
    ) -> Result<(), Violation> {
        let is_live = |&(key, incarnation): &(Key, IncarnationNumber)| {
            let child = &self.children[&key];
            child.live && child.incarnation == incarnation
        };
        let Some(first) = before
            .iter()
            .find(|it| is_live(it))
            .filter(|_| !self.aborting && self.closing.is_none())
        else {
            return Ok(());
        };
        let right = match machine.stops_now() {
            // The walk may continue with it in the next event.
            Some(key) if key == first.0 => {
                *first == before[0] || self.children[&key].cancelled || machine.has_more()
            }
            Some(key) => machine.is_to_stop(first.0) && !self.children[&key].live,
            None => machine.is_to_stop(first.0),
        };
        ensure(right, "a child of the stop chain is cancelled when it is the next")?;
        let stopping = |key| self.children[&key].cancelled || self.children[&key].aborted;
        let pairs =
            before.iter().zip(&before[1..]).filter(|(it, next)| is_live(it) && is_live(next));
        let unchanged = pairs
            .map(|(behind, next)| (behind.0, next.0))
            .all(|(behind, next)| machine.stops_after(behind) == Some(next) || stopping(next));
        ensure(unchanged, "a child of the stop chain keeps its place")
    }

    /// Begins the group stop of the child's range.
    pub(super) fn begin_group_stop(&mut self, key: Key, with_itself: bool) {
        if self.strategy == Strategy::OneForOne {
            return;
        }
        self.group_stays_down = false;
        let range = self.strategy.affected(self.children[&key].place);
        for (&other, child) in &mut self.children {
            let concerned = range.contains(&child.place) && (with_itself || other != key);
            if child.pending_decision == PendingDecision::Open && concerned {
                child.pending_decision = PendingDecision::Overtaken;
            }
            if child.live && concerned {
                let from = *range.start();
                child.group_stop_from =
                    Some(child.group_stop_from.map_or(from, |before| before.min(from)));
            }
        }
    }

    /// Notes what the effects of an event do not show.
    pub(super) fn note(&mut self, event: &MachineEvent, machine: &Machine, now: Instant) {
        match *event {
            MachineEvent::Healthy { key, incarnation } => {
                let child = self.child(key);
                if child.live && child.incarnation == incarnation {
                    (child.consecutive_failures, child.drawn) = (0, 0);
                    child.own_grants.works();
                }
            }
            MachineEvent::StopSelf { key, incarnation } => {
                let child = self.child(key);
                let runs = matches!(child.lifecycle, Lifecycle::Active | Lifecycle::Activating);
                child.stops_itself |= runs && child.live && child.incarnation == incarnation;
            }
            // A failure is reported by the child's lifecycle.
            MachineEvent::Remaining { key, incarnation, ref reason } if !self.ending => {
                let clean = reason.as_ref().is_none_or(ExitReason::is_clean);
                let child = self.child(key);
                let runs = matches!(child.lifecycle, Lifecycle::Active | Lifecycle::Activating);
                child.stops_itself |=
                    clean && runs && child.live && child.incarnation == incarnation;
            }
            // A configuration that takes it out stops it by itself.
            MachineEvent::Declared(Declaration::ChildRules { key, ref rules, .. })
                if rules.withheld().is_some() && !self.ending =>
            {
                let withheld = machine.rules_of(key).is_some_and(|old| old.withheld().is_some());
                let child = self.child(key);
                child.stops_itself |= child.live;
                (child.taken_out, child.was_withheld) = (true, true);
                if !withheld {
                    (child.consecutive_failures, child.drawn) = (0, 0);
                    child.own_grants.reset();
                }
            }
            MachineEvent::Request { key, request, .. } if !self.ending => {
                let child = &self.children[&key];
                let runs = matches!(child.lifecycle, Lifecycle::Active | Lifecycle::Activating);
                let waits = child.lifecycle == Lifecycle::Restarting;
                let awaited = child.awaits_restart();
                let joins = !child.live && machine.will_start_with_group(key);
                let withheld = child.on_hold || machine.children().is_on_standby(key);
                let starts = matches!(request, ChildRequest::Start { .. });
                let refused = child.removed || (withheld && starts);
                let ends_wait = matches!(request, ChildRequest::RESTART | ChildRequest::RESUME);
                match request {
                    _ if refused => {}
                    ChildRequest::RESTART if runs && child.live => self.begin_group_stop(key, true),
                    ChildRequest::Start { .. } if ends_wait && (waits || joins) => {
                        self.child(key).held = None;
                        self.end_wait(key, now);
                    }
                    // Even while the range that it was parked with is still stopping.
                    ChildRequest::Start { .. } if ends_wait && is_parked(machine, key) => {
                        self.granted.clear();
                        self.child(key).own_grants.clear();
                        self.group_stays_down = false;
                    }
                    // It waits for no message any more, but restarts or stays down with its group.
                    ChildRequest::Start { .. }
                        if !child.live
                            && machine.is_to_stop(key)
                            && !child.must_start_on_message() =>
                    {
                        self.child(key).set_down = true;
                    }
                    request if request.stops() && awaited => self.note_group_stays_down(key, now),
                    ChildRequest::Reset => {
                        self.granted.clear();
                        let child = self.child(key);
                        (child.consecutive_failures, child.drawn) = (0, 0);
                        child.own_grants.clear();
                    }
                    ChildRequest::Hold => {
                        let child = self.child(key);
                        (child.on_hold, child.was_withheld) = (true, true);
                    }
                    ChildRequest::Release => self.child(key).on_hold = false,
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Ends the wait of the child, and of its group.
    fn end_wait(&mut self, key: Key, now: Instant) {
        for (&other, child) in &mut self.children {
            if other == key || self.strategy != Strategy::OneForOne {
                child.due = child.due.map(|due| due.min(now));
            }
        }
    }

    /// Notes that the group stays down, if it has not begun to start.
    fn note_group_stays_down(&mut self, key: Key, now: Instant) {
        let waits = self.children[&key].due.is_some_and(|due| due > now);
        self.group_stays_down |= self.strategy != Strategy::OneForOne && waits;
    }

    pub(super) fn check_start(
        &mut self,
        key: Key,
        cause: StartCause,
        now: Instant,
    ) -> Result<(), Violation> {
        let child = &self.children[&key];
        if cause == StartCause::Restart {
            let decided = child.due.is_some_and(|due| due <= now);
            ensure(decided, "a restart was decided, and its wait is over")?;
        }
        if cause == StartCause::OnMessage {
            let early = child.due.is_some_and(|due| due > now);
            ensure(!early, "a start by a message waits for the backoff")?;
        }
        for (_, other) in self.present() {
            if other.awaits_restart() && other.due.is_some_and(|due| due > now) {
                let range = self.strategy.affected(other.place);
                ensure(
                    !range.contains(&child.place),
                    "a group waits for its deadline before it starts",
                )?;
            }
            let stopping =
                other.live && other.group_stop_from.is_some_and(|from| from <= child.place);
            // A caller may restart a child that is down while the rest of its range is parked.
            let called = matches!(cause, StartCause::Manual | StartCause::OnMessage);
            if stopping && !called {
                return Err("no child of a range is started before all of it is down".to_owned());
            }
        }
        let again = cause == StartCause::Group && child.incarnation > 0;
        if self.group_stays_down && again && child.declaration.requires.is_empty() {
            return Err("a group whose wait a caller has ended stays down".to_owned());
        }
        let in_group = |cause| matches!(cause, StartCause::Initial | StartCause::Group);
        if self.ordered && self.rules.start == Start::Sequential && in_group(cause) {
            let early = self.present().any(|(_, other)| {
                other.place < child.place
                    && other.lifecycle == Lifecycle::Activating
                    && other.cause.is_some_and(in_group)
                    && !other.declaration.may_come_late()
                    && !other.was_withheld
            });
            let free = child.declaration.may_come_late();
            ensure(free || !early, "each child is started when the one before is ready")?;
        }
        if cause == StartCause::Restart {
            self.note_restart(key)?;
        }
        self.child(key).cause = Some(cause);
        Ok(())
    }

    /// Notes that the child restarts, and its group with it.
    fn note_restart(&mut self, key: Key) -> Result<(), Violation> {
        if self.strategy == Strategy::OneForOne {
            return Ok(());
        }
        let range = self.strategy.affected(self.children[&key].place);
        for (of, request, restarts) in self.waiting.values_mut() {
            let down = request.stops() || matches!(request, ChildRequest::Find { .. });
            if *of != key && !down && range.contains(&self.children[of].place) {
                *restarts += 1;
                ensure(*restarts < 2, "a caller waits for at most one restart of the group")?;
            }
        }
        Ok(())
    }

    pub(super) fn check_cancel(&self, key: Key) -> Result<(), Violation> {
        let wasted = self.request.is_some() && self.started_now.contains(&key);
        ensure(!wasted, "no request starts a child that is cancelled at once")?;
        let child = &self.children[&key];
        // Without its lease, a child stops at once.
        let by_itself =
            child.stops_itself || child.lost_lease || child.lifecycle == Lifecycle::Errored;
        let request = self.request.and_then(|ticket| self.waiting.get(&ticket));
        let manual = request.is_some_and(|&(of, request, _)| of == key && request.stops());
        let together = child.group_stop_from.is_some() || (self.ending && !self.aborting);
        if !self.ordered || !together || by_itself || manual {
            return Ok(());
        }
        if let Some(all) = self.closing {
            let early =
                |(_, other): (_, &ChildAccount)| other.live && other.stop_order < child.stop_order;
            return ensure(all || !self.present().any(early), "a lower stop order is down first");
        }
        // A child that a caller has restarted meanwhile is not cancelled.
        let behind = self.present().any(|(_, other)| {
            let stopping = self.ending || other.group_stop_from.is_some();
            other.live && other.place > child.place && stopping
        });
        ensure(!behind, "the child that is cancelled is the last one that runs")
    }

    pub(super) fn check_close(&self, key: Key, all: bool) -> Result<(), Violation> {
        let child = &self.children[&key];
        let right = self.closing == Some(all) && child.live && !child.aborted;
        ensure(right, "a live child is closed once the time for an ordered stop is over")
    }

    /// Checks that all children that are to be cancelled at once are, when the machine has nothing more to
    /// do.
    pub(super) fn check_closing(&self, machine: &Machine) -> Result<(), Violation> {
        let Some(all) = self.closing.filter(|_| !machine.has_more()) else { return Ok(()) };
        let live = || self.present().filter(|(_, child)| child.live);
        let lowest = live().map(|(_, child)| child.stop_order).min();
        let mut left = live().filter(|(_, child)| !child.cancelled && !child.aborted);
        let kept = left.all(|(_, child)| !all && self.ordered && Some(child.stop_order) > lowest);
        ensure(kept, "children with the lowest stop order are cancelled at once")
    }

    /// Checks the answer to a caller.
    pub(super) fn check_answer(
        &mut self,
        key: Key,
        request: ChildRequest,
        answer: &ChildAnswer,
    ) -> Result<(), Violation> {
        let child = self.child(key);
        match (request, answer) {
            (ChildRequest::RESTART_CHILD, ChildAnswer::Failed(_)) => {
                child.answered_failed = true;
                Ok(())
            }
            (request, ChildAnswer::Done) if request.stops() || request == ChildRequest::Delete => {
                ensure(!child.live, "a child is down when its caller is answered so")
            }
            (ChildRequest::Find { .. }, ChildAnswer::Started(incarnation)) => {
                let runs = child.live && child.lifecycle == Lifecycle::Active;
                let same = child.incarnation == *incarnation;
                ensure(runs && same, "a child that is found is the one that is Active")
            }
            (
                ChildRequest::Find { .. },
                ChildAnswer::NotFound
                | ChildAnswer::ShuttingDown
                | ChildAnswer::Restarting
                | ChildAnswer::Withheld(_)
                | ChildAnswer::InvalidState(_)
                | ChildAnswer::Stopped,
            ) => {
                let active = child.live && child.lifecycle == Lifecycle::Active;
                ensure(!active || self.ending, "a child that is Active is found")
            }
            (ChildRequest::Find { .. }, answer) => Err(format!("{answer:?} does not find a child")),
            (_, ChildAnswer::Started(incarnation)) => {
                ensure(child.incarnation == *incarnation, "an answer names the incarnation")
            }
            _ => Ok(()),
        }
    }

    /// Whether the child is significant, and its end the end of the supervisor.
    pub(super) fn is_last(&self, key: Key) -> bool {
        let mut others = self.present().filter(|&(other, _)| other != key);
        let significant = self.children[&key].declaration.options.significant;
        significant
            && match self.rules.auto_shutdown {
                AutoShutdown::Never => false,
                AutoShutdown::AnySignificant => true,
                AutoShutdown::AllSignificant => others.all(|(_, other)| {
                    !other.declaration.options.significant || other.lifecycle == Lifecycle::Stopped
                }),
            }
    }

    pub(super) fn check_end(&self, machine: &Machine) -> Result<(), Violation> {
        let over = is_ending(machine) || self.finished.is_some();
        let awaited = self.present().filter(|(_, child)| child.awaits_restart()).count();
        let alone = self.strategy == Strategy::OneForOne;
        ensure(over || alone || awaited <= 1, "a group waits for one child")?;
        ensure(over || !self.ending, "a supervisor that has to end does end")?;
        let children = machine.children();
        let left = children.significant_remaining - children.significant_stopping;
        let auto = match self.rules.auto_shutdown {
            // A group may be about to start the rest, or to mark whether it will.
            AutoShutdown::AllSignificant => {
                self.significant_left && left == 0 && !machine.decides_later()
            }
            AutoShutdown::AnySignificant | AutoShutdown::Never => self.significant_left,
        };
        ensure(
            over || !auto || !self.ordered,
            "the end of a significant child ends the supervisor",
        )?;
        let mut present = self.present();
        let stopping = present.any(|(_, other)| other.live && (other.cancelled || other.aborted));
        let free = self.strategy != Strategy::OneForOne && stopping;
        ensure(
            self.undecided.is_none() || free || self.answered_failed || over,
            "an end is decided",
        )?;
        for (key, child) in self.present() {
            let restart = machine.children().restart_type(key);
            let has_ended = child.incarnation > 0 && !child.live && !child.leaked;
            // Its own policy may restart it.
            let own = child.policy.as_ref().and_then(|policy| policy.restart.as_ref());
            let own = own.is_some_and(|own| own.restart_type() != RestartType::Temporary);
            let returns = own || child.replaced;
            let kept = child.is_dormant_temporary() || child.taken_out || child.lost_lease;
            if restart == RestartType::Temporary && has_ended && !over && !returns && !kept {
                let state = machine.children().state(key);
                let kept = match state {
                    // The callback decides only on children that restart.
                    Some(ChildState::Gated(_) | ChildState::AwaitingDecision { .. }) => true,
                    // An exception to its type restarts it, or would have without its group.
                    Some(
                        ChildState::Backoff(_) | ChildState::AwaitingGroup | ChildState::Down(_),
                    ) if child.returns || child.callback_called => true,
                    // Its group may have marked it since.
                    Some(ChildState::Down(
                        DownState::Terminated
                        | DownState::RestartsWithGroup
                        | DownState::DownWithGroup
                        | DownState::DownWithSupervisor,
                    )) => child.answered_failed,
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
    matches!(state, Some(ChildState::Down(DownState::GivenUp | DownState::Leaked)))
}
