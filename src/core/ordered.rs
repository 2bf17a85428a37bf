//! The machine of a supervisor whose children have an order.
//!
//! What becomes of a child that has ended: nothing, its restart, or the end of the supervisor. Each
//! strategy is the range of positions that a failure takes down. In a range of one, the child waits
//! by itself ([`super::children`]). All that concerns several children in order (first start, group
//! restart, parking, shutdown) is one mechanism, in [`super::sweep`]. What callers ask for is in
//! [`super::requests`].
//!
//! It keeps the promises of [`super`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use super::callers::Want;
use super::children::Children;
use super::state::{Down, Pos, State, Verdict, Why};
use super::sweep::Sweep;
use super::{ChildAnswer, Decision, Finish, Key, Turn};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::policy::{
    AutoShutdown, ChildOptions, FirstStart, OnExhausted, OnExit, RestartType, Rules, StartCause,
    Strategy,
};

/// See the [module](self).
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Ordered {
    pub(super) children: Children,
    /// The children by their place in the start order.
    pub(super) order: BTreeMap<Pos, Key>,
    pub(super) next_pos: Pos,
    pub(super) sweep: Option<Sweep>,
    /// Who was stopped by hand since the sweep began: it doesn't start them.
    pub(super) dismissed: BTreeSet<Key>,
    /// The first start has passed the last child.
    pub(super) up: bool,
    pub(super) finished: bool,
    /// The last event left work over.
    pub(super) more: Option<Instant>,
    /// A significant child has ended for good while a range was being stopped.
    pub(super) recount: bool,
}

impl Ordered {
    /// A machine that starts its children at the first tick.
    pub(super) fn new(rules: Arc<Rules>, now: Instant, seed: u64) -> Self {
        let sweep = Some(Sweep::first_start(rules.start, now));
        Self {
            children: Children::new(rules, now, seed),
            order: BTreeMap::new(),
            next_pos: 0,
            sweep,
            dismissed: BTreeSet::new(),
            up: false,
            finished: false,
            more: Some(now),
            recount: false,
        }
    }

    /// The positions that a failure of this child takes down, if it is more than the child.
    pub(super) fn group(&mut self, key: Key) -> Option<Pos> {
        if self.children.rules.strategy == Strategy::OneForOne {
            return None;
        }
        let pos = self.children.slot(key).pos;
        let range = self.children.rules.strategy.affected(pos);
        (range.start() != range.end()).then_some(*range.start())
    }

    /// Leaves a child without a task, and tells those who waited for it.
    pub(super) fn lay_down(&mut self, key: Key, down: Down, turn: &mut Turn<'_>) {
        self.children.set(key, State::Down(down));
        self.children.answer(key, |want| want == Want::Down, &ChildAnswer::Done, turn);
        self.turn_away(key, turn);
    }

    /// Tells those who wait for a start that it will not come, unless the group's will.
    pub(super) fn turn_away(&mut self, key: Key, turn: &mut Turn<'_>) {
        if self.children.callers.is_empty() {
            return;
        }
        if self.is_finishing() {
            self.children.answer(key, |_| true, &ChildAnswer::ShuttingDown, turn);
        } else if !self.will_be_started(key) {
            self.children.answer(key, |_| true, &ChildAnswer::Stopped, turn);
        }
    }

    /// Forgets a child that is Stopped. Who requires it may go on if it ended well.
    pub(super) fn forget(&mut self, key: Key, ended_well: bool, turn: &mut Turn<'_>) {
        let down = if ended_well { Down::Finished } else { Down::ByHand };
        self.children.set(key, State::Down(down));
        self.children.answer(key, |want| want == Want::Down, &ChildAnswer::Done, turn);
        self.children.answer(key, |_| true, &ChildAnswer::Stopped, turn);
        if let Some(slot) = self.children.remove(key, turn) {
            self.order.remove(&slot.pos);
        }
    }

    /// A child has ended inside a range that is being stopped: its end costs nothing.
    fn swept(&mut self, key: Key, turn: &mut Turn<'_>) {
        self.children.enter_stopped(key, turn);
        let slot = self.children.slots.get(key).expect("the child that has ended");
        if self.children.rules.restart(&slot.options) == RestartType::Temporary {
            return self.forget(key, false, turn);
        }
        let down = if self.dismissed.contains(&key) {
            Down::ByHand
        } else if self.is_finishing() {
            // There, nobody comes back.
            Down::Rested
        } else {
            Down::ByGroup
        };
        self.lay_down(key, down, turn);
    }

