//! The rules of one supervisor, whose children have an order or have none.
//!
//! A [`Machine`] takes in each event, does what is the same for both kinds, and leaves the rest to
//! [`Ordered`] or [`Dynamic`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::children::Children;
use super::dynamic::Dynamic;
use super::ordered::Ordered;
use super::state::{State, Timer, Why};
use super::{
    ChildAnswer, ChildCounts, Effect, Finish, Key, MachineEvent, RequirementId, SLICE, Turn, View,
};
use crate::exit::ExitReason;
use crate::policy::{ChildOptions, OnLeak, Rules, StartCause};

/// The rules of one supervisor: events in, effects out.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) enum Machine {
    /// The children are declared in an order and restarted by a strategy.
    Ordered(Ordered),
    /// Many equal children, each on its own.
    Dynamic(Dynamic),
}

/// Evaluates an expression for the kind that there is.
macro_rules! each {
    ($machine:expr, $kind:ident => $value:expr) => {
        match $machine {
            Machine::Ordered($kind) => $value,
            Machine::Dynamic($kind) => $value,
        }
    };
}

impl Machine {
    /// A supervisor that starts its children in order, at the first [`MachineEvent::Tick`].
    pub(crate) fn ordered(rules: impl Into<Arc<Rules>>, now: Instant, seed: u64) -> Self {
        Self::Ordered(Ordered::new(rules.into(), now, seed))
    }

    /// A supervisor whose children are added and removed while it runs.
    pub(crate) fn dynamic(rules: impl Into<Arc<Rules>>, now: Instant, seed: u64) -> Self {
        Self::Dynamic(Dynamic::new(rules.into(), now, seed))
    }

    /// Takes in one event and appends what must be done about it, in order.
    pub(crate) fn on_event(
        &mut self,
        event: MachineEvent,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        if each!(self, kind => kind.finished) {
            return;
        }
        let children = self.children();
        let subject = children.subject(&event);
        let turn = &mut Turn { now, effects };
        match (event, subject) {
            (MachineEvent::Ready { .. }, Some(key)) => {
                if self.children().state(key) == Some(State::Activating) {
                    self.children_mut().activated(key, turn);
                }
            }
            (MachineEvent::Ignored { .. }, Some(key)) => {
                if self.children_mut().declined(key, turn) {
                    each!(self, kind => kind.ignored(key, turn));
                } else {
                    self.exited(key, ExitReason::Shutdown, turn);
                }
            }
            (MachineEvent::Exited { reason, .. }, Some(key)) => self.exited(key, reason, turn),
            (MachineEvent::Healthy { .. }, Some(key)) => self.children_mut().healthy(key),
            (MachineEvent::Acked { .. }, Some(key)) => self.children_mut().acknowledged(key),
            (MachineEvent::MessagePending { .. }, Some(key)) => {
                if !self.is_ending() && self.children_mut().note_mail(key) {
                    each!(self, kind => kind.open_mail(key, turn));
                }
            }
            (MachineEvent::Health { problem, .. }, Some(key)) => self.checked(key, problem, turn),
            (MachineEvent::StopSelf { .. }, Some(key)) => {
                let state = self.children().state(key);
                if matches!(state, Some(State::Active | State::Activating)) {
                    self.children_mut().begin_stop(key, Why::Itself, turn);
                }
            }
            (MachineEvent::Policy { policy, .. }, Some(key)) => {
                self.children_mut().set_policy(key, policy);
            }
            (MachineEvent::Answered { decision, .. }, Some(key)) => {
                each!(self, kind => kind.heed(key, Some(decision), turn));
            }
            (MachineEvent::Request { ticket, key, request }, _) => {
                each!(self, kind => kind.request(ticket, key, request, turn));
            }
            (MachineEvent::Tick, _) => self.tick(turn),
            (MachineEvent::Stop { within }, _) => {
                each!(self, kind => kind.finish(Finish::Stopped));
                self.children_mut().stop_within(within, now);
            }
            (MachineEvent::AbortAll, _) => {
                each!(self, kind => kind.finish(Finish::Aborted));
                each!(self, kind => kind.abort_all());
            }
            // It speaks of an incarnation that is over.
            (_, None) => return,
        }
        each!(self, kind => kind.settle(turn));
    }

