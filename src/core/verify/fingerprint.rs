//! The state of a machine as 128 bits, so that two states with the same future can be merged.
//!
//! A [`Fingerprint`] takes in all that a machine keeps, except what no rule looks at.
//!
//! # What is left out, and why this is right
//!
//! 1. *The time of day.* Instants are compared with now and with each other, so they are taken
//!    relative to now. Past instants only count as past. How long a child
//!    has been active is taken while its backoff may yet reset or its first heartbeat is due, and how long
//!    ago it failed while its task still runs or a message may start it again; no rule looks further back
//!    than the backoff and the watchdog do. Restarts that no longer
//!    count are left out; the window drops them when it is used next.
//! 2. *Incarnation numbers.* They are only compared with the current one, and events of other
//!    incarnations are tried in each state. Whether there was an incarnation at all is taken.
//! 3. *The numbers of children.* Positions are taken as ranks, which keep their order, and keys as
//!    the places they point to. A key of a removed child finds nothing, as the arena's tests check.
//! 4. *Which caller waits.* Callers that wait for the same outcome are answered together.
//! 5. *How a child ended.* This matters only where it failed and its task still runs, or the failure
//!    callback decides, and then only its kind and the delay that its error sets: the triggers
//!    of explored children do not look at errors.
//! 6. *Randomness.* Explored backoffs have no jitter, so nothing is drawn.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::time::{Duration, Instant};

use crate::core::arena::Key;
use crate::core::child::{ChildEntry, ChildState, DownState, Position, StopReason, Timer};
use crate::core::children::Children;
use crate::core::dynamic::Dynamic;
use crate::core::group::{GroupOp, GroupPhase};
use crate::core::machine::Machine;
use crate::core::ordered::Ordered;
use crate::core::requirements::Requirements;
use crate::policy::{RestartPolicy, RestartWindow};

/// See the [module](self).
pub(super) struct Fingerprint {
    now: Instant,
    /// The positions that are taken, in order.
    order: Vec<Position>,
    kept: Vec<u8>,
}

impl Hasher for Fingerprint {
    fn write(&mut self, bytes: &[u8]) {
        self.kept.extend_from_slice(bytes);
    }

    fn finish(&self) -> u64 {
        self.half(0)
    }
}

impl Fingerprint {
    pub(super) fn new(now: Instant) -> Self {
        Self { now, order: Vec::new(), kept: Vec::with_capacity(512) }
    }

