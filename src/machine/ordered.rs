//! The machine of a supervisor whose children have an order.
//!
//! What becomes of a child that has ended: nothing, its restart, or the end of the supervisor. Each
//! strategy is the range of positions that a failure takes down. In a range of one, the child waits
//! by itself ([`super::children`]). All that concerns several children in order (first start, group
//! restart, parking, shutdown) is one mechanism, in [`super::sweep`]. What callers ask for is in
//! [`super::requests`].
//!
//! It keeps the promises of [`super`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::children::Children;
use super::ledger::Want;
use super::state::{Down, Pos, State, Timer, Verdict, Why};
use super::sweep::Sweep;
use super::{
    Answer, Census, Decision, Effect, Event, Finish, Key, Machine, RequirementId, SLICE, Turn, View,
};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::policy::{
    AutoShutdown, ChildOptions, FirstStart, OnExhausted, OnLeak, RestartType, Rules, StartCause,
};

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Ordered {
    pub(super) children: Children,
    pub(super) order: BTreeMap<Pos, Key>,
    next_pos: Pos,
    pub(super) sweep: Option<Sweep>,
    /// The first start has passed the last child.
    pub(super) up: bool,
    pub(super) finished: bool,
    /// The last event left work over.
    pub(super) more: Option<Instant>,
}

impl Ordered {
    /// A machine that starts its children at the first tick.
    pub(crate) fn new(rules: Rules, now: Instant, seed: u64) -> Self {
        let sweep = Some(Sweep::first_start(rules.start, now));
        Self {
            children: Children::new(rules, now, seed),
            order: BTreeMap::new(),
            next_pos: 0,
            sweep,
            up: false,
            finished: false,
            more: Some(now),
        }
    }

    /// The positions that a failure of this child takes down, if it is more than the child.
    pub(super) fn group(&mut self, key: Key) -> Option<Pos> {
        let pos = self.children.slot(key).pos;
        let range = self.children.rules.strategy.affected(pos);
        (range.start() != range.end()).then_some(*range.start())
    }

    /// Leaves a child without a task, and tells those who waited for it.
    pub(super) fn lay_down(&mut self, key: Key, down: Down, turn: &mut Turn<'_>) {
        self.children.set(key, State::Down(down));
        self.children.answer(key, |want| want == Want::Down, &Answer::Done, turn);
        self.turn_away(key, turn);
    }

    /// Tells those who wait for a start that it will not come, unless the group's will.
    pub(super) fn turn_away(&mut self, key: Key, turn: &mut Turn<'_>) {
        if self.is_finishing() {
            self.children.answer(key, |_| true, &Answer::ShuttingDown, turn);
        } else if !self.will_be_started(key) {
            self.children.answer(key, |_| true, &Answer::Stopped, turn);
        }
    }

    /// Forgets a child that is Stopped. Who requires it may go on if it ended well.
    pub(super) fn forget(&mut self, key: Key, ended_well: bool, turn: &mut Turn<'_>) {
        let down = if ended_well { Down::Finished } else { Down::ByHand };
        self.children.set(key, State::Down(down));
        self.children.answer(key, |want| want == Want::Down, &Answer::Done, turn);
        self.children.answer(key, |_| true, &Answer::Stopped, turn);
        if let Some(slot) = self.children.remove(key, turn) {
            self.order.remove(&slot.pos);
        }
    }

    fn exited(&mut self, key: Key, reason: ExitReason, turn: &mut Turn<'_>) {
        self.children.timers.disarm(Timer::Child(key));
        if let State::Stopping { why, .. } = self.children.slot(key).state {
            self.children.ended_on_request(key, reason, turn);
            return self.gone(key, why, turn);
        }
        let (active, reason) = self.children.ended(key, reason, turn);
        if self.is_being_swept(key) {
            self.swept(key, turn);
        } else {
            self.decide(key, active, reason, turn);
        }
    }

    /// A child has ended inside a range that is being stopped: its end costs nothing.
    fn swept(&mut self, key: Key, turn: &mut Turn<'_>) {
        self.children.enter_stopped(key, turn);
        if self.children.restart_type(key) == RestartType::Temporary {
            self.forget(key, false, turn);
        } else {
            self.lay_down(key, Down::ByGroup, turn);
        }
    }

