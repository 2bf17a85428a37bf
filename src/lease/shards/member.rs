//! The rules of a member: which shards it claims, and which ones it hands over.
//!
//! A [`Member`] is pure: instants are arguments, and it neither waits nor asks an engine. A coordinator asks for the next
//! [`ShardStep`], carries it out, and reports what happened.
//!
//! * A shard whose [home](super::table) is the member's slot is claimed at once, and waited for while another member has
//!   it.
//! * A shard whose home is a free slot is *common*: any member that has less than its share takes it, and keeps it. The
//!   member looks for one that is free.
//! * A shard whose home is the slot of another member, and a common shard beyond the own share, is *surplus*.
//!
//! # Invariants
//!
//! 1. A member that waits for shards or has them claims another only below its share, `ceil((shards - rank) / members)`,
//!    which is at most `ceil(shards / members)`. Its rank is the number of taken slots below its own.
//! 2. A member drains one shard at a time, and the next one only after another member has taken the last one. It doesn't
//!    wait for that if the last one is its own again, nor if it needs room for a shard of its own: otherwise members that
//!    exchange shards could wait for each other.
//! 3. A shard is drained only while the view is calm. A free shard doesn't wait for that.
//! 4. At most one request is in flight.
//! 5. A member without a slot claims nothing and hands over nothing.
//! 6. A step that waits names an instant in the future.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::holdings::{Holding, Holdings};
use super::key::mix;
use super::table::Table;
use super::view::ShardsView;
use crate::clock::later;

/// The times of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    /// The longest time between two requests is twice this one, and the shortest a fifth of it.
    pub(super) poll: Duration,
    /// How long the members have to be unchanged before shards are handed over.
    pub(super) calm: Duration,
}

impl Times {
    /// Returns how long the members have to be unchanged before a new member claims its first shards.
    fn settle(self) -> Duration {
        self.calm.min(4 * self.poll)
    }