    fn exited(&mut self, key: Key, reason: ExitReason, turn: &mut Turn<'_>) {
        let ends = self.is_ending();
        let children = self.children_mut();
        children.timers.disarm(Timer::Child(key));
        let State::Stopping { why, .. } = children.slot(key).state else {
            return each!(self, kind => kind.ended(key, reason, turn));
        };
        children.ended_on_request(key, &reason, turn);
        if reason.exit_code().is_some() && !ends {
            each!(self, kind => kind.exit(key, &reason, turn));
        } else {
            each!(self, kind => kind.gone(key, why, turn));
        }
    }

    fn tick(&mut self, turn: &mut Turn<'_>) {
        for _ in 0..SLICE {
            match self.children_mut().timers.pop(turn.now) {
                Some(Timer::Child(key)) => self.due(key, turn),
                Some(Timer::Total) => each!(self, kind => kind.abort_all()),
                Some(Timer::Grace(grace)) => {
                    if let Self::Dynamic(dynamic) = self {
                        dynamic.grace_is_over(grace);
                    }
                }
                // The sweep looks at its own deadline when it settles.
                Some(Timer::Sweep) => {}
                None => return,
            }
        }
    }

    /// A child's deadline has come.
    fn due(&mut self, key: Key, turn: &mut Turn<'_>) {
        let ends = self.is_ending();
        let children = self.children_mut();
        match children.slot(key).state {
            // A supervisor that ends will come to it.
            State::Backoff if ends => {}
            State::Backoff => children.launch(key, StartCause::Restart, turn),
            State::Activating => {
                children.fail_running(key, ExitReason::ActivationTimedOut, false, turn);
            }
            State::Asking { .. } => each!(self, kind => kind.heed(key, None, turn)),
            State::Stopping { aborted: false, .. } => children.abort(key, turn),
            State::Stopping { why, .. } => self.leaked(key, why, turn),
            State::Down(_) | State::Gated(_) | State::Active | State::Awaiting => {}
        }
    }

    /// A child was aborted and is still there. It is treated as gone.
    fn leaked(&mut self, key: Key, why: Why, turn: &mut Turn<'_>) {
        let ends = self.is_ending();
        let children = self.children_mut();
        let slot = children.slot(key);
        turn.push(Effect::Leaked { key, incarnation: slot.incarnation });
        let options = Arc::clone(&slot.options);
        children.ended_on_request(key, &ExitReason::Killed, turn);
        if children.rules.on_leak(&options) == OnLeak::Park && !ends {
            each!(self, kind => kind.park_leaked(key, why, turn));
        } else {
            each!(self, kind => kind.gone(key, why, turn));
        }
    }

    /// A check has come to something else than those before it.
    fn checked(&mut self, key: Key, problem: Option<Arc<str>>, turn: &mut Turn<'_>) {
        let ends = self.is_ending();
        let fails = self.children_mut().checked(key, problem.clone(), turn);
        // Who ends anyway need not fail before.
        if let Some(problem) = problem.filter(|_| fails && !ends) {
            let reason = ExitReason::Unhealthy(problem.to_string());
            self.children_mut().fail_running(key, reason, false, turn);
        }
    }

    pub(super) fn children(&self) -> &Children {
        each!(self, kind => &kind.children)
    }

    fn children_mut(&mut self) -> &mut Children {
        each!(self, kind => &mut kind.children)
    }