    /// A child that was asked to end is gone.
    fn gone(&mut self, key: Key, why: Why, turn: &mut Turn<'_>) {
        if self.is_being_swept(key) {
            return self.swept(key, turn);
        }
        match why {
            Why::Group => self.swept(key, turn),
            Why::ByHand => {
                self.children.enter_stopped(key, turn);
                if self.children.restart_type(key) == RestartType::Temporary {
                    self.forget(key, false, turn);
                } else {
                    self.lay_down(key, Down::ByHand, turn);
                }
            }
            Why::Renew => self.children.launch(key, StartCause::Manual, turn),
            Why::Itself => self.decide(key, true, ExitReason::Normal, turn),
            Why::Failing { active } => {
                let reason = self.children.failure(key);
                self.decide(key, active, reason, turn);
            }
        }
    }

    /// A child was aborted and is still there. It is treated as gone.
    fn leaked(&mut self, key: Key, why: Why, turn: &mut Turn<'_>) {
        let slot = self.children.slot(key);
        turn.push(Effect::Leaked { key, incarnation: slot.incarnation });
        let options = Arc::clone(&slot.options);
        self.children.ended_on_request(key, ExitReason::Killed, turn);
        if self.children.rules.on_leak(&options) == OnLeak::Park && !self.is_finishing() {
            self.lay_down(key, Down::Leaked, turn);
        } else {
            self.gone(key, why, turn);
        }
    }

    /// What becomes of a child that has ended by itself.
    fn decide(&mut self, key: Key, active: bool, reason: ExitReason, turn: &mut Turn<'_>) {
        let clean = reason.is_clean();
        self.children.answer(key, |want| want == Want::Down, &Answer::Done, turn);
        if !active && !clean {
            let awaited = self.children.slot(key).awaited_start();
            self.children.answer(key, |_| true, &Answer::Failed(reason.clone()), turn);
            if let Some(want) = awaited {
                self.children.enter_stopped(key, turn);
                return match want {
                    Want::Started => self.forget(key, false, turn),
                    _ => self.lay_down(key, Down::ByHand, turn),
                };
            }
            if self.children.rules.first_start == FirstStart::Fail && !self.up {
                self.children.tell_decision(key, &reason, Decision::GiveUp, turn);
                self.children.enter_stopped(key, turn);
                self.lay_down(key, Down::GivenUp, turn);
                return self.finish(Finish::StartFailed { key, reason });
            }
        }
        let restart = self.children.restart_type(key);
        if restart.restarts(clean) {
            return self.failed(key, active, reason, turn);
        }
        let slot = self.children.slot(key);
        let (significant, incarnation) = (slot.options.significant, slot.incarnation);
        self.children.answer(key, |_| true, &Answer::Started(incarnation), turn);
        self.children.tell_decision(key, &reason, Decision::Leave, turn);
        self.children.enter_stopped(key, turn);
        if restart == RestartType::Temporary {
            self.forget(key, clean, turn);
        } else {
            self.lay_down(key, Down::Finished, turn);
        }
        if significant {
            self.auto_shutdown();
        }
    }

    fn auto_shutdown(&mut self) {
        match self.children.rules.auto_shutdown {
            AutoShutdown::AnySignificant => self.finish(Finish::AutoShutdown),
            AutoShutdown::AllSignificant if self.children.significant_left == 0 => {
                self.finish(Finish::AutoShutdown);
            }
            AutoShutdown::AllSignificant | AutoShutdown::Never => {}
        }
    }

    /// A child's end is one that its restart type answers with a restart.
    fn failed(&mut self, key: Key, active: bool, reason: ExitReason, turn: &mut Turn<'_>) {
        match self.children.charge(key, active, &reason, turn) {
            Verdict::Exhausted => self.exhausted(key, reason, turn),
            Verdict::RestartAt(at) => match self.group(key) {
                None => self.children.back_off(key, at, turn),
                Some(from) => {
                    self.children.set(key, State::Awaiting);
                    self.children.enter(key, Lifecycle::Restarting, None, turn);
                    self.regroup(from, at, Some(key));
                }
            },
        }
    }

    fn exhausted(&mut self, key: Key, reason: ExitReason, turn: &mut Turn<'_>) {
        match self.children.rules.on_exhausted {
            OnExhausted::Park => {
                let group = self.group(key);
                self.lay_down(key, Down::GivenUp, turn);
                if let Some(from) = group {
                    self.rest(from);
                }
            }
            OnExhausted::Escalate => {
                self.children.enter_stopped(key, turn);
                self.lay_down(key, Down::GivenUp, turn);
                self.finish(Finish::Escalated { key, reason });
            }
        }
    }