    /// What becomes of a child that has ended by itself.
    fn decide(&mut self, key: Key, active: bool, reason: &ExitReason, turn: &mut Turn<'_>) {
        self.children.answer(key, |want| want == Want::Down, &ChildAnswer::Done, turn);
        if !active && !reason.is_clean() {
            let awaited = self.children.callers.awaited_start(key);
            self.children.answer(key, |_| true, &ChildAnswer::Failed(reason.clone()), turn);
            if let Some(want) = awaited {
                self.children.enter_stopped(key, turn);
                return match want {
                    Want::Started => self.forget(key, false, turn),
                    _ => self.lay_down(key, Down::ByHand, turn),
                };
            }
            if self.children.rules.first_start == FirstStart::Fail && !self.up {
                self.children.tell_decision(key, reason, Decision::GiveUp, turn);
                self.children.enter_stopped(key, turn);
                self.lay_down(key, Down::GivenUp, turn);
                return self.finish(Finish::StartFailed { key, reason: reason.clone() });
            }
        }
        match self.children.on_exit(key, active, reason) {
            then @ (OnExit::Restart | OnExit::RestartUncharged) => {
                self.failed(key, active, then, reason, turn);
            }
            OnExit::Leave => {
                let significant = self.children.slot(key).options.significant;
                self.leave(key, reason, Decision::Leave, turn);
                if significant {
                    self.auto_shutdown();
                }
                self.open_mail(key, turn);
            }
            OnExit::EndSupervisor => {
                self.leave(key, reason, Decision::EndSupervisor, turn);
                self.finish(Finish::AutoShutdown);
            }
            OnExit::FailSupervisor => {
                self.leave(key, reason, Decision::FailSupervisor, turn);
                self.finish(Finish::Failed { key, reason: reason.clone() });
            }
        }
    }

    /// A child that has ended by itself stays down: Stopped if it ended well, else Errored.
    fn leave(&mut self, key: Key, reason: &ExitReason, decision: Decision, turn: &mut Turn<'_>) {
        let incarnation = self.children.slot(key).incarnation;
        self.children.answer(key, |_| true, &ChildAnswer::Started(incarnation), turn);
        self.children.tell_decision(key, reason, decision, turn);
        if self.children.restart_type(key) == RestartType::Temporary {
            self.children.enter_stopped(key, turn);
            self.forget(key, reason.is_clean(), turn);
        } else if reason.is_clean() {
            self.lay_down(key, Down::Finished, turn);
        } else {
            self.lay_down(key, Down::Left, turn);
        }
    }

    fn auto_shutdown(&mut self) {
        match self.children.rules.auto_shutdown {
            AutoShutdown::AnySignificant => self.finish(Finish::AutoShutdown),
            // Who comes back with the group, and who does not, is known when it is down.
            AutoShutdown::AllSignificant if self.is_stopping_a_range() => self.recount = true,
            AutoShutdown::AllSignificant if self.all_have_ended() => {
                self.finish(Finish::AutoShutdown);
            }
            AutoShutdown::AllSignificant | AutoShutdown::Never => {}
        }
    }

    /// Whether no significant child is left but those that are being stopped by hand.
    pub(super) fn all_have_ended(&self) -> bool {
        self.children.significant_left == self.children.significant_leaving
    }

    /// A child's end is one that its trigger answers with a restart.
    pub(super) fn failed(
        &mut self,
        key: Key,
        active: bool,
        then: OnExit,
        reason: &ExitReason,
        turn: &mut Turn<'_>,
    ) {
        if self.children.is_to_ask(key, reason) {
            return self.children.ask(key, active, reason.clone(), turn);
        }
        let verdict = self.children.charge(key, active, then, reason, turn);
        match (verdict, self.group(key)) {
            (Verdict::Exhausted(what), _) => self.exhausted(key, reason, what, turn),
            (Verdict::RestartAt(at), None) => self.children.restart(key, at, turn),
            (Verdict::PauseUntil(at), None) => self.children.back_off(key, at, turn),
            (Verdict::RestartAt(at) | Verdict::PauseUntil(at), Some(from)) => {
                self.children.set(key, State::Awaiting);
                self.children.enter(key, Lifecycle::Restarting, None, turn);
                self.regroup(from, at, Some(key), turn);
            }
        }
    }