    /// Returns the shortest time from one request to the next.
    fn shortest(self) -> Duration {
        self.poll / 5
    }
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShardStep {
    /// Request the lease of this slot, to keep it.
    Join(usize),
    /// Look who has the lease of this slot.
    Look(usize),
    /// Look who has the lease of this shard.
    Find(usize),
    /// Start the shard, as soon as its lease is granted.
    Claim(usize),
    /// Take back a claim that hasn't been granted.
    Withdraw(usize),
    /// Stop the shard, and release its lease.
    Drain(usize),
    /// Wait until this instant, or for a report.
    Wait(Instant),
    /// Wait for a report.
    Rest,
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// This member has the lease: it keeps it, or is about to release it.
    Mine,
    /// Nobody has the lease.
    Free,
    /// Another member has the lease.
    Taken,
    Unknown,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Member {
    table: Arc<Table>,
    times: Times,
    /// How many members there are at most.
    limit: usize,
    place: Place,
    holdings: Holdings,
    handing: Option<Handing>,
    search: Search,
    /// Steps to return before any others.
    decided: VecDeque<ShardStep>,
    asked: Option<ShardStep>,
    /// When the next request may be sent.
    next: Instant,
}

#[derive(Debug)]
enum Place {
    /// Tries one slot after another. `taken` are those that others have.
    Joining {
        slot: usize,
        taken: BTreeSet<usize>,
    },
    Joined {
        view: ShardsView,
        since: Instant,
        claims: bool,
    },
}

impl Place {
    fn view(&self) -> Option<&ShardsView> {
        match self {
            Self::Joining { .. } => None,
            Self::Joined { view, .. } => Some(view),
        }
    }
}

/// The shard that is being handed over.
#[derive(Clone, Copy, Debug)]
enum Handing {
    Draining(usize),
    /// The lease is released. Whether another member has it is looked up at this instant.
    Released(usize, Instant),
}

/// Which common shards to look at.
#[derive(Debug, Default)]
struct Search {
    shards: Vec<usize>,
    /// No new search begins before then.
    after: Option<Instant>,
    /// Whether the next request is one about a slot, although a shard is looked for.
    yields: bool,
}

impl Member {
    /// Creates a member that takes a slot first.
    pub(super) fn new(table: Arc<Table>, times: Times, limit: usize, now: Instant) -> Self {
        Self {
            table,
            times,
            limit,
            place: Place::Joining { slot: 0, taken: BTreeSet::new() },
            holdings: Holdings::default(),
            handing: None,
            search: Search::default(),
            decided: VecDeque::new(),
            asked: None,
            next: now,
        }
    }

    /// Takes over a shard that has been claimed before. `is_granted`: its lease is granted.
    pub(super) fn adopt(&mut self, shard: usize, is_granted: bool) {
        let holding = if is_granted { Holding::Granted } else { Holding::Claimed };
        self.holdings.set(shard, holding, None);
    }

    /// Returns what is known of the slots, if the member has one.
    pub(super) fn view(&self) -> Option<&ShardsView> {
        self.place.view()
    }

    #[cfg(test)]
    pub(super) fn holdings(&self) -> &Holdings {
        &self.holdings
    }

    /// Returns how many shards the member is to have, if it has a slot.
    pub(super) fn share(&self) -> Option<usize> {
        self.view().map(|view| view.share(self.table.shards()))
    }

    /// Returns what to do next.
    pub(super) fn step(&mut self, now: Instant) -> ShardStep {
        if let Some(step) = self.decided.pop_front() {
            return step;
        }
        let Place::Joined { view, since, claims } = &mut self.place else {
            return self.request(now);
        };
        let at = Some((&*self.table, &*view));
        let share = view.share(self.table.shards());
        let rested = self.holdings.wake(at, now);
        *claims |= match view.confirmed() {
            0 => false,
            1 => now >= later(*since, 2 * self.times.calm),
            _ => view.unchanged(now) >= self.times.settle(),
        };
        if *claims
            && self.holdings.len() < share
            && let Some(shard) = self.holdings.missing()
        {
            self.holdings.set(shard, Holding::Claimed, at);
            return ShardStep::Claim(shard);
        }
        let mut calm_at = None;
        let waits = match self.handing {
            Some(Handing::Released(..)) => !self.holdings.needs_room(share),
            Some(Handing::Draining(_)) => true,
            None => false,
        };
        if !waits && let Some(shard) = self.holdings.surplus(share) {
            if view.is_calm(self.times.calm, now) {
                self.handing = Some(Handing::Draining(shard));
                self.holdings.set(shard, Holding::Ending, at);
                return ShardStep::Drain(shard);
            }
            calm_at = Some(later(now, self.times.calm.saturating_sub(view.unchanged(now))));
        }
        let wake = [rested, calm_at].into_iter().flatten().filter(|at| *at > now).min();
        match (self.request(now), wake) {
            (ShardStep::Wait(until), Some(wake)) => ShardStep::Wait(until.min(wake)),
            (step, _) => step,
        }
    }

    /// Returns the request that is due, or when one will be.
    fn request(&mut self, now: Instant) -> ShardStep {
        if self.asked.is_some() {
            return ShardStep::Rest;
        }
        if now < self.next {
            return ShardStep::Wait(self.next);
        }
        let slot = match &self.place {
            Place::Joining { slot, .. } => ShardStep::Join(*slot),
            Place::Joined { view, .. } => ShardStep::Look(view.next()),
        };
        let shard = if self.search.yields { None } else { self.looked_for(now) };
        self.search.yields = shard.is_some();
        *self.asked.insert(shard.map_or(slot, ShardStep::Find))
    }

    /// Returns the shard to look at.
    fn looked_for(&mut self, now: Instant) -> Option<usize> {
        if let Some(Handing::Released(shard, at)) = self.handing
            && at <= now
        {
            return Some(shard);
        }
        let Place::Joined { view, claims: true, .. } = &self.place else { return None };
        if !self.holdings.lacks_common(view.share(self.table.shards())) {
            return None;
        }
        if self.search.shards.is_empty() && self.search.after.is_none_or(|after| after <= now) {
            self.search.shards = common(&self.table, view);
            self.search.after = Some(later(now, self.times.poll));
        }
        while let Some(shard) = self.search.shards.pop() {
            if self.holdings.may_claim_common(shard, (&self.table, view)) {
                return Some(shard);
            }
        }
        None
    }

    /// Takes the answer to the request in flight.
    pub(super) fn on_seen(&mut self, seen: Seen, now: Instant) {
        match self.asked.take() {
            Some(ShardStep::Join(slot)) => self.on_join(slot, seen, now),
            Some(ShardStep::Look(slot)) => self.on_look(slot, seen, now),
            Some(ShardStep::Find(shard)) => self.on_find(shard, seen, now),
            _ => return,
        }
        self.next = later(now, self.pause(seen));
    }

    fn on_join(&mut self, asked: usize, seen: Seen, now: Instant) {
        let Place::Joining { slot, taken } = &mut self.place else { return };
        match seen {
            Seen::Taken => {
                taken.insert(asked);
                *slot = asked + 1;
                if *slot >= self.limit {
                    // No slot is free. One that was passed by may be.
                    taken.clear();
                    *slot = 0;
                }
            }
            Seen::Mine => {
                let view = ShardsView::new(std::mem::take(taken), asked, self.limit, now);
                self.place = Place::Joined { view, since: now, claims: false };
                self.on_view();
            }
            Seen::Free | Seen::Unknown => {}
        }
    }

    fn on_look(&mut self, slot: usize, seen: Seen, now: Instant) {
        let Place::Joined { view, .. } = &mut self.place else { return };
        let is_taken = match seen {
            Seen::Free => Some(false),
            Seen::Taken => Some(true),
            Seen::Mine | Seen::Unknown => None,
        };
        if view.next() == slot && view.on_seen(is_taken, now) {
            self.on_view();
        }
    }

    fn on_find(&mut self, shard: usize, seen: Seen, now: Instant) {
        if let Some(Handing::Released(released, at)) = &mut self.handing
            && *released == shard
        {
            *at = later(now, self.times.poll);
            self.handing.take_if(|_| seen == Seen::Taken);
        }
        let Place::Joined { view, claims: true, .. } = &self.place else { return };
        let at = (&*self.table, view);
        let lacks = self.holdings.lacks_common(view.share(self.table.shards()));
        if seen == Seen::Free && lacks && self.holdings.may_claim_common(shard, at) {
            self.holdings.set(shard, Holding::Claimed, Some(at));
            self.decided.push_back(ShardStep::Claim(shard));
            // The member to which it was to be handed over is gone.
            self.handing.take_if(|it| matches!(it, Handing::Released(it, _) if *it == shard));
        }
    }

    /// Returns the time until the next request.
    fn pause(&self, seen: Seen) -> Duration {
        let Times { poll, .. } = self.times;
        let (view, claims) = match &self.place {
            Place::Joining { slot: 0, .. } => return poll,
            Place::Joining { .. } if seen == Seen::Taken => return Duration::ZERO,
            Place::Joining { .. } if seen == Seen::Unknown => return poll,
            Place::Joining { .. } => return self.times.shortest(),
            Place::Joined { view, claims, .. } => (view, *claims),
        };
        if !claims {
            // The first sweeps, before which the member claims nothing.
            return if seen == Seen::Unknown { poll } else { self.times.shortest() / 10 };
        }
        let lacks = self.holdings.lacks_common(view.share(self.table.shards()));
        if lacks || matches!(self.handing, Some(Handing::Released(..))) {
            // Half of these requests are about slots.
            return self.times.shortest() / 2;
        }
        let slots = u32::try_from(view.slots()).unwrap_or(u32::MAX);
        let pause = (10 * poll / slots).clamp(self.times.shortest(), 2 * poll);
        // Members that have started together don't go on looking at the same slot at the same moment.
        let spread = mix(view.own() as u64 ^ ((view.next() as u64) << 32)) % 16;
        pause + pause * u32::try_from(spread).unwrap_or_default() / 64
    }

    /// Reports that the lease of the slot is lost.
    pub(super) fn on_slot_lost(&mut self, now: Instant) {
        self.place = Place::Joining { slot: 0, taken: BTreeSet::new() };
        self.next = now;
        self.on_view();
    }

    /// Reports that the lease of the shard is granted.
    pub(super) fn on_granted(&mut self, shard: usize) {
        if self.holdings.get(shard) == Some(Holding::Claimed) {
            self.holdings.set(shard, Holding::Granted, None);
        }
    }

    /// Reports that the lease of the shard is lost, or that another member has it.
    pub(super) fn on_standby(&mut self, shard: usize) {
        if matches!(self.holdings.get(shard), Some(Holding::Claimed | Holding::Granted)) {
            self.holdings.set(shard, Holding::Claimed, None);
            if self.holdings.is_useless(shard) {
                self.withdraw(shard);
            }
        }
    }

    /// Reports that the shard has ended, and that its lease is released.
    pub(super) fn on_gone(&mut self, shard: usize, now: Instant) {
        let by_decision = self.holdings.get(shard) == Some(Holding::Ending);
        // A shard that ends by itself may do so again.
        let rest = (!by_decision).then(|| later(now, self.times.calm));
        let at = self.place.view().map(|view| (&*self.table, view));
        self.holdings.remove(shard, rest, at);
        if matches!(self.handing, Some(Handing::Draining(draining)) if draining == shard) {
            self.handing = Some(Handing::Released(shard, later(now, self.times.poll)));
            self.end_own_handing();
        }
    }

    /// Waits for no other member if the shard belongs to this one by now. It is claimed again.
    fn end_own_handing(&mut self) {
        self.handing.take_if(|handing| match handing {
            Handing::Released(shard, _) => !self.holdings.is_useless(*shard),
            Handing::Draining(_) => false,
        });
    }

    fn withdraw(&mut self, shard: usize) {
        self.holdings.set(shard, Holding::Ending, None);
        self.decided.push_back(ShardStep::Withdraw(shard));
    }

    /// Sorts the shards after a change of the view.
    fn on_view(&mut self) {
        let view = self.place.view();
        if let Some(view) = view
            && view.slots() > self.table.slots()
        {
            Arc::make_mut(&mut self.table).grow(view.slots());
        }
        self.holdings.sort(&self.table, view);
        self.end_own_handing();
        self.search = Search::default();
        for shard in self.holdings.foreign_claims() {
            self.withdraw(shard);
        }
    }
}

/// Returns the common shards, last those that are probably free.
///
/// Each member begins at a different one, so that members that look at the same time find different shards.
fn common(table: &Table, view: &ShardsView) -> Vec<usize> {
    let of_slots = view.free().map(|slot| {
        let shards = table.shards_of(slot, view.slots());
        let (late, early) = shards.split_at(view.own() % shards.len().max(1));
        early.iter().chain(late)
    });
    let mut shards: Vec<_> = of_slots.flatten().copied().collect();
    shards.reverse();
    shards
}
