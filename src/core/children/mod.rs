//! The children of one supervisor of either kind.
//!
//! [`Children`] moves one child from one [`ChildState`] to the next and keeps what is counted over
//! all children. It knows no siblings: which child comes next, and what becomes of a child that has
//! ended, is up to [`Ordered`](super::ordered::Ordered) and [`Dynamic`](super::dynamic::Dynamic).
//!
//! | file | what |
//! | --- | --- |
//! | `start` | starting an incarnation, or waiting for its requirements or a caller that holds it |
//! | `stop` | cancelling and aborting |
//! | `exits` | reporting how an incarnation ended, or that a running child has failed |
//! | `restart` | what a failure costs, the delay before the next attempt, and what follows when a limit is exceeded |
//! | `configure` | options and rules that change while children run |
//!
//! # Invariants
//!
//! 1. `live` is the number of children with a task: `Activating`, `Active` or `Stopping`.
//! 2. `significant_remaining` is the number of significant children that run or will run again,
//!    `significant_stopping` the number of those that callers stop.
//! 3. A requirement is met exactly while the child behind it is `Active`, or has ended cleanly.
//! 4. The failures of a child are forgotten for the time that it was healthy: while it was Active, and,
//!    if a failed health check is its failure, since the first of its latest checks that all passed.
//! 5. Only children that are `Activating`, `Backoff`, `AwaitingDecision` or `Stopping` have a timer, and
//!    those that are `Active` and have a watchdog. Only `Active` children have a timer for their run time.

mod configure;
mod exits;
mod restart;
mod start;
mod stop;

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{
    Arena, Callers, ChildAnswer, ChildCounts, ChildEntry, ChildState, DownState, Effect, Ending,
    IncarnationNumber, Key, MachineEvent, Position, Report, Requirements, Stall, StepCx, Ticket,
    Timer, Timers, View, WaitFor,
};
use crate::clock::later;
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::policy::{
    ChildRules, Intensity, OnExit, RestartPolicy, RestartType, RestartWindow, Rules, Shutdown,
};

/// See the [module](self).
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Children {
    pub(super) rules: Arc<Rules>,
    pub(super) began: Instant,
    pub(super) entries: Arena<ChildEntry>,
    pub(super) timers: Timers<Timer>,
    pub(super) requirements: Requirements,
    pub(super) callers: Callers,
    /// The granted restarts of all children, if the supervisor limits them.
    pub(super) window: Option<RestartWindow>,
    /// Until then no failure is charged, and no child that fails is restarted.
    pub(super) paused: Option<Instant>,
    /// Children that may have no use for their lease since the last event.
    pub(super) unchecked_leases: Vec<Key>,
    /// The last time that the runtime was late.
    pub(super) stall: Option<Stall>,
    pub(super) live: u32,
    pub(super) significant_remaining: u32,
    pub(super) significant_stopping: u32,
    pub(super) counts: ChildCounts,
}

impl Children {
    pub(super) fn new(rules: Arc<Rules>, now: Instant) -> Self {
        let window = rules.intensity.map(RestartWindow::new);
        Self {
            rules,
            began: now,
            entries: Arena::default(),
            timers: Timers::default(),
            requirements: Requirements::default(),
            callers: Callers::default(),
            window,
            paused: None,
            unchecked_leases: Vec::new(),
            stall: None,
            live: 0,
            significant_remaining: 0,
            significant_stopping: 0,
            counts: ChildCounts::default(),
        }
    }

    pub(super) fn add(
        &mut self,
        rules: Arc<ChildRules>,
        pos: Position,
        cx: &mut StepCx<'_>,
    ) -> Key {
        self.counts.add(&rules);
        let created = cx.now.saturating_duration_since(self.began).as_nanos();
        let stop_order = rules.spec.stop_order;
        self.significant_remaining += u32::from(rules.spec.significant);
        let down = if rules.spec.on_message { DownState::Dormant } else { DownState::New };
        let key = self.entries.insert(ChildEntry {
            rules,
            history: None,
            conditions: None,
            pos,
            created: u64::try_from(created).unwrap_or(u64::MAX),
            started: None,
            since: cx.now,
            incarnation: 0,
            state: ChildState::Down(down),
            lifecycle: Lifecycle::Discovered,
            has_passed: false,
            held: false,
            stop_order,
        });
        self.on_rules(key, None, cx);
        key
    }

    /// Removes a child that is Stopped, and gives the callers that seek it this answer.
    pub(super) fn remove(
        &mut self,
        key: Key,
        answer: &ChildAnswer,
        cx: &mut StepCx<'_>,
    ) -> Option<ChildEntry> {
        self.answer_seekers(key, answer, cx);
        self.timers.disarm(Timer::Child(key));
        self.end_lease(key, true, cx);
        let entry = self.entries.remove(key)?;
        self.counts.remove(&entry.rules, entry.lifecycle);
        self.requirements.unlink(key);
        cx.push(Effect::Removed { key, incarnation: entry.incarnation });
        Some(entry)
    }

