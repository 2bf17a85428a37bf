//! The steps of the group operation.
//!
//! On its way to the beginning of the range, the walk marks each child with whether it restarts. On
//! its way to the end, it starts the children that are marked, and those that were never started. So
//! a child that ends, or is terminated, after it was marked stays down.
//!
//! # Invariants
//!
//! 1. The walk goes on after each event, and visits at most [`SLICE`] children then.
//! 2. An operation costs O(log n) for each child of its range.

use crate::core::{
    After, ChildState, CloseScope, DownState, Effect, Finish, GroupOp, GroupPhase, Key, Ordered,
    Position, SLICE, StartMode, StepCx, StopMode, StopReason, Timer,
};
use crate::policy::StartCause;

/// Whether there is something to do before the next event.
#[derive(PartialEq, Eq)]
enum Advance {
    Continue,
    Wait,
}

impl Ordered {
    /// Goes on with what the last event has made possible.
    pub(in crate::core) fn settle(&mut self, cx: &mut StepCx<'_>) {
        self.more = None;
        for _ in 0..SLICE {
            let progress = match self.children.requirements.released() {
                Some(key) => self.release(key, cx),
                None => self.step(cx),
            };
            if progress == Advance::Wait {
                return;
            }
        }
        self.more = Some(cx.now);
    }

    /// Starts a gated child whose requirement is met, unless it is to be stopped.
    fn release(&mut self, key: Key, cx: &mut StepCx<'_>) -> Advance {
        if let Some(ChildState::Gated(cause)) = self.children.state(key)
            && !self.is_in_stopping_group(key)
        {
            self.children.launch(key, cause, cx);
        }
        Advance::Continue
    }

    fn step(&mut self, cx: &mut StepCx<'_>) -> Advance {
        let Some(op) = &mut self.group else { return Advance::Wait };
        match op.phase {
            GroupPhase::Stopping { cursor, mode } => match op.last_before(cursor, &self.order) {
                Some((pos, key)) => self.stop_next(pos, key, mode, cx),
                None if mode == StopMode::Abort && self.children.live > 0 => Advance::Wait,
                None if matches!(mode, StopMode::CancelOrder(_)) => self.await_cancelled(),
                None => self.on_group_down(cx),
            },
            GroupPhase::Waiting if op.until <= cx.now => {
                let mode = StartMode::of(self.children.rules.start);
                op.phase = GroupPhase::Starting { cursor: op.start_from, mode };
                self.children.timers.disarm(Timer::Group);
                Advance::Continue
            }
            GroupPhase::Waiting => {
                self.children.timers.arm(Timer::Group, op.until);
                Advance::Wait
            }
            GroupPhase::Starting { cursor, mode } => match self.order.first_from(cursor) {
                Some((pos, key)) => self.start_next(pos, key, mode, cx),
                None if mode == StartMode::Concurrent => {
                    let cursor = op.start_from;
                    op.phase = GroupPhase::Starting { cursor, mode: StartMode::AwaitAll };
                    Advance::Continue
                }
                None => {
                    self.group = None;
                    self.excluded.clear();
                    if !self.up {
                        self.up = true;
                        cx.push(Effect::Up);
                    }
                    Advance::Wait
                }
            },
        }
    }

    fn stop_next(
        &mut self,
        pos: Position,
        key: Key,
        mode: StopMode,
        cx: &mut StepCx<'_>,
    ) -> Advance {
        let Some(op) = &self.group else { return Advance::Wait };
        let restarts = op.restarts() && pos >= op.start_from && !self.is_excluded(key);
        let awaited = restarts && op.failed_child == Some(key);
        match (self.children.entry(key).state, mode) {
            (ChildState::Down(down), _) => self.mark_down(key, down, restarts, cx),
            (ChildState::AwaitingGroup, _) if awaited => {}
            (_, StopMode::Skip) => {}
            (waits, _) if !waits.is_live() => {
                self.absorb(key, cx);
                return Advance::Continue;
            }
            (_, StopMode::Abort) => self.children.abort(key, cx),
            (_, StopMode::CancelOrder(order)) => {
                return self.cancel_with_order(pos, key, order, cx);
            }
            (ChildState::Stopping { .. }, StopMode::Cancel) => return Advance::Wait,
            (_, StopMode::Cancel) if op.closing.is_some() => {
                let mode = StopMode::CancelOrder(None);
                self.set_phase(GroupPhase::Stopping { cursor: pos + 1, mode });
                return Advance::Continue;
            }
            (_, StopMode::Cancel) => {
                self.children.begin_stop(key, StopReason::Group, cx);
                // All children behind this one are down.
                self.set_phase(GroupPhase::Stopping { cursor: pos + 1, mode });
                return Advance::Wait;
            }
        }
        self.set_phase(GroupPhase::Stopping { cursor: pos, mode });
        // In a range that stays down, a child with a waiting message is started at once.
        self.start_for_message(key, cx);
        Advance::Continue
    }

    /// Cancels a child with the others of its stop order. At the first child with a higher one, waits for
    /// those before.
    fn cancel_with_order(
        &mut self,
        pos: Position,
        key: Key,
        order: Option<i8>,
        cx: &mut StepCx<'_>,
    ) -> Advance {
        let Some(op) = &self.group else { return Advance::Wait };
        let all = op.closing == Some(CloseScope::All);
        let own = self.children.entry(key).stop_order;
        if !all && order.is_some_and(|order| order < own) {
            return self.await_cancelled();
        }
        self.children.close(key, all, cx);
        let mode = StopMode::CancelOrder(Some(own));
        self.set_phase(GroupPhase::Stopping { cursor: pos, mode });
        Advance::Continue
    }

