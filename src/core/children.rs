//! What a supervisor of either kind does with one child.
//!
//! A child is in one [`State`]; what the outside sees of it is its [`Lifecycle`]. This module moves
//! a child from one state to the next and knows no siblings: which child is next, and what becomes
//! of it when it has ended, is up to [`Ordered`](super::Ordered) and [`Dynamic`](super::Dynamic).
//!
//! # Invariants
//!
//! 1. `live` counts the children that have a task: `Activating`, `Active`, `Stopping`.
//! 2. `significant_left` counts the significant children that run or will run again,
//!    `significant_leaving` those among them that are being stopped by hand.
//! 3. A requirement is met exactly while the child behind it is `Active`, or ended well.
//! 4. Only `Activating`, `Backoff`, `Asking` and `Stopping` have a timer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::arena::{Arena, Key};
use super::callers::{Callers, Want};
use super::requirements::Requirements;
use super::state::{Down, Pos, Slot, State, Timer, Why, is_leaving, is_left, is_live, is_met};
use super::timers::Timers;
use super::{ChildAnswer, ChildCounts, Effect, MachineEvent, Report, Turn, View};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
pub(super) use crate::policy::later;
use crate::policy::{ChildOptions, Dice, Intensity, RestartType, RestartWindow, Rules, Shutdown};

/// The children of one supervisor and all that is counted over them.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Children {
    pub(super) rules: Arc<Rules>,
    pub(super) began: Instant,
    pub(super) slots: Arena<Slot>,
    pub(super) timers: Timers<Timer>,
    pub(super) requirements: Requirements,
    pub(super) callers: Callers,
    /// The granted restarts of all children, if there is a limit.
    pub(super) window: Option<RestartWindow>,
    /// Until then nobody who fails is charged, nor restarted.
    pub(super) paused: Option<Instant>,
    pub(super) live: u32,
    pub(super) significant_left: u32,
    pub(super) significant_leaving: u32,
    pub(super) counts: ChildCounts,
    pub(super) random: Dice,
}

impl Children {
    pub(super) fn new(rules: Arc<Rules>, now: Instant, seed: u64) -> Self {
        let random = Dice::new(rules.random.as_ref(), seed);
        let window = rules.intensity.map(RestartWindow::new);
        Self {
            rules,
            began: now,
            slots: Arena::default(),
            timers: Timers::default(),
            requirements: Requirements::default(),
            callers: Callers::default(),
            window,
            paused: None,
            live: 0,
            significant_left: 0,
            significant_leaving: 0,
            counts: ChildCounts::default(),
            random,
        }
    }