    pub(super) fn entry(&mut self, key: Key) -> &mut ChildEntry {
        self.entries.get_mut(key).expect("a key that was just looked up")
    }

    pub(super) fn state(&self, key: Key) -> Option<ChildState> {
        self.entries.get(key).map(|entry| entry.state)
    }

    pub(super) fn restart_type(&self, key: Key) -> RestartType {
        let entry = self.entries.get(key);
        entry.map_or(RestartType::Temporary, |entry| entry.rules.restart_type())
    }

    /// Whether the child is removed when it has exited, or is stopped for good.
    pub(super) fn is_forgotten(&self, key: Key) -> bool {
        self.restart_type(key) == RestartType::Temporary && !self.is_dormant_temporary(key)
    }

    pub(super) fn shutdown(&self, key: Key) -> Shutdown {
        let entry = self.entries.get(key);
        entry.map_or(Shutdown::BrutalKill, |entry| entry.rules.shutdown)
    }

    /// What this end of the current or last incarnation leads to. A fatal error fails the supervisor where
    /// another would be followed by a restart.
    pub(super) fn on_exit(
        &self,
        key: Key,
        active: bool,
        reason: &ExitReason,
        cx: &mut StepCx<'_>,
    ) -> OnExit {
        let Some(entry) = self.entries.get(key) else { return OnExit::Leave };
        let own = entry.own_policy().and_then(|policy| policy.restart.as_ref());
        let trigger = own.unwrap_or(&entry.rules.trigger);
        let by_error = match trigger.asks_about(reason) {
            true => cx.user_code.on_error(key, trigger, reason),
            false => None,
        };
        let on_exit = trigger.after(reason.exit_kind(), active, by_error);
        if on_exit.restarts() && reason.is_fatal() { OnExit::FailSupervisor } else { on_exit }
    }

    /// Sets or resets the restart policy that the current incarnation has for itself.
    pub(super) fn set_policy(&mut self, key: Key, policy: Option<Arc<RestartPolicy>>) {
        let entry = self.entry(key);
        // A child that has one incarnation has nothing to restart.
        if !entry.rules.spec.facts.once && (policy.is_some() || entry.history.is_some()) {
            entry.history_mut().policy = policy;
        }
    }

    /// The child that an event names, unless its incarnation is over.
    pub(super) fn subject(&self, event: &MachineEvent) -> Option<Key> {
        let (&key, &incarnation) = match event {
            MachineEvent::Ready { key, incarnation }
            | MachineEvent::Ignored { key, incarnation }
            | MachineEvent::Exited { key, incarnation, .. }
            | MachineEvent::Remaining { key, incarnation, .. }
            | MachineEvent::Healthy { key, incarnation }
            | MachineEvent::StopSelf { key, incarnation }
            | MachineEvent::Acked { key, incarnation }
            | MachineEvent::Policy { key, incarnation, .. } => (key, incarnation),
            MachineEvent::Condition(_)
            | MachineEvent::Request { .. }
            | MachineEvent::CallerGone { .. }
            | MachineEvent::Declared(_)
            | MachineEvent::Tick
            | MachineEvent::Stop { .. }
            | MachineEvent::Close { .. }
            | MachineEvent::AbortAll => return None,
        };
        self.runs(key, incarnation).then_some(key)
    }

    /// Whether this incarnation of the child isn't over.
    pub(super) fn runs(&self, key: Key, incarnation: IncarnationNumber) -> bool {
        let entry = self.entries.get(key);
        entry.is_some_and(|entry| entry.incarnation == incarnation && entry.state.is_live())
    }

    /// Moves a child along one edge of its lifecycle, and reports it.
    pub(super) fn enter(
        &mut self,
        key: Key,
        to: Lifecycle,
        ending: Option<Ending>,
        cx: &mut StepCx<'_>,
    ) {
        let entry = self.entries.get_mut(key).expect("a key that was just looked up");
        let from = entry.lifecycle;
        debug_assert!(from.can_become(to), "{from} became {to}");
        if from == Lifecycle::Active {
            entry.decay_failures(cx.now);
        }
        entry.lifecycle = to;
        let since = std::mem::replace(&mut entry.since, cx.now);
        let incarnation = entry.incarnation;
        self.counts.moved(from, to);
        cx.push(Effect::Report(Report { key, incarnation, from, to, since, ending }));
    }

    /// Makes the child Stopped, unless it is already.
    pub(super) fn enter_stopped(&mut self, key: Key, cx: &mut StepCx<'_>) {
        if self.entry(key).lifecycle != Lifecycle::Stopped {
            self.enter(key, Lifecycle::Stopped, None, cx);
        }
    }

