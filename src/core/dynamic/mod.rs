//! The rules of a dynamic supervisor: many children, no order, no siblings.
//!
//! A child waits by itself, is restarted by itself, and is removed when it has ended for good. All
//! children stop at once, with one timer for each distinct grace. The source is Elixir's
//! `DynamicSupervisor`.
//!
//! # Invariants
//!
//! 1. A [`Pass`] over all children visits at most [`SLICE`] of them after each event.

mod exits;
mod occupied;
mod requests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::occupied::OccupiedPlaces;
use super::{
    ChildAnswer, ChildState, Children, DownState, Effect, Finish, Key, SLICE, StepCx, StopReason,
    Timer,
};
use crate::clock::later;
use crate::policy::{ChildRules, Rules};

/// See the [module](self).
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Dynamic {
    pub(super) children: Children,
    occupied: OccupiedPlaces,
    pub(super) up: bool,
    pub(super) finishing: Option<Finish>,
    pub(super) finished: bool,
    pub(super) passes: VecDeque<Pass>,
    /// Set if the last event has left work over.
    pub(super) more: Option<Instant>,
}

/// One pass over all children, from the last place to the first.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Pass {
    /// The places from here on have been visited.
    pub(super) cursor: usize,
    pub(super) action: PassAction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum PassAction {
    /// Cancel every child.
    Stop,
    /// Cancel every child, because the time for an ordered stop is over.
    Close { all: bool },
    /// Abort the children with this grace.
    Expire(Duration),
    /// Abort all remaining children.
    Abort,
}

impl Dynamic {
    pub(super) fn new(rules: Arc<Rules>, now: Instant) -> Self {
        Self {
            children: Children::new(rules, now),
            occupied: OccupiedPlaces::default(),
            up: false,
            finishing: None,
            finished: false,
            passes: VecDeque::new(),
            more: Some(now),
        }
    }

    /// Whether there is room for another child.
    pub(super) fn admits(&self) -> Result<(), ChildAnswer> {
        match self.children.rules.max_children {
            Some(max) if self.occupied.count() >= max => Err(ChildAnswer::MaxChildren(max)),
            _ => Ok(()),
        }
    }

    pub(super) fn add(&mut self, rules: Arc<ChildRules>, cx: &mut StepCx<'_>) -> Key {
        let key = self.children.add(rules, 0, cx);
        self.occupied.insert(key.index());
        key
    }

    pub(super) fn next(&self, place: u64) -> Option<(Key, u64)> {
        let place = self.occupied.first_from(usize::try_from(place).ok()?)?;
        let key = self.children.entries.at(place)?;
        Some((key, key.index() as u64 + 1))
    }

    pub(super) fn is_finishing(&self) -> bool {
        self.finishing.is_some()
    }

    /// Whether the child runs, or will without a request of a caller.
    pub(super) fn comes_back(&self, key: Key) -> bool {
        let entry = self.children.entries.get(key);
        entry.is_some_and(|entry| {
            entry.state == ChildState::Down(DownState::New) || entry.comes_back_alone()
        })
    }

    /// Whether a group operation will start the child, which is down. There is none.
    #[expect(clippy::unused_self, reason = "the other kind of supervisor needs it")]
    pub(super) fn will_be_started(&self, _key: Key) -> bool {
        false
    }

    /// Starts a child that is down if a message waits for it.
    pub(super) fn start_for_message(&mut self, key: Key, cx: &mut StepCx<'_>) {
        if self.children.is_started_by_message(key)
            && let Some((what, reason)) = self.children.launch_for_message(key, cx)
        {
            self.on_exhausted(key, &reason, what, cx);
        }
    }

    /// Leaves a child without a task, and answers its callers.
    pub(super) fn set_down(&mut self, key: Key, down: DownState, cx: &mut StepCx<'_>) {
        self.children.set(key, ChildState::Down(down));
        self.children.answer_down(key, cx);
        self.children.answer_all(key, &ChildAnswer::Stopped, cx);
    }

