//! What a supervisor of either kind does with one child.
//!
//! A child is in one [`State`]; what the outside sees of it is its [`Lifecycle`]. This module moves
//! a child from one state to the next and knows no siblings: which child is next, and what becomes
//! of it when it has ended, is up to [`Ordered`](super::Ordered) and [`Dynamic`](super::Dynamic).
//!
//! # Invariants
//!
//! 1. `live` counts the children that have a task: `Activating`, `Active`, `Stopping`.
//! 2. `significant_left` counts the significant children that run or will run again.
//! 3. A requirement is met exactly while the child behind it is `Active`, or ended well.
//! 4. Only `Activating`, `Backoff` and `Stopping` have a timer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::arena::{Arena, Key};
use super::ledger::{Ledger, Want};
use super::requirements::Requirements;
use super::timers::Timers;
use super::{Answer, Census, Decision, Effect, Event, Incarnation, Report, Turn, View};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::policy::{ChildOptions, RestartType, RestartWindow, Rules, Shutdown, StartCause};

/// A child's place in the start order. Never used again.
pub(super) type Pos = u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// There is no task, and none will be started without a reason from outside.
    Down(Down),
    /// Its turn has come, but what it requires is not there.
    Gated(StartCause),
    /// The task runs and is not ready.
    Activating,
    Active,
    /// Waits by itself for its next start.
    Backoff,
    /// Waits for the end of the group restart that its failure began.
    Awaiting,
    /// The task was asked to end, or aborted.
    Stopping {
        why: Why,
        aborted: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Down {
    /// It was never started.
    New,
    /// It ended well and is not started again.
    Finished,
    ByHand,
    /// Stopped with its group, which will start it again.
    ByGroup,
    /// Stopped with its group, which stays down.
    Rested,
    /// It declined to start.
    Ignored,
    /// The supervisor gave up on it.
    GivenUp,
    /// It could not be stopped and is not to be started beside itself.
    Leaked,
}

/// Why a task was asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    Group,
    ByHand,
    /// To be started again at once.
    Renew,
    /// It asked for it.
    Itself,
    /// It has failed already, but its task is still there.
    Failing {
        active: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Timer {
    Child(Key),
    /// The end of a group's wait.
    Sweep,
    /// The end of one grace that many children share.
    Grace(Duration),
    /// The deadline of the stop as a whole.
    Total,
}

/// What a child's failure leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// One more attempt, at this instant.
    RestartAt(Instant),
    /// The supervisor's intensity is exceeded.
    Exhausted,
}

/// A child, as small as can be: there may be a million.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) options: Arc<ChildOptions>,
    pub(super) ledger: Option<Box<Ledger>>,
    pub(super) pos: Pos,
    /// When it came to its lifecycle: nanoseconds since the machine began, half of an `Instant`.
    since: u64,
    pub(super) incarnation: Incarnation,
    pub(super) state: State,
    pub(super) lifecycle: Lifecycle,
}

impl Slot {
    pub(super) fn ledger(&mut self) -> &mut Ledger {
        self.ledger.get_or_insert_default()
    }

    /// Whether somebody waits for it to be up.
    pub(super) fn is_wanted(&self) -> bool {
        let waiting = self.ledger.iter().flat_map(|ledger| &ledger.waiting);
        waiting.into_iter().any(|&(_, want)| want != Want::Down)
    }

    pub(super) fn awaited_start(&self) -> Option<Want> {
        self.ledger.as_ref().and_then(|ledger| ledger.awaited_start())
    }
}

/// The children of one supervisor and all that is counted over them.
#[derive(Debug)]
pub(super) struct Children {
    pub(super) rules: Rules,
    pub(super) began: Instant,
    pub(super) slots: Arena<Slot>,
    pub(super) timers: Timers<Timer>,
    pub(super) requirements: Requirements,
    pub(super) window: RestartWindow,
    pub(super) live: u32,
    pub(super) significant_left: u32,
    pub(super) census: Census,
    random: fastrand::Rng,
}

impl Children {
    pub(super) fn new(rules: Rules, now: Instant, seed: u64) -> Self {
        let window = RestartWindow::new(rules.max_restarts, rules.period);
        Self {
            rules,
            began: now,
            slots: Arena::default(),
            timers: Timers::default(),
            requirements: Requirements::default(),
            window,
            live: 0,
            significant_left: 0,
            census: Census::default(),
            random: fastrand::Rng::with_seed(seed),
        }
    }