    fn exhausted(&mut self, key: Key, reason: &ExitReason, what: OnExhausted, turn: &mut Turn<'_>) {
        if !matches!(what, OnExhausted::Park | OnExhausted::Pause(_)) {
            self.children.enter_stopped(key, turn);
        }
        let group = self.group(key);
        self.lay_down(key, Down::GivenUp, turn);
        match what {
            OnExhausted::Park | OnExhausted::StopChild | OnExhausted::Pause(_) => {
                if let Some(from) = group {
                    self.rest(from, turn);
                }
            }
            OnExhausted::Escalate => {
                self.finish(Finish::Escalated { key, reason: reason.clone() });
            }
            OnExhausted::Exit(code) => {
                self.finish(Finish::Exit { key, reason: reason.clone(), code });
            }
        }
    }
}

impl Ordered {
    pub(super) fn add(&mut self, options: Arc<ChildOptions>, now: Instant) -> Key {
        let pos = self.next_pos;
        self.next_pos += 1;
        let key = self.children.add(options, pos, now);
        self.order.insert(pos, key);
        key
    }

    pub(super) fn next(&self, place: u64) -> Option<(Key, u64)> {
        self.order.range(place..).next().map(|(&pos, &key)| (key, pos + 1))
    }

    /// A group's deadline may have been moved since the child's was drawn.
    pub(super) fn moved_deadline(&self, key: Key) -> Option<Instant> {
        let awaiting = self.children.state(key) == Some(State::Awaiting);
        self.sweep.as_ref().filter(|_| awaiting).map(|sweep| sweep.until)
    }

    pub(super) fn ended(&mut self, key: Key, reason: ExitReason, turn: &mut Turn<'_>) {
        let (active, reason) = self.children.ended(key, reason, turn);
        let reason = &reason;
        if reason.exit_code().is_some() && !self.is_finishing() {
            self.exit(key, reason, turn);
        } else if self.is_being_swept(key) {
            self.swept(key, turn);
        } else {
            self.decide(key, active, reason, turn);
        }
    }

    pub(super) fn gone(&mut self, key: Key, why: Why, turn: &mut Turn<'_>) {
        if self.is_being_swept(key) {
            return self.swept(key, turn);
        }
        match why {
            Why::Group => self.swept(key, turn),
            Why::ByHand | Why::Failing { by_hand: true, .. } => {
                self.children.enter_stopped(key, turn);
                if self.children.restart_type(key) == RestartType::Temporary {
                    self.forget(key, false, turn);
                } else {
                    self.lay_down(key, Down::ByHand, turn);
                }
            }
            Why::Renew => self.children.launch(key, StartCause::Manual, turn),
            Why::Itself => self.decide(key, true, &ExitReason::Normal, turn),
            Why::Failing { active, .. } => {
                let reason = self.children.failure(key);
                self.decide(key, active, &reason, turn);
            }
        }
    }

    pub(super) fn exit(&mut self, key: Key, reason: &ExitReason, turn: &mut Turn<'_>) {
        self.children.tell_decision(key, reason, Decision::Exit, turn);
        self.children.enter_stopped(key, turn);
        self.lay_down(key, Down::GivenUp, turn);
        if let Some(code) = reason.exit_code() {
            self.finish(Finish::Exit { key, reason: reason.clone(), code });
        }
    }

    pub(super) fn ignored(&mut self, key: Key, turn: &mut Turn<'_>) {
        self.children.answer(key, |_| true, &ChildAnswer::Ignored, turn);
        if self.children.restart_type(key) == RestartType::Temporary {
            self.forget(key, false, turn);
        } else {
            self.lay_down(key, Down::Ignored, turn);
        }
    }

    pub(super) fn park_leaked(&mut self, key: Key, _why: Why, turn: &mut Turn<'_>) {
        self.lay_down(key, Down::Leaked, turn);
    }
}
