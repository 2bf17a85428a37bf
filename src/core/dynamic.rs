//! The machine of a dynamic supervisor: many children, no order, no siblings.
//!
//! A child waits by itself, is restarted by itself, and is forgotten when it has ended for good.
//! All stop at once, with one timer for each distinct grace, so that a stop costs the same for each
//! child however many there are. The source is Elixir's `DynamicSupervisor`.
//!
//! It keeps the promises of [`super`]; a walk over all children ([`Walk`]) is cut into slices.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::callers::Want;
use super::children::{Children, later};
use super::state::{Down, State, Timer, Verdict, Why};
use super::{ChildAnswer, ChildRequest, Decision, Effect, Finish, Key, SLICE, Ticket, Turn};
use crate::exit::ExitReason;
use crate::policy::{ChildOptions, OnExhausted, OnExit, Rules, Shutdown, StartCause};

/// See the [module](self).
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Dynamic {
    pub(super) children: Children,
    count: usize,
    up: bool,
    finishing: Option<Finish>,
    pub(super) finished: bool,
    walks: VecDeque<Walk>,
    pub(super) more: Option<Instant>,
}

/// One pass over all places, a slice at a time.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
struct Walk {
    /// The places from here on have been visited.
    cursor: usize,
    task: Task,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Task {
    /// Ask every child to stop.
    Stop,
    /// Abort those whose grace this was.
    Expire(Duration),
    /// Abort whatever is left.
    Abort,
}

impl Dynamic {
    pub(super) fn new(rules: Arc<Rules>, now: Instant, seed: u64) -> Self {
        Self {
            children: Children::new(rules, now, seed),
            count: 0,
            up: false,
            finishing: None,
            finished: false,
            walks: VecDeque::new(),
            more: Some(now),
        }
    }

    fn decide(&mut self, key: Key, active: bool, reason: &ExitReason, turn: &mut Turn<'_>) {
        if !active && !reason.is_clean() {
            let awaited = self.children.callers.awaited_start(key);
            self.children.answer(key, |_| true, &ChildAnswer::Failed(reason.clone()), turn);
            if awaited.is_some() {
                return self.forget(key, turn);
            }
        }
        let then = self.children.on_exit(key, active, reason);
        if self.finishing.is_some() || !then.restarts() {
            return self.leave(key, then, reason, turn);
        }
        self.failed(key, active, then, reason, turn);
    }

    /// A child's end is one that its restart type answers with a restart.
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
        match self.children.charge(key, active, then, reason, turn) {
            Verdict::RestartAt(at) => self.children.restart(key, at, turn),
            Verdict::PauseUntil(at) => self.children.back_off(key, at, turn),
            Verdict::Exhausted(OnExhausted::Park | OnExhausted::Pause(_)) => {
                self.lay_down(key, Down::GivenUp, turn);
            }
            Verdict::Exhausted(OnExhausted::StopChild) => {
                self.children.enter_stopped(key, turn);
                self.lay_down(key, Down::GivenUp, turn);
            }
            Verdict::Exhausted(OnExhausted::Escalate) => {
                self.forget(key, turn);
                self.finish(Finish::Escalated { key, reason: reason.clone() });
            }
            Verdict::Exhausted(OnExhausted::Exit(code)) => {
                self.forget(key, turn);
                self.finish(Finish::Exit { key, reason: reason.clone(), code });
            }
        }
    }

    /// A child that has ended by itself is forgotten, unless a message may start it. Nothing else comes
    /// of its end any more if the supervisor ends already.
    fn leave(&mut self, key: Key, then: OnExit, reason: &ExitReason, turn: &mut Turn<'_>) {
        let over = self.finishing.is_some();
        let incarnation = self.children.slot(key).incarnation;
        let up = ChildAnswer::Started(incarnation);
        self.children.answer(key, |want| want != Want::Down, &up, turn);
        let decision = match then {
            OnExit::Leave => Some(Decision::Leave),
            OnExit::EndSupervisor => Some(Decision::EndSupervisor).filter(|_| !over),
            OnExit::FailSupervisor => Some(Decision::FailSupervisor).filter(|_| !over),
            OnExit::Restart | OnExit::RestartUncharged => None,
        };
        if let Some(decision) = decision {
            self.children.tell_decision(key, reason, decision, turn);
        }
        if then == OnExit::Leave && !over && self.children.outlives(key) {
            let down = if reason.is_clean() { Down::Finished } else { Down::Left };
            self.lay_down(key, down, turn);
            return self.open_mail(key, turn);
        }
        self.forget(key, turn);
        match then {
            OnExit::EndSupervisor => self.finish(Finish::AutoShutdown),
            OnExit::FailSupervisor => self.finish(Finish::Failed { key, reason: reason.clone() }),
            OnExit::Leave | OnExit::Restart | OnExit::RestartUncharged => {}
        }
    }