    pub(super) fn add(&mut self, options: Arc<ChildOptions>, pos: Pos, now: Instant) -> Key {
        self.census.add(&options);
        self.significant_left += u32::from(options.significant);
        let since = self.age(now);
        self.slots.insert(Slot {
            options,
            ledger: None,
            pos,
            since,
            incarnation: 0,
            state: State::Down(Down::New),
            lifecycle: Lifecycle::Discovered,
        })
    }

    pub(super) fn slot(&mut self, key: Key) -> &mut Slot {
        self.slots.get_mut(key).expect("a key that was just looked up")
    }

    pub(super) fn state(&self, key: Key) -> Option<State> {
        self.slots.get(key).map(|slot| slot.state)
    }

    pub(super) fn restart_type(&self, key: Key) -> RestartType {
        self.slots.get(key).map_or(RestartType::Temporary, |slot| self.rules.restart(&slot.options))
    }

    /// Whether a child that is stopped for this reason is started again when it is down.
    pub(super) fn returns(&self, key: Key, why: Why) -> bool {
        match why {
            Why::Group | Why::Renew => true,
            Why::ByHand => false,
            Why::Itself => self.restart_type(key).restarts(true),
            Why::Failing { .. } => self.restart_type(key).restarts(false),
        }
    }

    /// The child an event speaks of, unless it is an incarnation that is over.
    pub(super) fn subject(&self, event: &Event) -> Option<Key> {
        let (&key, &incarnation) = match event {
            Event::Ready { key, incarnation }
            | Event::Ignored { key, incarnation }
            | Event::Exited { key, incarnation, .. }
            | Event::Healthy { key, incarnation }
            | Event::StopSelf { key, incarnation } => (key, incarnation),
            Event::Request { .. } | Event::Tick | Event::Stop { .. } | Event::AbortAll => {
                return None;
            }
        };
        let slot = self.slots.get(key)?;
        (slot.incarnation == incarnation && is_live(slot.state)).then_some(key)
    }

    /// Moves a child along one edge, and says so.
    pub(super) fn enter(
        &mut self,
        key: Key,
        to: Lifecycle,
        ending: Option<&'static str>,
        turn: &mut Turn<'_>,
    ) {
        let age = self.age(turn.now);
        let slot = self.slot(key);
        let from = slot.lifecycle;
        debug_assert!(from.can_become(to), "{from} became {to}");
        if from == Lifecycle::Active {
            self.forgive(key, turn.now);
        }
        let slot = self.slot(key);
        let after = Duration::from_nanos(age.saturating_sub(slot.since));
        slot.lifecycle = to;
        slot.since = age;
        let incarnation = slot.incarnation;
        self.census.moved(from, to);
        turn.push(Effect::Report(Report { key, incarnation, from, to, after, ending }));
    }

    /// Makes the child Stopped, unless it is.
    pub(super) fn enter_stopped(&mut self, key: Key, turn: &mut Turn<'_>) {
        if self.slot(key).lifecycle != Lifecycle::Stopped {
            self.enter(key, Lifecycle::Stopped, None, turn);
        }
    }

    /// The only place that changes a state, so that what is counted is right.
    pub(super) fn set(&mut self, key: Key, state: State) {
        let slot = self.slot(key);
        let old = std::mem::replace(&mut slot.state, state);
        let significant = slot.options.significant;
        self.live += u32::from(is_live(state));
        self.live -= u32::from(is_live(old));
        if significant {
            self.significant_left += u32::from(is_left(state));
            self.significant_left -= u32::from(is_left(old));
        }
        self.requirements.provide(key, is_met(state));
    }

    /// What others require when they require this child.
    pub(super) fn provided_by(&mut self, key: Key) -> super::RequirementId {
        let met = self.state(key).is_some_and(is_met);
        self.requirements.provided_by(key, met)
    }

    /// Starts a child that has no task, or gates it.
    pub(super) fn launch(&mut self, key: Key, cause: StartCause, turn: &mut Turn<'_>) {
        self.timers.disarm(Timer::Child(key));
        if let Some(ledger) = &mut self.slot(key).ledger {
            ledger.next = None;
        }
        if let Some((lacking, _)) = self.requirements.lacks(key) {
            self.requirements.wait(key, lacking);
            if self.slot(key).lifecycle != Lifecycle::Discovered {
                self.enter(key, Lifecycle::Resolved, None, turn);
                self.enter(key, Lifecycle::Discovered, None, turn);
            }
            return self.set(key, State::Gated(cause));
        }
        self.enter(key, Lifecycle::Resolved, None, turn);
        let slot = self.slot(key);
        slot.incarnation = slot.incarnation.saturating_add(1);
        let incarnation = slot.incarnation;
        let signals = slot.options.signals;
        self.set(key, State::Activating);
        self.enter(key, Lifecycle::Activating, None, turn);
        turn.push(Effect::Start { key, incarnation, cause });
        if !signals {
            return self.activated(key, turn);
        }
        let slot = self.slots.get(key).expect("the child that starts");
        if let Some(timeout) = self.rules.activation_timeout(&slot.options) {
            self.timers.arm(Timer::Child(key), later(turn.now, timeout));
        }
    }