    /// Waits, in order, for the children that were cancelled at once.
    fn await_cancelled(&mut self) -> Advance {
        let cursor = self.next_pos;
        self.set_phase(GroupPhase::Stopping { cursor, mode: StopMode::Cancel });
        Advance::Continue
    }

    /// Marks a child that is down with whether it restarts with its group. Every child of a range
    /// that restarts does, whyever it is down, except a child that has leaked or that a message
    /// starts. A temporary child is dormant again instead.
    fn mark_down(&mut self, key: Key, down: DownState, restarts: bool, cx: &mut StepCx<'_>) {
        let marked = match down {
            DownState::New if restarts => DownState::New,
            DownState::Leaked => DownState::Leaked,
            _ if self.children.entry(key).is_message_startable() => down,
            DownState::RestartsWithGroup if restarts => down,
            _ if restarts && self.children.is_dormant_temporary(key) => DownState::Dormant,
            _ if restarts => DownState::RestartsWithGroup,
            DownState::New if self.is_finishing() => DownState::DownWithSupervisor,
            DownState::New | DownState::RestartsWithGroup => DownState::DownWithGroup,
            stays => stays,
        };
        if marked != down || self.is_finishing() {
            self.children.enter_stopped(key, cx);
            // Its group may have been about to start it for a message.
            self.children.recheck_lease(key);
        }
        if marked != down {
            self.set_down(key, marked, cx);
        }
        if (down, marked) == (DownState::RestartsWithGroup, DownState::DownWithGroup)
            && !self.is_finishing()
        {
            cx.push(Effect::StaysDown { key });
        }
        self.answer_if_staying_down(key, cx);
    }

    /// The whole range is down.
    fn on_group_down(&mut self, cx: &mut StepCx<'_>) -> Advance {
        if std::mem::take(&mut self.recheck_auto_shutdown)
            && !self.is_finishing()
            && self.all_significant_ended()
        {
            self.finish(Finish::AutoShutdown);
            return Advance::Continue;
        }
        let Some(op) = &mut self.group else { return Advance::Wait };
        match &op.after {
            After::Restart => {
                op.phase = GroupPhase::Waiting;
                Advance::Continue
            }
            After::StayDown => {
                // Goes on with a first start that this operation has interrupted.
                *op = GroupOp::first_start(self.children.rules.start, cx.now);
                Advance::Continue
            }
            After::Finish(_) => {
                for key in std::mem::take(&mut self.children.unchecked_leases) {
                    self.children.settle_lease(key, false, cx);
                }
                self.children.refuse_seekers(cx);
                if let Some(GroupOp { after: After::Finish(finish), .. }) = self.group.take() {
                    cx.push(Effect::Finish(finish));
                }
                self.finished = true;
                Advance::Wait
            }
        }
    }

    fn start_next(
        &mut self,
        pos: Position,
        key: Key,
        mode: StartMode,
        cx: &mut StepCx<'_>,
    ) -> Advance {
        let passed = GroupPhase::Starting { cursor: pos + 1, mode };
        let startable = self.children.entry(key).is_startable_by_group();
        match mode {
            StartMode::Sequential if startable => {
                self.launch_in_group(key, cx);
                if self.children.state(key) == Some(ChildState::Active) {
                    self.set_phase(passed);
                }
            }
            StartMode::Concurrent => {
                self.set_phase(passed);
                if startable {
                    self.launch_in_group(key, cx);
                }
            }
            StartMode::Sequential | StartMode::AwaitAll => {
                if !self.lets_next_start(key) {
                    return Advance::Wait;
                }
                self.set_phase(passed);
            }
        }
        Advance::Continue
    }

    fn launch_in_group(&mut self, key: Key, cx: &mut StepCx<'_>) {
        if self.children.is_started_by_message(key) {
            return self.launch_for_message(key, cx);
        }
        let cause = self.start_cause(key);
        self.children.launch(key, cause, cx);
    }

    fn set_phase(&mut self, phase: GroupPhase) {
        if let Some(op) = &mut self.group {
            op.phase = phase;
        }
    }

    fn start_cause(&mut self, key: Key) -> StartCause {
        let (up, requested) = (self.up, self.children.callers.waits_until_up(key));
        let entry = self.children.entry(key);
        match (entry.state, requested) {
            (ChildState::AwaitingGroup, _) => StartCause::Restart,
            (_, true) => StartCause::Manual,
            _ if entry.incarnation == 0 && !up => StartCause::Initial,
            _ => StartCause::Group,
        }
    }

    /// Whether the child behind this one may start.
    pub(in crate::core) fn lets_next_start(&self, key: Key) -> bool {
        match self.children.state(key) {
            None | Some(ChildState::Active | ChildState::Down(_)) => true,
            // Down until a message came, and not ready to be started for it.
            Some(ChildState::Backoff(StartCause::OnMessage)) => true,
            Some(ChildState::Gated(_)) => self.children.is_blocked_for_good(key),
            Some(_) => false,
        }
    }
}