    /// A child's deadline has come.
    fn due(&mut self, key: Key, turn: &mut Turn<'_>) {
        let state = self.children.slot(key).state;
        match state {
            // A supervisor that ends will come to it.
            State::Backoff if self.is_finishing() => {}
            State::Backoff => self.children.launch(key, StartCause::Restart, turn),
            State::Activating => {
                self.children.fail_running(key, ExitReason::ActivationTimedOut, false, turn);
            }
            State::Stopping { aborted: false, .. } => self.children.abort(key, turn),
            State::Stopping { why, .. } => self.leaked(key, why, turn),
            State::Down(_) | State::Gated(_) | State::Active | State::Awaiting => {}
        }
    }

    fn ignored(&mut self, key: Key, turn: &mut Turn<'_>) {
        if !self.children.declined(key, turn) {
            return self.exited(key, ExitReason::Shutdown, turn);
        }
        self.children.answer(key, |_| true, &Answer::Ignored, turn);
        if self.children.restart_type(key) == RestartType::Temporary {
            self.forget(key, false, turn);
        } else {
            self.lay_down(key, Down::Ignored, turn);
        }
    }

    fn tick(&mut self, turn: &mut Turn<'_>) {
        for _ in 0..SLICE {
            match self.children.timers.pop(turn.now) {
                Some(Timer::Child(key)) => self.due(key, turn),
                Some(Timer::Total) => self.abort_all(),
                // The sweep looks at its own deadline when it settles.
                Some(Timer::Sweep | Timer::Grace(_)) => {}
                None => return,
            }
        }
    }
}

impl Machine for Ordered {
    fn on_event(&mut self, event: Event, now: Instant, effects: &mut Vec<Effect>) {
        let subject = self.children.subject(&event);
        let turn = &mut Turn { now, effects };
        match (event, subject) {
            _ if self.finished => return,
            (Event::Ready { .. }, Some(key)) => {
                if self.children.state(key) == Some(State::Activating) {
                    self.children.activated(key, turn);
                }
            }
            (Event::Ignored { .. }, Some(key)) => self.ignored(key, turn),
            (Event::Exited { reason, .. }, Some(key)) => self.exited(key, reason, turn),
            (Event::Healthy { .. }, Some(key)) => self.children.healthy(key),
            (Event::StopSelf { .. }, Some(key)) => {
                if matches!(self.children.state(key), Some(State::Active | State::Activating)) {
                    self.children.begin_stop(key, Why::Itself, turn);
                }
            }
            (Event::Request { ticket, key, request }, _) => {
                self.request(ticket, key, request, turn)
            }
            (Event::Tick, _) => self.tick(turn),
            (Event::Stop { within }, _) => {
                self.finish(Finish::Stopped);
                self.children.stop_within(within, now);
            }
            (Event::AbortAll, _) => {
                self.finish(Finish::Aborted);
                self.abort_all();
            }
            // It speaks of an incarnation that is over.
            (_, None) => return,
        }
        self.settle(turn);
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.more.or_else(|| self.children.timers.next())
    }

    fn admits(&self) -> Result<(), Answer> {
        if self.is_finishing() { Err(Answer::ShuttingDown) } else { Ok(()) }
    }

    fn add(&mut self, options: Arc<ChildOptions>, now: Instant) -> Key {
        let pos = self.next_pos;
        self.next_pos += 1;
        let key = self.children.add(options, pos, now);
        self.order.insert(pos, key);
        key
    }

    fn provided_by(&mut self, key: Key) -> RequirementId {
        self.children.provided_by(key)
    }

    fn link(&mut self, key: Key, provides: Option<RequirementId>, requires: Vec<RequirementId>) {
        self.children.requirements.link(key, provides, requires);
    }

    fn chain_to(&self, id: RequirementId, keys: &[Key]) -> Option<Vec<Key>> {
        self.children.requirements.chain_to(id, keys)
    }

    fn view(&self, key: Key) -> Option<View> {
        let mut view = self.children.view(key)?;
        // A group's deadline may have been moved since the child's was drawn.
        if self.children.state(key) == Some(State::Awaiting)
            && let Some(history) = &mut view.history
            && let (Some((at, _)), Some(sweep)) = (&mut history.next, &self.sweep)
        {
            *at = sweep.until;
        }
        Some(view)
    }

    fn next(&self, place: u64) -> Option<(Key, u64)> {
        self.order.range(place..).next().map(|(&pos, &key)| (key, pos + 1))
    }

    fn census(&self) -> Census {
        self.children.census
    }

    fn intensity(&self, now: Instant) -> (usize, Option<u32>, Duration) {
        self.children.intensity(now)
    }
}