    /// Whether what a gated child waits for will not come by itself.
    pub(super) fn waits_in_vain(&self, key: Key) -> bool {
        let mut key = key;
        while let Some((_, provider)) = self.requirements.lacks(key) {
            match provider.and_then(|provider| self.state(provider).map(|state| (provider, state)))
            {
                None => return true,
                // It may come later in the order, and has to wait for its turn.
                Some((_, State::Down(_) | State::Awaiting)) => return true,
                Some((provider, State::Gated(_))) => key = provider,
                Some(_) => return false,
            }
        }
        false
    }

    pub(super) fn activated(&mut self, key: Key, turn: &mut Turn<'_>) {
        self.timers.disarm(Timer::Child(key));
        self.set(key, State::Active);
        self.enter(key, Lifecycle::Active, None, turn);
        let incarnation = self.slot(key).incarnation;
        self.answer(key, |want| want != Want::Down, &Answer::Started(incarnation), turn);
    }

    /// Keeps a caller until the child has come to where he wants it.
    pub(super) fn wait(&mut self, key: Key, ticket: super::Ticket, want: Want) -> Option<Answer> {
        self.slot(key).ledger().waiting.push((ticket, want));
        None
    }

    /// Answers those who wait for the child and want what `wants` says.
    pub(super) fn answer(
        &mut self,
        key: Key,
        wants: impl Fn(Want) -> bool,
        answer: &Answer,
        turn: &mut Turn<'_>,
    ) {
        let Some(ledger) = &mut self.slot(key).ledger else { return };
        ledger.waiting.retain(|&(ticket, want)| {
            if wants(want) {
                turn.push(Effect::Reply { ticket, answer: answer.clone() });
            }
            !wants(want)
        });
    }

    /// Reports the end of an incarnation that nobody asked to end, and returns whether it was
    /// Active, and how it ended.
    pub(super) fn ended(
        &mut self,
        key: Key,
        reason: ExitReason,
        turn: &mut Turn<'_>,
    ) -> (bool, ExitReason) {
        let active = self.state(key) == Some(State::Active);
        let reason = match reason {
            ExitReason::Failed(error) if !active => ExitReason::ActivationFailed(error),
            reason => reason,
        };
        let ending = Some(reason.kind());
        self.tell_end(key, reason.clone(), turn);
        if reason.is_clean() {
            self.enter(key, Lifecycle::Deactivating, None, turn);
            self.enter(key, Lifecycle::Stopped, ending, turn);
        } else {
            self.enter(key, Lifecycle::Errored, ending, turn);
        }
        self.remember(key, reason.clone());
        (active, reason)
    }

    /// Reports the end of an incarnation that was asked to end.
    pub(super) fn ended_on_request(&mut self, key: Key, reason: ExitReason, turn: &mut Turn<'_>) {
        let State::Stopping { why, aborted } = self.slot(key).state else { return };
        if matches!(why, Why::Failing { .. }) {
            return;
        }
        let reason = match reason {
            ExitReason::Aborted if aborted => ExitReason::Killed,
            reason => reason,
        };
        self.tell_end(key, reason.clone(), turn);
        self.enter(key, Lifecycle::Stopped, Some(reason.kind()), turn);
        self.remember(key, reason);
    }

    /// Tells how an incarnation ended, before the edges that follow from it.
    fn tell_end(&mut self, key: Key, reason: ExitReason, turn: &mut Turn<'_>) {
        let age = self.age(turn.now);
        let slot = self.slot(key);
        let lived = Duration::from_nanos(age.saturating_sub(slot.since));
        let lived = (slot.state == State::Active).then_some(lived);
        let incarnation = slot.incarnation;
        turn.push(Effect::Ended { key, incarnation, reason, lived });
    }

    /// Tells what becomes of a child that has ended by itself.
    pub(super) fn tell_decision(
        &mut self,
        key: Key,
        reason: &ExitReason,
        decision: Decision,
        turn: &mut Turn<'_>,
    ) {
        let incarnation = self.slot(key).incarnation;
        turn.push(Effect::Decided { key, incarnation, reason: reason.clone(), decision });
    }