    fn half(&self, which: u8) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write_u8(which);
        hasher.write(&self.kept);
        hasher.finish()
    }

    pub(super) fn read(&self) -> u128 {
        (u128::from(self.half(0)) << 64) | u128::from(self.half(1))
    }

    /// Takes an instant that no rule compares once it is past.
    pub(super) fn at(&mut self, at: Instant) {
        at.saturating_duration_since(self.now).hash(self);
    }

    /// Takes an instant that has no meaning once it is past.
    pub(super) fn until(&mut self, at: Option<Instant>) {
        at.filter(|&at| at > self.now).map(|at| at - self.now).hash(self);
    }

    /// Takes an instant that a rule compares for a while after it is past.
    pub(super) fn since(&mut self, at: Instant, limit: Duration) {
        self.now.saturating_duration_since(at).min(limit).hash(self);
    }

    /// Takes the restarts that count.
    fn window(&mut self, window: Option<&RestartWindow>) {
        let Some(window) = window else { return };
        for at in window.granted(self.now) {
            self.since(at, window.period());
        }
        if let Some((age, score)) = window.counted(self.now) {
            (age, score.to_bits()).hash(self);
        }
    }

    pub(super) fn pos(&mut self, pos: Position) {
        let rank = self.order.partition_point(|&taken| taken < pos);
        // A child that is added gets a position behind all existing ones.
        (pos == Position::MAX, rank).hash(self);
    }

    pub(super) fn key(&mut self, key: Option<Key>, children: &Children) {
        let present = key.filter(|&key| children.state(key).is_some());
        present.map(Key::index).hash(self);
    }

    pub(super) fn machine(&mut self, machine: &Machine) {
        match machine {
            Machine::Ordered(ordered) => self.ordered(ordered),
            Machine::Dynamic(dynamic) => self.dynamic(dynamic),
        }
    }

    fn ordered(&mut self, ordered: &Ordered) {
        self.order = ordered.order.positions().collect();
        (ordered.up, ordered.finished).hash(self);
        (ordered.more.is_some(), ordered.recheck_auto_shutdown).hash(self);
        self.children(&ordered.children);
        ordered.group.is_some().hash(self);
        if let Some(op) = &ordered.group {
            self.group(op, &ordered.children);
        }
        for &key in &ordered.excluded {
            self.key(Some(key), &ordered.children);
        }
    }

    fn dynamic(&mut self, dynamic: &Dynamic) {
        (dynamic.up, dynamic.finished).hash(self);
        (dynamic.finishing.is_some(), dynamic.more.is_some()).hash(self);
        dynamic.passes.len().hash(self);
        for pass in &dynamic.passes {
            (pass.cursor, pass.action).hash(self);
        }
        self.children(&dynamic.children);
    }

    fn group(&mut self, op: &GroupOp, children: &Children) {
        self.pos(op.from);
        self.pos(op.start_from);
        self.at(op.until);
        self.key(op.failed_child, children);
        op.closing.hash(self);
        std::mem::discriminant(&op.after).hash(self);
        std::mem::discriminant(&op.phase).hash(self);
        match op.phase {
            GroupPhase::Stopping { cursor, mode } => {
                self.pos(cursor);
                mode.hash(self);
            }
            GroupPhase::Waiting => {}
            GroupPhase::Starting { cursor, mode } => {
                self.pos(cursor);
                mode.hash(self);
            }
        }
    }

    fn children(&mut self, children: &Children) {
        children.entries.places().hash(self);
        for place in 0..children.entries.places() {
            let key = children.entries.at(place);
            key.is_some().hash(self);
            if let Some(key) = key
                && let Some(entry) = children.entries.get(key)
            {
                self.entry(entry);
                self.callers(key, children);
            }
        }
        children.timers.all().count().hash(self);
        for (at, timer) in children.timers.all() {
            self.at(at);
            match timer {
                Timer::Child(key) => self.key(Some(key), children),
                Timer::RunTime(key) => {
                    self.write_u8(b'r');
                    self.key(Some(key), children);
                }
                Timer::Group => self.write_u8(b's'),
                Timer::Grace(grace) => grace.hash(self),
                Timer::Total => self.write_u8(b't'),
            }
        }
        self.requirements(&children.requirements, children);
        self.window(children.window.as_ref());
        children.paused.is_some_and(|until| until > self.now).hash(self);
        if let Some(until) = children.pauses_until(self.now) {
            self.at(until);
        }
        if let Some(stall) = children.stall.filter(|stall| self.now < stall.spent()) {
            (stall.late, stall.reported).hash(self);
            self.since(stall.end, Duration::MAX);
        }
    }

    fn entry(&mut self, entry: &ChildEntry) {
        (entry.state, entry.lifecycle, entry.incarnation == 0, entry.has_passed).hash(self);
        entry.held.hash(self);
        self.pos(entry.pos);
        if let Some(interval) = entry.rules.watchdog
            && entry.state == ChildState::Active
        {
            self.since(entry.since, interval);
        }
        if let Some(conditions) = &entry.conditions {
            (conditions.lease, conditions.message_pending).hash(self);
            self.until(conditions.held);
        }
        let Some(history) = &entry.history else { return self.write_u8(b'-') };
        let backoff = entry.backoff();
        history.policy.as_deref().map(policy_text).hash(self);
        let failures = history.consecutive_failures.min(backoff.flat_from());
        // The place on the curve differs from the failures where an error has set the delay.
        (failures, history.place().min(backoff.flat_from())).hash(self);
        entry.rules.spec.facts.is_fallback.hash(self);
        history.tracker.window().is_some().hash(self);
        self.window(history.tracker.window());
        let (consecutive, failing_since) = history.tracker.consecutive();
        consecutive.hash(self);
        if let Some(since) = failing_since {
            let limits = entry.limits();
            let most = limits.and_then(|limits| limits.failing_for).unwrap_or_default();
            self.since(since, most.saturating_add(Duration::from_millis(1)));
        }
        match entry.state {
            ChildState::Active if failures > 0 => {
                let enough = backoff.resets_after().unwrap_or_default();
                entry.healthy_for(self.now).min(enough).hash(self);
            }
            // A message may start it, once the backoff is over that counts from the failure.
            ChildState::Down(DownState::NotRestarted)
            | ChildState::Stopping { why: StopReason::Failing { .. }, .. }
            | ChildState::AwaitingDecision { .. } => {
                let last = history.last.as_ref().map(|last| &*last.reason);
                let retry_after = last.and_then(|last| entry.rules.retry_after.delay(last));
                self.since(entry.since, backoff.longest().max(retry_after.unwrap_or_default()));
                last.map(|last| (last.kind(), retry_after)).hash(self);
            }
            _ => {}
        }
    }

    /// Takes what callers of the child wait for, each goal once.
    fn callers(&mut self, key: Key, children: &Children) {
        let mut goals = Vec::new();
        for (_, goal) in children.callers.of(key) {
            if !goals.contains(&goal) {
                goals.push(goal);
            }
        }
        (goals, children.callers.is_sought(key)).hash(self);
    }

    fn requirements(&mut self, requirements: &Requirements, children: &Children) {
        let mut names: Vec<_> = requirements.names.iter().collect();
        names.sort_unstable_by_key(|&(id, _)| *id);
        for (_, name) in names {
            (name.met, name.waiters.len()).hash(self);
            self.key(name.provider, children);
            for &waiter in &name.waiters {
                self.key(Some(waiter), children);
            }
        }
        requirements.released.len().hash(self);
        for &key in &requirements.released {
            self.key(Some(key), children);
        }
    }
}

/// The policy of an incarnation as text. Explored children set neither their backoff nor their log.
pub(super) fn policy_text(policy: &RestartPolicy) -> String {
    let RestartPolicy { restart, limits, on_exhausted, .. } = policy;
    format!("{restart:?} {:?} {on_exhausted:?}", limits.get())
}
