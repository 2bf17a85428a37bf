//! How either machine takes in an event. What a kind of supervisor does of its own is a [`Kind`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::children::Children;
use super::health::checked;
use super::state::{State, Timer, Why};
use super::{
    Answer, Census, Effect, Event, Finish, Key, Machine, Request, RequirementId, SLICE, Ticket,
    Turn, View,
};
use crate::exit::ExitReason;
use crate::failure::FailureDecision;
use crate::policy::{ChildOptions, OnLeak, StartCause};

/// What differs between supervisors whose children have an order and those whose have none.
pub(super) trait Kind {
    fn children(&self) -> &Children;

    fn children_mut(&mut self) -> &mut Children;

    /// It has ended.
    fn is_finished(&self) -> bool;

    /// It has ended, or has begun to.
    fn is_finishing(&self) -> bool;

    /// The last event left work over.
    fn more(&self) -> Option<Instant>;

    fn admits(&self) -> Result<(), Answer>;

    fn add(&mut self, options: Arc<ChildOptions>, now: Instant) -> Key;

    fn next(&self, place: u64) -> Option<(Key, u64)>;

    /// A child's deadline for its next attempt, if it is not the one that was drawn for it.
    fn moved_deadline(&self, key: Key) -> Option<Instant>;

    fn request(&mut self, ticket: Ticket, key: Key, request: Request, turn: &mut Turn<'_>);

    /// A child has ended by itself.
    fn ended(&mut self, key: Key, reason: ExitReason, turn: &mut Turn<'_>);

    /// A child that was asked to end is gone.
    fn gone(&mut self, key: Key, why: Why, turn: &mut Turn<'_>);

    /// A child has ended, or is gone, that says the program is to end; nothing has begun that wins
    /// over that.
    fn exit(&mut self, key: Key, reason: &ExitReason, turn: &mut Turn<'_>);

    /// What becomes of a child was asked, and is decided, or was not in time.
    fn answered(&mut self, key: Key, answer: Option<FailureDecision>, turn: &mut Turn<'_>);

    /// A child declines to run. It is Stopped.
    fn ignored(&mut self, key: Key, turn: &mut Turn<'_>);

    /// A child was aborted and is still there, and must not run twice.
    fn park_leaked(&mut self, key: Key, why: Why, turn: &mut Turn<'_>);

    /// A message waits for a child that is started by one.
    fn wanted(&mut self, key: Key, turn: &mut Turn<'_>);

    /// Whether a child runs or will by itself. It has not ended, nor begun to.
    fn returns(&self, key: Key) -> bool;

    /// See [`Machine::stops_now`](super::Machine::stops_now).
    fn asked_now(&self) -> Option<Key>;

    /// See [`Machine::stops_after`](super::Machine::stops_after).
    fn asked_after(&self, key: Key) -> Option<Key>;

    /// A timer that belongs to no child has come.
    fn timed(&mut self, timer: Timer);

    /// Ends the supervisor, unless that has begun already.
    fn finish(&mut self, finish: Finish);

    /// Aborts whatever is left of a finishing supervisor.
    fn abort_all(&mut self);

    /// Goes on with what the last event has made possible.
    fn settle(&mut self, turn: &mut Turn<'_>);
}

impl<K: Kind> Machine for K {
    fn on_event(&mut self, event: Event, now: Instant, effects: &mut Vec<Effect>) {
        if self.is_finished() {
            return;
        }
        let subject = self.children().subject(&event);
        let children = self.children();
        let turn = &mut Turn { now, age: children.age(now), muted: children.muted, effects };
        match (event, subject) {
            (Event::Ready { .. }, Some(key)) => {
                if self.children().state(key) == Some(State::Activating) {
                    self.children_mut().activated(key, turn);
                }
            }
            (Event::Ignored { .. }, Some(key)) => {
                if self.children_mut().declined(key, turn) {
                    self.ignored(key, turn);
                } else {
                    exited(self, key, ExitReason::Shutdown, turn);
                }
            }
            (Event::Exited { reason, .. }, Some(key)) => exited(self, key, reason, turn),
            (Event::Healthy { .. }, Some(key)) => self.children_mut().healthy(key),
            (Event::Acked { .. }, Some(key)) => self.children_mut().acknowledged(key),
            (Event::Wanted { .. }, Some(key)) => {
                if !self.is_finishing() && self.children_mut().note_mail(key) {
                    self.wanted(key, turn);
                }
            }
            (Event::Health { problem, .. }, Some(key)) => checked(self, key, problem, turn),
            (Event::StopSelf { .. }, Some(key)) => {
                let state = self.children().state(key);
                if matches!(state, Some(State::Active | State::Activating)) {
                    self.children_mut().begin_stop(key, Why::Itself, turn);
                }
            }
            (Event::Policy { policy, .. }, Some(key)) => {
                self.children_mut().set_policy(key, policy);
            }
            (Event::Answered { decision, .. }, Some(key)) => {
                self.answered(key, Some(decision), turn);
            }
            (Event::Request { ticket, key, request }, _) => {
                self.request(ticket, key, request, turn);
            }
            (Event::Tick, _) => tick(self, turn),
            (Event::Stop { within }, _) => {
                self.finish(Finish::Stopped);
                self.children_mut().stop_within(within, now);
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

    fn mute(&mut self, muted: bool) {
        self.children_mut().muted = muted;
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.more().or_else(|| self.children().timers.next())
    }

    fn admits(&self) -> Result<(), Answer> {
        if self.is_finishing() {
            return Err(Answer::ShuttingDown);
        }
        Kind::admits(self)
    }

    fn reserve(&mut self, children: usize) {
        self.children_mut().slots.reserve(children);
    }

    fn add(&mut self, options: Arc<ChildOptions>, now: Instant) -> Key {
        Kind::add(self, options, now)
    }

    fn provided_by(&mut self, key: Key) -> RequirementId {
        self.children_mut().provided_by(key)
    }

    fn link(&mut self, key: Key, provides: Option<RequirementId>, requires: Vec<RequirementId>) {
        self.children_mut().requirements.link(key, provides, requires);
    }

    fn chain_to(&self, id: RequirementId, keys: &[Key]) -> Option<Vec<Key>> {
        self.children().requirements.chain_to(id, keys)
    }

    fn options(&self, key: Key) -> Option<&Arc<ChildOptions>> {
        self.children().slots.get(key).map(|slot| &slot.options)
    }

    fn view(&self, key: Key, now: Instant) -> Option<View> {
        let mut view = self.children().view(key, now)?;
        if let Some(moved) = self.moved_deadline(key)
            && let Some((at, _)) = view.history.as_mut().and_then(|history| history.next.as_mut())
        {
            *at = moved;
        }
        Some(view)
    }

    fn returns(&self, key: Key) -> bool {
        !self.is_finishing() && Kind::returns(self, key)
    }

    fn is_ending(&self) -> bool {
        self.is_finishing()
    }

    fn stops_now(&self) -> Option<Key> {
        self.asked_now()
    }

    fn stops_after(&self, key: Key) -> Option<Key> {
        self.asked_after(key)
    }

    fn awaits_message(&self, key: Key) -> bool {
        !self.is_finishing() && self.children().awaits_message(key)
    }

    fn is_failing(&self, key: Key) -> bool {
        let state = self.children().state(key);
        matches!(state, Some(State::Stopping { why: Why::Failing { .. }, .. }))
    }

    fn next(&self, place: u64) -> Option<(Key, u64)> {
        Kind::next(self, place)
    }

    fn census(&self) -> Census {
        self.children().census
    }

    fn intensity(&self, now: Instant) -> (usize, Option<u32>, Duration) {
        self.children().intensity(now)
    }
}

#[inline]
fn exited<K: Kind + ?Sized>(kind: &mut K, key: Key, reason: ExitReason, turn: &mut Turn<'_>) {
    let children = kind.children_mut();
    children.timers.disarm(Timer::Child(key));
    if let State::Stopping { why, .. } = children.slot(key).state {
        children.ended_on_request(key, &reason, turn);
        if reason.exit_code().is_some() && !kind.is_finishing() {
            kind.exit(key, &reason, turn);
        } else {
            kind.gone(key, why, turn);
        }
    } else {
        kind.ended(key, reason, turn);
    }
}

fn tick<K: Kind + ?Sized>(kind: &mut K, turn: &mut Turn<'_>) {
    for _ in 0..SLICE {
        match kind.children_mut().timers.pop(turn.now) {
            Some(Timer::Child(key)) => due(kind, key, turn),
            Some(Timer::Total) => kind.abort_all(),
            Some(timer) => kind.timed(timer),
            None => return,
        }
    }
}

/// A child's deadline has come.
fn due<K: Kind + ?Sized>(kind: &mut K, key: Key, turn: &mut Turn<'_>) {
    let state = kind.children_mut().slot(key).state;
    match state {
        // A supervisor that ends will come to it.
        State::Backoff if kind.is_finishing() => {}
        State::Backoff => kind.children_mut().launch(key, StartCause::Restart, turn),
        State::Activating => {
            let reason = ExitReason::ActivationTimedOut;
            kind.children_mut().fail_running(key, reason, false, turn);
        }
        State::Asking { .. } => kind.answered(key, None, turn),
        State::Stopping { aborted: false, .. } => kind.children_mut().abort(key, turn),
        State::Stopping { why, .. } => leaked(kind, key, why, turn),
        State::Down(_) | State::Gated(_) | State::Active | State::Awaiting => {}
    }
}

/// A child was aborted and is still there. It is treated as gone.
fn leaked<K: Kind + ?Sized>(kind: &mut K, key: Key, why: Why, turn: &mut Turn<'_>) {
    let children = kind.children_mut();
    let slot = children.slot(key);
    turn.push(Effect::Leaked { key, incarnation: slot.incarnation });
    let options = Arc::clone(&slot.options);
    children.ended_on_request(key, &ExitReason::Killed, turn);
    if children.rules.on_leak(&options) == OnLeak::Park && !kind.is_finishing() {
        kind.park_leaked(key, why, turn);
    } else {
        kind.gone(key, why, turn);
    }
}