    /// Reports that a child declines to run, unless it was being stopped anyway.
    pub(super) fn declined(&mut self, key: Key, turn: &mut Turn<'_>) -> bool {
        match self.slot(key).state {
            State::Activating => {}
            State::Active => self.enter(key, Lifecycle::Deactivating, None, turn),
            _ => return false,
        }
        self.timers.disarm(Timer::Child(key));
        self.enter(key, Lifecycle::Stopped, Some("ignored"), turn);
        true
    }

    /// How a child failed whose task had to be ended afterwards.
    pub(super) fn failure(&mut self, key: Key) -> ExitReason {
        self.slot(key).ledger().last.clone().unwrap_or(ExitReason::Killed)
    }

    /// Charges a failure, and draws the wait before the next attempt.
    pub(super) fn charge(
        &mut self,
        key: Key,
        active: bool,
        reason: &ExitReason,
        turn: &mut Turn<'_>,
    ) -> Verdict {
        let slot = self.slots.get_mut(key).expect("the child that failed");
        let backoff = self.rules.backoff(&slot.options);
        let ledger = slot.ledger.get_or_insert_default();
        let delay = ledger.fail(backoff, &mut self.random);
        // An outage is not a bug: as long as the child is held back by a delay, a start that
        // fails is no sign of a tree that cannot work. Unless there are to be no restarts at all.
        let charged = active
            || self.window.max() == Some(0)
            || delay.is_zero()
            || self.rules.charge_everything
            || matches!(reason, ExitReason::Escalated { .. });
        if charged && !self.window.admit(turn.now) {
            ledger.next = None;
            self.tell_decision(key, reason, Decision::GiveUp, turn);
            return Verdict::Exhausted;
        }
        let (at, attempt) = (later(turn.now, delay), ledger.streak);
        ledger.next = Some((at, delay));
        self.tell_decision(key, reason, Decision::Restart { attempt, delay }, turn);
        Verdict::RestartAt(at)
    }

    /// Sets the deadline of the stop as a whole. An earlier one stays.
    pub(super) fn stop_within(&mut self, within: Option<Duration>, now: Instant) {
        let Some(within) = within.or(self.rules.stop_deadline) else { return };
        let at = later(now, within);
        let at = self.timers.at(Timer::Total).map_or(at, |earlier| earlier.min(at));
        self.timers.arm(Timer::Total, at);
    }

    /// Holds a child back until its deadline, or starts it if that has come.
    pub(super) fn back_off(&mut self, key: Key, until: Instant, turn: &mut Turn<'_>) {
        if until <= turn.now {
            return self.launch(key, StartCause::Restart, turn);
        }
        self.set(key, State::Backoff);
        self.enter(key, Lifecycle::Restarting, None, turn);
        self.timers.arm(Timer::Child(key), until);
    }

    /// Keeps how an incarnation ended. A clean end is kept only over a failure.
    fn remember(&mut self, key: Key, reason: ExitReason) {
        let slot = self.slot(key);
        if slot.ledger.is_some() || !reason.is_clean() {
            slot.ledger().last = Some(reason);
        }
    }

    /// Forgets earlier failures of a child that has been Active for long enough.
    fn forgive(&mut self, key: Key, now: Instant) {
        let age = self.age(now);
        let slot = self.slots.get_mut(key).expect("the child that ended");
        let lived = Duration::from_nanos(age.saturating_sub(slot.since));
        if let Some(ledger) = &mut slot.ledger
            && lived >= self.rules.backoff(&slot.options).resets_after()
        {
            ledger.streak = 0;
        }
    }

    /// The child says itself that it is well.
    pub(super) fn healthy(&mut self, key: Key) {
        if let Some(ledger) = &mut self.slot(key).ledger {
            ledger.streak = 0;
        }
    }

    /// Asks a child's task to end, or aborts it if that is its way. A caller that has no timer of
    /// its own for the grace wants one `timed`.
    pub(super) fn begin_stop(&mut self, key: Key, why: Why, turn: &mut Turn<'_>) {
        self.timers.disarm(Timer::Child(key));
        if !matches!(why, Why::Failing { .. }) {
            self.enter(key, Lifecycle::Deactivating, None, turn);
        }
        self.set(key, State::Stopping { why, aborted: false });
        match self.shutdown(key) {
            Shutdown::BrutalKill => self.abort(key, turn),
            Shutdown::Infinity => turn.push(Effect::Cancel { key }),
            Shutdown::Timeout(grace) => {
                turn.push(Effect::Cancel { key });
                self.timers.arm(Timer::Child(key), later(turn.now, grace));
            }
        }
    }