    pub(super) fn lay_down(&mut self, key: Key, down: Down, turn: &mut Turn<'_>) {
        self.children.set(key, State::Down(down));
        self.children.answer(key, |want| want == Want::Down, &ChildAnswer::Done, turn);
        self.children.answer(key, |_| true, &ChildAnswer::Stopped, turn);
    }

    pub(super) fn forget(&mut self, key: Key, turn: &mut Turn<'_>) {
        self.children.enter_stopped(key, turn);
        self.children.set(key, State::Down(Down::Finished));
        self.children.answer(key, |want| want == Want::Down, &ChildAnswer::Done, turn);
        let left =
            if self.finishing.is_some() { ChildAnswer::ShuttingDown } else { ChildAnswer::Stopped };
        self.children.answer(key, |_| true, &left, turn);
        if self.children.remove(key, turn).is_some() {
            self.count -= 1;
        }
    }

    #[cfg(test)]
    pub(super) fn print_walks(&self, print: &mut super::fingerprint::Fingerprint) {
        use std::hash::Hash;

        (self.up, self.finished, self.finishing.is_some(), self.more.is_some()).hash(print);
        self.walks.len().hash(print);
        for walk in &self.walks {
            (walk.cursor, walk.task).hash(print);
        }
    }

    fn walk(&mut self, task: Task) {
        let walk = Walk { cursor: self.children.slots.places(), task };
        // One that waits behind another will do for both.
        if self.walks.iter().skip(1).all(|waiting| waiting.task != task) {
            self.walks.push_back(walk);
        }
    }

    fn finish_if_empty(&mut self, turn: &mut Turn<'_>) {
        if self.count == 0
            && let Some(finish) = &self.finishing
        {
            turn.push(Effect::Finish(finish.clone()));
            self.finished = true;
        }
    }

    fn visit(&mut self, key: Key, task: Task, turn: &mut Turn<'_>) {
        let state = self.children.slot(key).state;
        match (task, state) {
            (
                _,
                State::Down(_)
                | State::Gated(_)
                | State::Backoff
                | State::Awaiting
                | State::Asking { .. },
            ) => self.forget(key, turn),
            (Task::Stop, State::Activating | State::Active) => self.ask_to_stop(key, turn),
            (Task::Stop, State::Stopping { .. }) => {}
            (Task::Expire(grace), _) => {
                if self.children.shutdown(key) == Shutdown::Timeout(grace) {
                    self.children.abort(key, turn);
                }
            }
            (Task::Abort, _) => self.children.abort(key, turn),
        }
    }

    /// Asks a child to stop, under the timer that all children with its grace share.
    fn ask_to_stop(&mut self, key: Key, turn: &mut Turn<'_>) {
        if let Some(grace) = self.children.begin_stop_untimed(key, Why::Group, turn) {
            // It counts from the last that was asked: a walk over a million takes its time.
            let (shared, at) = (Timer::Grace(grace), later(turn.now, grace));
            if self.children.timers.at(shared) != Some(at) {
                self.children.timers.arm(shared, at);
            }
        }
    }

    fn serve(
        &mut self,
        ticket: Ticket,
        key: Key,
        request: ChildRequest,
        state: State,
        turn: &mut Turn<'_>,
    ) -> Option<ChildAnswer> {
        let lifecycle = self.children.slot(key).lifecycle;
        match (request, state) {
            (ChildRequest::Start, State::Down(Down::New)) => {
                let waits = self.children.wait(key, ticket, Want::Started);
                self.children.launch(key, StartCause::Manual, turn);
                waits
            }
            (ChildRequest::Start, State::Down(Down::Dormant)) => Some(ChildAnswer::Dormant),
            (ChildRequest::Terminate, State::Activating | State::Active) => {
                self.children.begin_stop(key, Why::ByHand, turn);
                self.children.wait(key, ticket, Want::Down)
            }
            (ChildRequest::Terminate, State::Stopping { .. }) => {
                self.children.stop_for_good(key);
                self.children.wait(key, ticket, Want::Down)
            }
            (ChildRequest::Terminate, _)
            | (ChildRequest::Delete, State::Down(_) | State::Asking { .. }) => {
                self.forget(key, turn);
                Some(ChildAnswer::Done)
            }
            (ChildRequest::RestartRunning, State::Stopping { why, .. })
                if !self.children.returns(key, why) =>
            {
                Some(ChildAnswer::InvalidState(lifecycle))
            }
            (ChildRequest::RestartRunning, State::Activating | State::Active) => {
                self.children.begin_stop(key, Why::Renew, turn);
                self.children.wait(key, ticket, Want::Renewed)
            }
            (ChildRequest::Kill, State::Activating | State::Active | State::Stopping { .. }) => {
                self.children.kill(key, turn);
                Some(ChildAnswer::Done)
            }
            (ChildRequest::Retry, State::Down(Down::GivenUp | Down::Leaked)) => {
                self.children.pardon(key);
                let waits = self.children.wait(key, ticket, Want::Renewed);
                self.children.launch(key, StartCause::Manual, turn);
                waits
            }
            (ChildRequest::Retry, State::Down(Down::Left)) => {
                let waits = self.children.wait(key, ticket, Want::Renewed);
                self.children.launch(key, StartCause::Manual, turn);
                waits
            }
            (ChildRequest::Wake, State::Backoff) => {
                self.children.release_traffic(key);
                self.children.launch(key, StartCause::Restart, turn);
                Some(ChildAnswer::Done)
            }
            (
                ChildRequest::RestartStopped | ChildRequest::Delete,
                State::Activating | State::Active | State::Stopping { .. },
            ) => Some(ChildAnswer::Running),
            (
                ChildRequest::RestartStopped | ChildRequest::RestartRunning | ChildRequest::Delete,
                State::Backoff,
            )
            | (ChildRequest::RestartRunning, State::Stopping { .. }) => {
                Some(ChildAnswer::Restarting)
            }
            _ => Some(ChildAnswer::InvalidState(lifecycle)),
        }
    }
}

