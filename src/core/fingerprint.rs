//! When two states of a machine are one: what can follow from them is the same.
//!
//! A [`Fingerprint`] takes in all that a machine keeps, in a form that leaves out what no rule looks
//! at, and is read off as 128 bits. Each module of the machine says itself what it keeps.
//!
//! # What is left out, and why nothing is lost with it
//!
//! 1. *When it is.* Instants are compared with now and with each other, so they are put down as
//!    seen from now. The machine only asks of past ones whether they are past. How long a child has
//!    been active is put down while its backoff may yet begin anew, and how long ago it failed
//!    while its task is still there; of either no rule looks further back than the backoff does.
//!    Restarts that no longer count are left out; the window drops them when it next looks.
//! 2. *The numbers of incarnations.* They are compared for equality with the current one only; what
//!    the others say is tried at each state. Whether there was one at all is put down.
//! 3. *The numbers of children.* Positions are put down as ranks, which keep their order, and keys
//!    as the places they point to. What no child is behind any more finds nothing, as the arena's
//!    tests check.
//! 4. *Who waits for an answer.* Callers who want the same of a child are answered together.
//! 5. *How a child ended.* Looked at again only where it failed and its task is still there, or
//!    somebody is asked what becomes of it, and then only its kind and the wait that its error asks
//!    for: the triggers of explored children are not asked which error they returned.
//! 6. *Chance.* Explored backoffs have no jitter, so nothing is drawn.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::time::{Duration, Instant};

use super::Key;
use super::children::Children;
use super::dynamic::Dynamic;
use super::ordered::Ordered;
use super::state::{Pos, Slot, State, Timer, Why};
use crate::policy::{RestartPolicy, RestartWindow};

/// See the [module](self).
pub(super) struct Fingerprint {
    now: Instant,
    /// The positions that are taken, in order.
    order: Vec<Pos>,
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

    /// An instant of which nobody asks how long it is past.
    pub(super) fn at(&mut self, at: Instant) {
        at.saturating_duration_since(self.now).hash(self);
    }

    /// An instant that is as good as none when it is past.
    pub(super) fn until(&mut self, at: Option<Instant>) {
        at.filter(|&at| at > self.now).map(|at| at - self.now).hash(self);
    }

    /// An instant of which somebody asks how long it is past, but not beyond a limit.
    pub(super) fn since(&mut self, at: Instant, limit: Duration) {
        self.now.saturating_duration_since(at).min(limit).hash(self);
    }

    /// The restarts that count.
    fn window(&mut self, window: Option<&RestartWindow>) {
        let Some(window) = window else { return };
        for at in window.granted(self.now) {
            self.since(at, window.period());
        }
        if let Some((age, score)) = window.counted(self.now) {
            (age, score.to_bits()).hash(self);
        }
    }

    pub(super) fn pos(&mut self, pos: Pos) {
        let rank = self.order.partition_point(|&taken| taken < pos);
        // Whoever is added comes before the end of all positions, and behind every other one.
        (pos == Pos::MAX, rank).hash(self);
    }

    pub(super) fn key(&mut self, key: Option<Key>, children: &Children) {
        let there = key.filter(|&key| children.state(key).is_some());
        there.map(Key::index).hash(self);
    }
}

/// What a child says of its restart. Explored children say nothing of their backoff, nor of the log.
pub(super) fn words(policy: &RestartPolicy) -> String {
    let RestartPolicy { restart, limits, on_exhausted, .. } = policy;
    format!("{restart:?} {:?} {on_exhausted:?}", limits.get())
}

impl Ordered {
    pub(super) fn print(&self, print: &mut Fingerprint) {
        print.order = self.order.keys().copied().collect();
        (self.up, self.finished, self.more.is_some(), self.recount).hash(print);
        self.children.print(print);
        self.sweep.is_some().hash(print);
        if let Some(sweep) = &self.sweep {
            sweep.print(&self.children, print);
        }
        for &key in &self.dismissed {
            print.key(Some(key), &self.children);
        }
    }
}

impl Dynamic {
    pub(super) fn print(&self, print: &mut Fingerprint) {
        self.print_walks(print);
        self.children.print(print);
    }
}

impl Children {
    fn print(&self, print: &mut Fingerprint) {
        self.slots.places().hash(print);
        for place in 0..self.slots.places() {
            let key = self.slots.at(place);
            key.is_some().hash(print);
            if let Some((key, slot)) = key.and_then(|key| Some((key, self.slots.get(key)?))) {
                self.print_slot(slot, print);
                self.print_wants(key, print);
            }
        }
        self.timers.all().count().hash(print);
        for (at, timer) in self.timers.all() {
            print.at(at);
            match timer {
                Timer::Child(key) => print.key(Some(key), self),
                Timer::Sweep => print.write_u8(b's'),
                Timer::Grace(grace) => grace.hash(print),
                Timer::Total => print.write_u8(b't'),
            }
        }
        self.requirements.print(self, print);
        print.window(self.window.as_ref());
        self.paused.is_some_and(|until| until > print.now).hash(print);
        if let Some(until) = self.pauses_until(print.now) {
            print.at(until);
        }
    }

    fn print_slot(&self, slot: &Slot, print: &mut Fingerprint) {
        (slot.state, slot.lifecycle, slot.incarnation == 0).hash(print);
        print.pos(slot.pos);
        let Some(ledger) = &slot.ledger else { return print.write_u8(b'-') };
        let backoff = slot.backoff(&self.rules);
        ledger.policy.as_deref().map(words).hash(print);
        let streak = ledger.streak.min(backoff.flat_from());
        // Where errors ask for waits, it isn't as far on its curve.
        (streak, ledger.place().min(backoff.flat_from())).hash(print);
        (slot.options.is_fallback, ledger.mail).hash(print);
        print.until(ledger.held);
        ledger.quota.window().is_some().hash(print);
        print.window(ledger.quota.window());
        let (in_a_row, failing_since) = ledger.quota.in_a_row();
        in_a_row.hash(print);
        if let Some(since) = failing_since {
            let limits = slot.limits(&self.rules);
            let most = limits.and_then(|limits| limits.failing_for).unwrap_or_default();
            print.since(since, most.saturating_add(Duration::from_millis(1)));
        }
        let since = slot.since;
        match slot.state {
            State::Active if streak > 0 => {
                print.since(since, backoff.resets_after().unwrap_or_default());
            }
            State::Stopping { why: Why::Failing { .. }, .. } | State::Asking { .. } => {
                let last = ledger.last.as_ref();
                let asked = last.and_then(|last| self.rules.retry_after(&slot.options, last));
                print.since(since, backoff.longest().max(asked.unwrap_or_default()));
                last.map(|last| (last.kind(), asked)).hash(print);
            }
            _ => {}
        }
    }

    /// What is waited for, each want once.
    fn print_wants(&self, key: Key, print: &mut Fingerprint) {
        let mut seen = Vec::new();
        for (_, want) in self.callers.of(key) {
            if !seen.contains(&want) {
                seen.push(want);
            }
        }
        seen.hash(print);
    }
}