    pub(super) fn shutdown(&self, key: Key) -> Shutdown {
        let slot = self.slots.get(key);
        slot.map_or(Shutdown::BrutalKill, |slot| self.rules.shutdown(&slot.options))
    }

    /// Aborts a child's task. From now on it may only leak.
    pub(super) fn abort(&mut self, key: Key, turn: &mut Turn<'_>) {
        let why = match self.slot(key).state {
            State::Stopping { aborted: true, .. } => return,
            State::Stopping { why, .. } => why,
            _ => {
                self.enter(key, Lifecycle::Deactivating, None, turn);
                Why::Group
            }
        };
        self.set(key, State::Stopping { why, aborted: true });
        turn.push(Effect::Abort { key });
        let slot = self.slots.get(key).expect("the child that is aborted");
        let patience = self.rules.leak_timeout(&slot.options);
        self.timers.arm(Timer::Child(key), later(turn.now, patience));
    }

    /// Aborts a running child as an outsider would: for its supervisor it is a failure.
    pub(super) fn kill(&mut self, key: Key, turn: &mut Turn<'_>) {
        let State::Stopping { .. } = self.slot(key).state else {
            return self.fail_running(key, ExitReason::Aborted, true, turn);
        };
        self.abort(key, turn);
    }

    /// A child fails while its task runs on. The task is ended; then comes the decision.
    pub(super) fn fail_running(
        &mut self,
        key: Key,
        reason: ExitReason,
        at_once: bool,
        turn: &mut Turn<'_>,
    ) {
        let active = self.state(key) == Some(State::Active);
        self.tell_end(key, reason.clone(), turn);
        self.enter(key, Lifecycle::Errored, Some(reason.kind()), turn);
        self.remember(key, reason);
        let why = Why::Failing { active };
        if at_once {
            self.set(key, State::Stopping { why, aborted: false });
            self.abort(key, turn);
        } else {
            self.begin_stop(key, why, turn);
        }
    }

    /// Removes a child that is Stopped.
    pub(super) fn remove(&mut self, key: Key, turn: &mut Turn<'_>) -> Option<Slot> {
        self.timers.disarm(Timer::Child(key));
        let slot = self.slots.remove(key)?;
        self.census.remove(&slot.options, slot.lifecycle);
        self.requirements.unlink(key);
        turn.push(Effect::Removed { key });
        Some(slot)
    }

    pub(super) fn view(&self, key: Key) -> Option<View> {
        let slot = self.slots.get(key)?;
        let why = match slot.state {
            State::Down(Down::Finished) => Some("finished"),
            State::Down(Down::ByHand) => Some("stopped by hand"),
            State::Down(Down::ByGroup | Down::Rested) => Some("stopped with its group"),
            State::Down(Down::Ignored) => Some("declined to start"),
            State::Down(Down::GivenUp) => Some("given up"),
            State::Down(Down::Leaked) => Some("leaked"),
            State::Gated(_) => Some("waits for a requirement"),
            _ => None,
        };
        Some(View {
            options: Arc::clone(&slot.options),
            lifecycle: slot.lifecycle,
            incarnation: slot.incarnation,
            since: self.began + Duration::from_nanos(slot.since),
            why,
            history: slot.ledger.as_ref().map(|ledger| ledger.history()),
        })
    }

    pub(super) fn intensity(&self, now: Instant) -> (usize, Option<u32>, Duration) {
        (self.window.count(now), self.window.max(), self.window.period())
    }

    fn age(&self, now: Instant) -> u64 {
        let age = now.saturating_duration_since(self.began);
        u64::try_from(age.as_nanos()).unwrap_or(u64::MAX)
    }
}

fn is_live(state: State) -> bool {
    matches!(state, State::Activating | State::Active | State::Stopping { .. })
}

fn is_met(state: State) -> bool {
    matches!(state, State::Active | State::Down(Down::Finished))
}

/// Whether a significant child in this state runs or will run again.
fn is_left(state: State) -> bool {
    !matches!(state, State::Down(down) if down != Down::New && down != Down::ByGroup)
}

/// `now + wait`, where a wait too long for the clock is one of a century.
pub(super) fn later(now: Instant, wait: Duration) -> Instant {
    const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    now.checked_add(wait.min(CENTURY)).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_costs_the_machine_at_most_48_bytes_until_it_fails() {
        assert_eq!(Arena::<Slot>::PLACE, 48);
    }
}