impl Dynamic {
    pub(super) fn is_finishing(&self) -> bool {
        self.finishing.is_some()
    }

    pub(super) fn admits(&self) -> Result<(), ChildAnswer> {
        match self.children.rules.max_children {
            Some(max) if self.count >= max => Err(ChildAnswer::MaxChildren(max)),
            _ => Ok(()),
        }
    }

    pub(super) fn add(&mut self, options: Arc<ChildOptions>, now: Instant) -> Key {
        self.count += 1;
        self.children.add(options, 0, now)
    }

    pub(super) fn next(&self, place: u64) -> Option<(Key, u64)> {
        let from = usize::try_from(place).ok()?;
        let mut places = from..self.children.slots.places();
        let key = places.find_map(|index| self.children.slots.at(index))?;
        Some((key, key.index() as u64 + 1))
    }

    pub(super) fn request(
        &mut self,
        ticket: Ticket,
        key: Key,
        request: ChildRequest,
        turn: &mut Turn<'_>,
    ) {
        let answer = match self.children.state(key) {
            None => Some(ChildAnswer::NotFound),
            Some(_) if self.finishing.is_some() => Some(ChildAnswer::ShuttingDown),
            Some(state) => self.serve(ticket, key, request, state, turn),
        };
        if let Some(answer) = answer {
            turn.push(Effect::Reply { ticket, answer });
        }
    }

    pub(super) fn ended(&mut self, key: Key, reason: ExitReason, turn: &mut Turn<'_>) {
        let (active, reason) = self.children.ended(key, reason, turn);
        let reason = &reason;
        if reason.exit_code().is_some() && self.finishing.is_none() {
            self.exit(key, reason, turn);
        } else {
            self.decide(key, active, reason, turn);
        }
    }

    pub(super) fn gone(&mut self, key: Key, why: Why, turn: &mut Turn<'_>) {
        if self.finishing.is_some() {
            return self.forget(key, turn);
        }
        match why {
            Why::Group | Why::ByHand | Why::Failing { by_hand: true, .. } => {
                self.forget(key, turn);
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
        self.forget(key, turn);
        if let Some(code) = reason.exit_code() {
            self.finish(Finish::Exit { key, reason: reason.clone(), code });
        }
    }

    pub(super) fn ignored(&mut self, key: Key, turn: &mut Turn<'_>) {
        self.children.answer(key, |_| true, &ChildAnswer::Ignored, turn);
        self.forget(key, turn);
    }

    pub(super) fn park_leaked(&mut self, key: Key, why: Why, turn: &mut Turn<'_>) {
        if matches!(why, Why::ByHand | Why::Failing { by_hand: true, .. }) {
            self.forget(key, turn);
        } else {
            self.lay_down(key, Down::Leaked, turn);
        }
    }

    /// The grace that some children share is over.
    pub(super) fn grace_is_over(&mut self, grace: Duration) {
        self.walk(Task::Expire(grace));
    }

    pub(super) fn finish(&mut self, finish: Finish) {
        if self.finishing.is_none() {
            self.finishing = Some(finish);
            self.walk(Task::Stop);
        }
    }

    pub(super) fn abort_all(&mut self) {
        self.walk(Task::Abort);
    }

    pub(super) fn settle(&mut self, turn: &mut Turn<'_>) {
        self.more = None;
        if !self.up {
            self.up = true;
            turn.push(Effect::Up);
        }
        for _ in 0..SLICE {
            let Some(walk) = self.walks.front_mut() else {
                return self.finish_if_empty(turn);
            };
            if walk.cursor == 0 {
                self.walks.pop_front();
                continue;
            }
            walk.cursor -= 1;
            let (cursor, task) = (walk.cursor, walk.task);
            if let Some(key) = self.children.slots.at(cursor) {
                self.visit(key, task, turn);
            }
        }
        self.more = Some(turn.now);
    }
}