    /// Removes a child, and answers its callers.
    pub(super) fn forget(&mut self, key: Key, cx: &mut StepCx<'_>) {
        self.children.enter_stopped(key, cx);
        self.children.set(key, ChildState::Down(DownState::Finished));
        self.children.answer_down(key, cx);
        let answer =
            if self.is_finishing() { ChildAnswer::ShuttingDown } else { ChildAnswer::Stopped };
        self.children.answer_all(key, &answer, cx);
        let answer = if self.is_finishing() { answer } else { ChildAnswer::NotFound };
        if self.children.remove(key, &answer, cx).is_some() {
            self.occupied.remove(key.index());
        }
    }

    /// Removes a child that a caller removes and that is down, unless that was done.
    pub(super) fn discard(&mut self, key: Key, cx: &mut StepCx<'_>) {
        if self.children.state(key).is_some() {
            self.forget(key, cx);
        }
    }

    /// Ends the supervisor, unless that has begun already.
    pub(super) fn finish(&mut self, finish: Finish) {
        if self.finishing.is_none() {
            self.finishing = Some(finish);
            self.pass(PassAction::Stop);
        }
    }

    /// Closes all children that are left.
    pub(super) fn close(&mut self, all: bool) {
        self.pass(PassAction::Close { all });
    }

    /// Aborts all children that are left.
    pub(super) fn abort_all(&mut self) {
        self.pass(PassAction::Abort);
    }

    /// A grace that children share is over.
    pub(super) fn on_grace_over(&mut self, grace: Duration) {
        self.pass(PassAction::Expire(grace));
    }

    fn pass(&mut self, action: PassAction) {
        // A pass with the same action that has not begun visits all children as well.
        if self.passes.iter().skip(1).all(|waiting| waiting.action != action) {
            self.passes.push_back(Pass { cursor: self.children.entries.places(), action });
        }
    }

    /// Goes on with the passes, and ends the supervisor after the last child.
    pub(super) fn settle(&mut self, cx: &mut StepCx<'_>) {
        self.more = None;
        if !self.up {
            self.up = true;
            cx.push(Effect::Up);
        }
        while let Some(key) = self.children.requirements.released() {
            // A supervisor that ends removes the child, once its pass comes to it.
            if let Some(ChildState::Gated(cause)) = self.children.state(key)
                && !self.is_finishing()
            {
                self.children.launch(key, cause, cx);
            }
        }
        for _ in 0..SLICE {
            let Some(pass) = self.passes.front_mut() else {
                return self.finish_if_empty(cx);
            };
            // Past the places that a peak of children has left empty.
            let Some(cursor) = self.occupied.last_before(pass.cursor) else {
                self.passes.pop_front();
                continue;
            };
            pass.cursor = cursor;
            let action = pass.action;
            if let Some(key) = self.children.entries.at(cursor) {
                self.visit(key, action, cx);
            }
        }
        self.more = Some(cx.now);
    }

    fn finish_if_empty(&mut self, cx: &mut StepCx<'_>) {
        if self.occupied.count() == 0
            && let Some(finish) = &self.finishing
        {
            self.children.refuse_seekers(cx);
            cx.push(Effect::Finish(finish.clone()));
            self.finished = true;
        }
    }

    fn visit(&mut self, key: Key, action: PassAction, cx: &mut StepCx<'_>) {
        let state = self.children.entry(key).state;
        match action {
            _ if !state.is_live() => self.forget(key, cx),
            PassAction::Stop if matches!(state, ChildState::Stopping { .. }) => {}
            PassAction::Stop => self.cancel(key, cx),
            PassAction::Close { all } => self.children.close(key, all, cx),
            PassAction::Expire(grace) => {
                if self.children.shutdown(key).grace() == Some(grace) {
                    self.children.abort(key, cx);
                }
            }
            PassAction::Abort => self.children.abort(key, cx),
        }
    }

    /// Cancels a child, with the timer that all children with its grace share. The grace counts from
    /// the last child that was cancelled.
    fn cancel(&mut self, key: Key, cx: &mut StepCx<'_>) {
        if let Some(grace) = self.children.begin_stop_untimed(key, StopReason::Group, cx) {
            self.children.timers.arm(Timer::Grace(grace), later(cx.now, grace));
        }
    }
}