    /// Changes a child's state, and what is counted by state.
    pub(super) fn set(&mut self, key: Key, state: ChildState) {
        let entry = self.entry(key);
        let old = std::mem::replace(&mut entry.state, state);
        entry.has_passed |= state.is_passed();
        let significant = entry.rules.spec.significant;
        self.live += u32::from(state.is_live());
        self.live -= u32::from(old.is_live());
        if significant {
            self.significant_remaining += u32::from(state.is_remaining());
            self.significant_remaining -= u32::from(old.is_remaining());
            self.significant_stopping += u32::from(state.is_stopping_manually());
            self.significant_stopping -= u32::from(old.is_stopping_manually());
        }
        self.requirements.provide(key, state.is_met());
        if let ChildState::Down(_) | ChildState::Gated(_) | ChildState::Stopping { .. } = state {
            self.note_down(key);
        }
        self.on_state(key, old, state);
    }

    /// Notes that the child may not come up any more, for the callers that seek it.
    pub(super) fn note_down(&mut self, key: Key) {
        if !self.callers.has_none() {
            let is_required = self.requirements.is_required(key);
            self.callers.note_down(key, is_required);
        }
    }

    /// Keeps a caller until the child has reached its goal. Returns that no answer exists yet.
    pub(super) fn wait(&mut self, key: Key, ticket: Ticket, goal: WaitFor) -> Option<ChildAnswer> {
        self.callers.wait(key, ticket, goal);
        None
    }

    /// Answers the callers that wait for the child to be down.
    pub(super) fn answer_down(&mut self, key: Key, cx: &mut StepCx<'_>) {
        self.answer(key, WaitFor::is_down, &ChildAnswer::Done, cx);
    }

    /// Answers the callers that wait for the child to be up.
    pub(super) fn answer_up(&mut self, key: Key, answer: &ChildAnswer, cx: &mut StepCx<'_>) {
        self.answer(key, WaitFor::is_up, answer, cx);
    }

    /// Answers all callers that wait for the child.
    pub(super) fn answer_all(&mut self, key: Key, answer: &ChildAnswer, cx: &mut StepCx<'_>) {
        self.answer(key, |_| true, answer, cx);
    }

    /// Answers the callers that seek the child.
    pub(super) fn answer_seekers(&mut self, key: Key, answer: &ChildAnswer, cx: &mut StepCx<'_>) {
        if self.callers.has_none() {
            return;
        }
        while let Some(ticket) = self.callers.take_seeker(key) {
            cx.push(Effect::Reply { ticket, answer: answer.clone() });
        }
    }

    /// Answers all callers that seek a child: the supervisor ends.
    pub(super) fn refuse_seekers(&mut self, cx: &mut StepCx<'_>) {
        while let Some(ticket) = self.callers.take_any_seeker() {
            cx.push(Effect::Reply { ticket, answer: ChildAnswer::ShuttingDown });
        }
    }

    fn answer(
        &mut self,
        key: Key,
        matches: fn(WaitFor) -> bool,
        answer: &ChildAnswer,
        cx: &mut StepCx<'_>,
    ) {
        if self.callers.has_none() {
            return;
        }
        while let Some(ticket) = self.callers.take(key, matches) {
            cx.push(Effect::Reply { ticket, answer: answer.clone() });
        }
    }

    pub(super) fn view(&self, key: Key, now: Instant) -> Option<View> {
        let entry = self.entries.get(key)?;
        Some(View {
            rules: Arc::clone(&entry.rules),
            lifecycle: entry.lifecycle,
            incarnation: entry.incarnation,
            created: later(self.began, Duration::from_nanos(entry.created)),
            started: entry.started,
            since: entry.since,
            settled: entry.state.is_passed()
                || entry.state == ChildState::Down(DownState::Dormant)
                || (entry.is_withheld() && entry.rules.withheld().is_some())
                || self.awaits_lease(key),
            why: if self.is_on_standby(key) { Some("standby") } else { entry.why() },
            held: entry.held,
            undecided: matches!(entry.state, ChildState::AwaitingDecision { .. }),
            policy: entry.own_policy().map(Arc::clone),
            history: entry.history.as_ref().map(|history| {
                let life = (entry.state == ChildState::Active).then(|| entry.healthy_for(now));
                history.summary(entry.backoff(), life)
            }),
            limit: self.own_intensity(key, now),
        })
    }

    /// Returns the child's own intensity, if it has one, and the restarts that it counts at `now`.
    pub(super) fn own_intensity(&self, key: Key, now: Instant) -> Option<(Intensity, usize)> {
        let entry = self.entries.get(key)?;
        let limit = entry.limits()?.intensity?;
        let tracker = entry.history.as_ref().map(|history| &history.tracker);
        Some((limit, tracker.map_or(0, |tracker| tracker.restarts(now))))
    }

    /// Restarts that count at `now`, how many may, and within which period.
    pub(super) fn intensity(&self, now: Instant) -> (usize, Option<u32>, Duration) {
        let intensity = self.rules.intensity;
        let period = intensity.map_or(Duration::ZERO, Intensity::period);
        let used = self.window.as_ref().map_or(0, |window| window.count(now));
        (used, intensity.map(Intensity::max), period)
    }
}