    /// The next instant at which the machine wants an [`MachineEvent::Tick`]; in the past if at once.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        each!(self, kind => kind.more).or_else(|| self.children().timers.next())
    }

    /// Whether a child may be added now, or what its author is told.
    pub(crate) fn admits(&self) -> Result<(), ChildAnswer> {
        match self {
            _ if self.is_ending() => Err(ChildAnswer::ShuttingDown),
            Self::Ordered(_) => Ok(()),
            Self::Dynamic(dynamic) => dynamic.admits(),
        }
    }

    /// Makes room for so many children.
    pub(crate) fn reserve(&mut self, children: usize) {
        self.children_mut().slots.reserve(children);
    }

    /// Adds a child, which is started by [`ChildRequest::Start`](super::ChildRequest::Start) or by the first
    /// [`MachineEvent::Tick`].
    pub(crate) fn add(&mut self, options: Arc<ChildOptions>, now: Instant) -> Key {
        each!(self, kind => kind.add(options, now))
    }

    /// What others require when they require this child.
    pub(crate) fn provided_by(&mut self, key: Key) -> RequirementId {
        self.children_mut().provided_by(key)
    }

    /// Says of a child that was just added what it provides and what it requires.
    pub(crate) fn link(
        &mut self,
        key: Key,
        provides: Option<RequirementId>,
        requires: Vec<RequirementId>,
    ) {
        self.children_mut().requirements.link(key, provides, requires);
    }

    /// How one of `keys` requires `id`, itself or through others, if it does.
    pub(crate) fn chain_to(&self, id: RequirementId, keys: &[Key]) -> Option<Vec<Key>> {
        self.children().requirements.chain_to(id, keys)
    }

    /// What the author of the child asked for. Cheaper than a [`view`](Self::view), for whatever
    /// happens at each start or end.
    pub(crate) fn options(&self, key: Key) -> Option<&Arc<ChildOptions>> {
        self.children().slots.get(key).map(|slot| &slot.options)
    }

    pub(crate) fn view(&self, key: Key, now: Instant) -> Option<View> {
        let mut view = self.children().view(key, now)?;
        if let Self::Ordered(ordered) = self
            && let Some(moved) = ordered.moved_deadline(key)
            && let Some((at, _)) = view.history.as_mut().and_then(|history| history.next.as_mut())
        {
            *at = moved;
        }
        Some(view)
    }

    /// Whether the child runs, or will without anybody asking for it by hand: what is sent to it
    /// need not be given up. Not, of a machine that ends. What becomes of a child that is about to
    /// end, or is being decided on, is open, and so it is taken to come back.
    pub(crate) fn returns(&self, key: Key) -> bool {
        !self.is_ending() && each!(self, kind => kind.comes_back(key))
    }

    /// Whether the child is down until a message comes for it, and none has been told of.
    pub(crate) fn awaits_message(&self, key: Key) -> bool {
        !self.is_ending() && self.children().awaits_message(key)
    }

    /// The child whose end an ordered stop, of the supervisor or of a group that is started again,
    /// waits for, or that it comes to next if that one is down.
    pub(crate) fn stops_now(&self) -> Option<Key> {
        match self {
            Self::Ordered(ordered) => ordered.stops_now(),
            // All are asked at once.
            Self::Dynamic(_) => None,
        }
    }

    /// The worker that is asked to stop when this child is down. The child is the one that
    /// [stops now](Self::stops_now), or comes after it in the same way. This holds whatever becomes of
    /// them, and whatever else happens, until there is nobody who stops now, or all are aborted.
    pub(crate) fn stops_after(&self, key: Key) -> Option<Key> {
        match self {
            Self::Ordered(ordered) => ordered.stops_after(key),
            Self::Dynamic(_) => None,
        }
    }

    /// Whether the child has failed, and is being stopped for that.
    pub(crate) fn is_failing(&self, key: Key) -> bool {
        let state = self.children().state(key);
        matches!(state, Some(State::Stopping { why: Why::Failing { .. }, .. }))
    }

    /// Whether the supervisor ends, or has ended.
    pub(crate) fn is_ending(&self) -> bool {
        each!(self, kind => kind.is_finishing())
    }

    /// The first child at or behind a place in the start order, and the place behind it. Places
    /// are numbered from 0, and stay where they are when a child goes.
    pub(crate) fn next(&self, place: u64) -> Option<(Key, u64)> {
        each!(self, kind => kind.next(place))
    }

    pub(crate) fn counts(&self) -> ChildCounts {
        self.children().counts
    }

    /// Restarts that count at `now`, and how many may.
    pub(crate) fn intensity(&self, now: Instant) -> (usize, Option<u32>, Duration) {
        self.children().intensity(now)
    }
}

/// What the tests look into.
#[cfg(test)]
impl Machine {
    /// Whether its children have an order.
    pub(super) fn is_ordered(&self) -> bool {
        matches!(self, Self::Ordered(_))
    }

    /// Whether it is still open who of a group comes back.
    pub(super) fn decides_later(&self) -> bool {
        matches!(self, Self::Ordered(ordered) if ordered.is_stopping_a_range())
    }

    /// Whether the child is in a range that is being stopped, and has not been passed.
    pub(super) fn is_to_stop(&self, key: Key) -> bool {
        matches!(self, Self::Ordered(ordered) if ordered.is_being_swept(key))
    }

    pub(super) fn print(&self, print: &mut super::fingerprint::Fingerprint) {
        each!(self, kind => kind.print(print));
    }
}