    pub(super) fn add(&mut self, options: Arc<ChildOptions>, pos: Pos, now: Instant) -> Key {
        self.counts.add(&options);
        self.significant_left += u32::from(options.significant);
        let down = if options.on_message { Down::Dormant } else { Down::New };
        self.slots.insert(Slot {
            options,
            ledger: None,
            pos,
            since: now,
            incarnation: 0,
            state: State::Down(down),
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
            Why::Renew => true,
            Why::Group => self.restart_type(key) != RestartType::Temporary,
            Why::ByHand | Why::Failing { by_hand: true, .. } => false,
            Why::Itself => self.on_exit(key, true, &ExitReason::Normal).restarts(),
            Why::Failing { active, .. } => {
                let ledger = self.slots.get(key).and_then(|slot| slot.ledger.as_ref());
                let last = ledger.and_then(|ledger| ledger.last.as_ref());
                self.on_exit(key, active, last.unwrap_or(&ExitReason::Killed)).restarts()
            }
        }
    }

    /// Leaves a child that is being stopped down when it is gone, whatever it was stopped for.
    pub(super) fn stop_for_good(&mut self, key: Key) {
        let State::Stopping { why, aborted } = self.slot(key).state else { return };
        let why = match why {
            Why::Failing { active, .. } => Why::Failing { active, by_hand: true },
            _ => Why::ByHand,
        };
        self.set(key, State::Stopping { why, aborted });
    }

    /// The child an event speaks of, unless it is an incarnation that is over.
    pub(super) fn subject(&self, event: &MachineEvent) -> Option<Key> {
        let (&key, &incarnation) = match event {
            MachineEvent::Ready { key, incarnation }
            | MachineEvent::Ignored { key, incarnation }
            | MachineEvent::Exited { key, incarnation, .. }
            | MachineEvent::Healthy { key, incarnation }
            | MachineEvent::Health { key, incarnation, .. }
            | MachineEvent::StopSelf { key, incarnation }
            | MachineEvent::Acked { key, incarnation }
            | MachineEvent::Policy { key, incarnation, .. } => (key, incarnation),
            MachineEvent::Answered { key, incarnation, .. } => {
                let slot = self.slots.get(*key)?;
                let asked = matches!(slot.state, State::Asking { .. });
                return (asked && slot.incarnation == *incarnation).then_some(*key);
            }
            MachineEvent::MessagePending { key } => return self.slots.get(*key).map(|_| *key),
            MachineEvent::Request { .. }
            | MachineEvent::Tick
            | MachineEvent::Stop { .. }
            | MachineEvent::AbortAll => {
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
        let slot = self.slots.get_mut(key).expect("a key that was just looked up");
        let from = slot.lifecycle;
        debug_assert!(from.can_become(to), "{from} became {to}");
        if from == Lifecycle::Active {
            slot.forgive(&self.rules, turn.now);
        }
        let after = turn.now.saturating_duration_since(slot.since);
        slot.lifecycle = to;
        slot.since = turn.now;
        let incarnation = slot.incarnation;
        self.counts.moved(from, to);
        turn.push(Effect::Report(Report { key, incarnation, from, to, after, ending }));
    }

    /// Makes the child Stopped, unless it is.
    pub(super) fn enter_stopped(&mut self, key: Key, turn: &mut Turn<'_>) {
        if self.slot(key).lifecycle != Lifecycle::Stopped {
            self.enter(key, Lifecycle::Stopped, None, turn);
        }
    }

    /// Changes a child's state, and counts.
    pub(super) fn set(&mut self, key: Key, state: State) {
        let slot = self.slot(key);
        let old = std::mem::replace(&mut slot.state, state);
        let significant = slot.options.significant;
        self.live += u32::from(is_live(state));
        self.live -= u32::from(is_live(old));
        if significant {
            self.count_significant(old, state);
        }
        self.requirements.provide(key, is_met(state));
    }

    fn count_significant(&mut self, old: State, state: State) {
        self.significant_left += u32::from(is_left(state));
        self.significant_left -= u32::from(is_left(old));
        self.significant_leaving += u32::from(is_leaving(state));
        self.significant_leaving -= u32::from(is_leaving(old));
    }

    /// What others require when they require this child.
    pub(super) fn provided_by(&mut self, key: Key) -> super::RequirementId {
        let met = self.state(key).is_some_and(is_met);
        self.requirements.provided_by(key, met)
    }

    /// Keeps a caller until the child has come to where he wants it.
    pub(super) fn wait(
        &mut self,
        key: Key,
        ticket: super::Ticket,
        want: Want,
    ) -> Option<ChildAnswer> {
        self.callers.wait(key, ticket, want);
        None
    }

    /// Answers those who wait for the child and want what `wants` says.
    pub(super) fn answer(
        &mut self,
        key: Key,
        wants: fn(Want) -> bool,
        answer: &ChildAnswer,
        turn: &mut Turn<'_>,
    ) {
        while let Some(ticket) = self.callers.take(key, wants) {
            turn.push(Effect::Reply { ticket, answer: answer.clone() });
        }
    }

    /// Sets the deadline of the stop as a whole. An earlier one stays.
    pub(super) fn stop_within(&mut self, within: Option<Duration>, now: Instant) {
        let Some(within) = within.or(self.rules.stop_deadline) else { return };
        let at = later(now, within);
        let at = self.timers.at(Timer::Total).map_or(at, |earlier| earlier.min(at));
        self.timers.arm(Timer::Total, at);
    }

    /// Asks a child's task to end, or aborts it if that is its way.
    pub(super) fn begin_stop(&mut self, key: Key, why: Why, turn: &mut Turn<'_>) {
        if let Some(grace) = self.begin_stop_untimed(key, why, turn) {
            self.timers.arm(Timer::Child(key), later(turn.now, grace));
        }
    }

    /// The same for a caller that sees to the end of the grace himself. Returns how long that is.
    pub(super) fn begin_stop_untimed(
        &mut self,
        key: Key,
        why: Why,
        turn: &mut Turn<'_>,
    ) -> Option<Duration> {
        self.timers.disarm(Timer::Child(key));
        if !matches!(why, Why::Failing { .. }) {
            self.enter(key, Lifecycle::Deactivating, None, turn);
        }
        self.set(key, State::Stopping { why, aborted: false });
        match self.shutdown(key) {
            Shutdown::BrutalKill => {
                self.abort(key, turn);
                None
            }
            Shutdown::Infinity => {
                turn.push(Effect::Cancel { key });
                None
            }
            Shutdown::Timeout(grace) => {
                turn.push(Effect::Cancel { key });
                Some(grace)
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

    /// Removes a child that is Stopped.
    pub(super) fn remove(&mut self, key: Key, turn: &mut Turn<'_>) -> Option<Slot> {
        self.timers.disarm(Timer::Child(key));
        let slot = self.slots.remove(key)?;
        self.counts.remove(&slot.options, slot.lifecycle);
        self.requirements.unlink(key);
        turn.push(Effect::Removed { key, incarnation: slot.incarnation });
        Some(slot)
    }

    pub(super) fn view(&self, key: Key, now: Instant) -> Option<View> {
        let slot = self.slots.get(key)?;
        let why = match slot.state {
            State::Down(Down::Dormant) => Some("waits for a message"),
            State::Down(Down::Finished) => Some("finished"),
            State::Down(Down::ByHand) => Some("stopped by hand"),
            State::Down(Down::ByGroup | Down::Rested) => Some("stopped with its group"),
            State::Down(Down::Ignored) => Some("declined to start"),
            State::Down(Down::GivenUp) => Some("given up"),
            State::Down(Down::Left) => Some("not restarted"),
            State::Down(Down::Leaked) => Some("leaked"),
            State::Asking { .. } => Some("being decided on"),
            State::Gated(_) => Some("waits for a requirement"),
            _ if slot.options.is_fallback => Some("fallback"),
            _ => None,
        };
        Some(View {
            options: Arc::clone(&slot.options),
            lifecycle: slot.lifecycle,
            incarnation: slot.incarnation,
            since: slot.since,
            why,
            policy: slot.own_policy().map(Arc::clone),
            history: slot.ledger.as_ref().map(|ledger| {
                let life = now.saturating_duration_since(slot.since);
                let life = (slot.state == State::Active).then_some(life);
                ledger.history(slot.backoff(&self.rules), life)
            }),
        })
    }

    pub(super) fn intensity(&self, now: Instant) -> (usize, Option<u32>, Duration) {
        let intensity = self.rules.intensity;
        let period = intensity.map_or(Duration::ZERO, Intensity::period);
        (
            self.window.as_ref().map_or(0, |window| window.count(now)),
            intensity.map(Intensity::max),
            period,
        )
    }
}
