//! Members over a store of leases, with a clock of their own.
//!
//! Knows nothing of the rules: it carries out the steps of each member, answers their requests after a few milliseconds,
//! and checks what has to hold at each moment. Renewals aren't simulated, but their effect is: the leases of a member that
//! is gone expire one `ttl` after the last renewal.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::holdings::Holding;
use super::super::member::{Member, Seen, ShardStep, Times};
use super::super::table::Table;

pub(super) const TIMES: Times =
    Times { poll: Duration::from_millis(500), calm: Duration::from_secs(10) };

/// In microseconds.
const MILLI: u64 = 1_000;
const SECOND: u64 = 1_000 * MILLI;
const TTL: u64 = 15 * SECOND;
const RETRY: u64 = 2 * SECOND;
const RENEW_DEADLINE: u64 = 10 * SECOND;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Lease {
    Slot(usize),
    Shard(usize),
}

/// Who has a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Grant {
    member: usize,
    /// Set while it isn't renewed.
    expires: Option<u64>,
    /// The guard of the lease has ended, and couldn't release it.
    is_abandoned: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Step {
        member: usize,
        number: u64,
    },
    /// A request arrives at the store.
    Request {
        member: usize,
        lease: Lease,
        keeps: bool,
    },
    Answer {
        member: usize,
        seen: u8,
    },
    /// A request for the lease of a claimed shard arrives at the store.
    Poll {
        member: usize,
        shard: usize,
        claim: u64,
    },
    Granted {
        member: usize,
        shard: usize,
        claim: u64,
    },
    Standby {
        member: usize,
        shard: usize,
        claim: u64,
    },
    Release {
        member: usize,
        lease: Lease,
    },
    Ended {
        member: usize,
        shard: usize,
    },
    /// A member without a connection knows that it has lost its leases.
    Lost {
        member: usize,
    },
    /// `renews`: in time for the leases that the member had.
    Reconnected {
        member: usize,
        renews: bool,
    },
}

struct Simulated {
    member: Member,
    is_up: bool,
    is_cut: bool,
    /// The last step that was planned counts.
    step: u64,
    /// The claims that weren't taken back, by shard.
    claims: BTreeMap<usize, u64>,
    requests: u64,
    /// The shard that was handed over last, until another member has it.
    handed: Option<usize>,
}

pub(super) struct World {
    shards: usize,
    limit: usize,
    start: Instant,
    now: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    count: u64,
    random: fastrand::Rng,
    table: Arc<Table>,
    leases: HashMap<Lease, Grant>,
    members: Vec<Simulated>,
    /// Which member runs each shard.
    runs: Vec<Option<usize>>,
    /// Which member has run each shard last.
    last: Vec<Option<usize>>,
    moves: usize,
    last_move: u64,
}

impl World {
    pub(super) fn new(shards: usize, limit: usize, seed: u64) -> Self {
        let mut table = Table::new(shards);
        table.grow(limit);
        Self {
            shards,
            limit,
            start: Instant::now(),
            now: 0,
            events: BinaryHeap::new(),
            count: 0,
            random: fastrand::Rng::with_seed(seed),
            table: Arc::new(table),
            leases: HashMap::new(),
            members: Vec::new(),
            runs: vec![None; shards],
            last: vec![None; shards],
            moves: 0,
            last_move: 0,
        }
    }

    fn instant(&self) -> Instant {
        self.start + Duration::from_micros(self.now)
    }

    fn at(&mut self, time: u64, event: Event) {
        self.count += 1;
        self.events.push(Reverse((time, self.count, event)));
    }

    fn after(&mut self, delay: u64, event: Event) {
        self.at(self.now + delay, event);
    }

    fn latency(&mut self) -> u64 {
        self.random.u64(MILLI..3 * MILLI)
    }

    pub(super) fn up(&self) -> Vec<usize> {
        (0..self.members.len()).filter(|member| self.members[*member].is_up).collect()
    }

    /// A member starts.
    pub(super) fn join(&mut self) {
        let member = Member::new(Arc::clone(&self.table), TIMES, self.limit, self.instant());
        self.members.push(Simulated {
            member,
            is_up: true,
            is_cut: false,
            step: 0,
            claims: BTreeMap::new(),
            requests: 0,
            handed: None,
        });
        self.wake(self.members.len() - 1);
    }

    /// A member is gone at once, and its leases expire.
    pub(super) fn crash(&mut self, member: usize) {
        self.members[member].is_up = false;
        for run in &mut self.runs {
            run.take_if(|run| *run == member);
        }
        self.expire(member);
    }

    /// Ends the renewals of a member. Returns the time of the last one.
    fn expire(&mut self, member: usize) -> u64 {
        let renewed = self.now.saturating_sub(self.random.u64(..RETRY));
        for grant in self.leases.values_mut().filter(|grant| grant.member == member) {
            grant.expires.get_or_insert(renewed + TTL);
        }
        renewed
    }

    /// A member stops: its shards end within two seconds, and then it releases its slot.
    pub(super) fn leave(&mut self, member: usize) {
        self.members[member].is_up = false;
        let leases: Vec<_> = self.leases.iter().filter(|(_, it)| it.member == member).collect();
        let mut leases: Vec<_> = leases.into_iter().map(|(lease, _)| *lease).collect();
        leases.sort_unstable();
        for lease in leases {
            let delay = match lease {
                Lease::Slot(_) => MILLI,
                Lease::Shard(_) => self.random.u64(..2 * SECOND),
            };
            self.after(delay, Event::Release { member, lease });
        }
    }

    /// A member loses its connection to the store for some seconds. Its guards stop what it runs in time.
    pub(super) fn cut(&mut self, member: usize, seconds: u64) {
        if std::mem::replace(&mut self.members[member].is_cut, true) {
            return;
        }
        let lost = self.expire(member) + RENEW_DEADLINE;
        let reconnected = self.now + seconds * SECOND;
        if lost <= reconnected {
            self.at(lost, Event::Lost { member });
        }
        self.at(reconnected, Event::Reconnected { member, renews: lost > reconnected });
    }

    pub(super) fn run(&mut self, seconds: u64) {
        let until = self.now + seconds * SECOND;
        while let Some(Reverse((time, _, event))) = self.events.peek().copied() {
            if time > until {
                break;
            }
            self.events.pop();
            self.now = time;
            self.handle(event);
        }
        self.now = until;
    }

    fn wake(&mut self, member: usize) {
        let it = &mut self.members[member];
        it.step += 1;
        let number = it.step;
        self.after(0, Event::Step { member, number });
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Step { member, number } => {
                if self.members[member].is_up && self.members[member].step == number {
                    self.step(member);
                }
            }
            Event::Request { member, lease, keeps } => self.on_request(member, lease, keeps),
            Event::Answer { member, seen } => {
                let now = self.instant();
                if self.members[member].is_up {
                    self.members[member].member.on_seen(SEEN[seen as usize], now);
                    self.wake(member);
                }
            }
            Event::Poll { member, shard, claim } => self.on_poll(member, shard, claim),
            Event::Granted { member, shard, claim } => self.on_granted(member, shard, claim),
            Event::Standby { member, shard, claim } => {
                let it = &mut self.members[member];
                if it.is_up && it.claims.get(&shard) == Some(&claim) {
                    it.member.on_standby(shard);
                    self.wake(member);
                }
            }
            Event::Release { member, lease } => self.on_release(member, lease),
            Event::Ended { member, shard } => self.on_ended(member, shard),
            Event::Lost { member } => self.on_lost(member),
            Event::Reconnected { member, renews } => {
                self.members[member].is_cut = false;
                if renews && self.members[member].is_up {
                    let own = |it: &&mut Grant| it.member == member && !it.is_abandoned;
                    self.leases.values_mut().filter(own).for_each(|it| it.expires = None);
                }
            }
        }
    }

    fn step(&mut self, member: usize) {
        loop {
            let now = self.instant();
            let step = self.members[member].member.step(now);
            match step {
                ShardStep::Join(slot) => self.send(member, Lease::Slot(slot), true),
                ShardStep::Look(slot) => self.send(member, Lease::Slot(slot), false),
                ShardStep::Find(shard) => self.send(member, Lease::Shard(shard), false),
                ShardStep::Claim(shard) => {
                    let it = &self.members[member].member;
                    let members = it.view().expect("it has a slot").members();
                    assert!(it.holdings().len() <= it.share().unwrap());
                    assert!(it.holdings().len() <= self.shards.div_ceil(members));
                    self.count += 1;
                    let claim = self.count;
                    self.members[member].claims.insert(shard, claim);
                    let latency = self.latency();
                    self.after(latency, Event::Poll { member, shard, claim });
                }
                ShardStep::Withdraw(shard) => {
                    self.members[member].claims.remove(&shard);
                    let delay = 2 * self.latency();
                    self.after(delay, Event::Ended { member, shard });
                }
                ShardStep::Drain(shard) => {
                    let it = &mut self.members[member];
                    let before = it.handed.replace(shard);
                    // It may have become its own again.
                    let holdings = it.member.holdings();
                    let again = |it| holdings.get(it).is_some() || !holdings.is_useless(it);
                    let needs_room = holdings.needs_room(it.member.share().expect("it has a slot"));
                    assert!(before.is_none_or(again) || needs_room, "two hand-overs at once");
                    it.claims.remove(&shard);
                    let ending = [Some(Holding::Ending)];
                    assert!(ending.contains(&it.member.holdings().get(shard)));
                    let delay = self.random.u64(50 * MILLI..1_000 * MILLI);
                    self.after(delay, Event::Ended { member, shard });
                }
                ShardStep::Wait(until) => {
                    assert!(until > now, "a wait that is over");
                    let it = &mut self.members[member];
                    it.step += 1;
                    let number = it.step;
                    let wait = until.duration_since(now).as_nanos().div_ceil(1_000);
                    self.after(u64::try_from(wait).unwrap(), Event::Step { member, number });
                    return;
                }
                ShardStep::Rest => return,
            }
        }
    }

    fn send(&mut self, member: usize, lease: Lease, keeps: bool) {
        self.members[member].requests += 1;
        if self.members[member].is_cut {
            self.after(3 * SECOND, Event::Answer { member, seen: UNKNOWN });
            return;
        }
        let latency = self.latency();
        self.after(latency, Event::Request { member, lease, keeps });
    }

    /// Returns who has the lease now.
    fn held(&self, lease: Lease) -> Option<Grant> {
        let held = self.leases.get(&lease).copied();
        held.filter(|grant| grant.expires.is_none_or(|expires| expires > self.now))
    }

    /// Grants the lease if it is free or the member's own. Returns who has it otherwise.
    fn acquire(&mut self, member: usize, lease: Lease) -> Option<Grant> {
        let other = self.held(lease).filter(|grant| grant.member != member);
        if other.is_none() {
            if let Lease::Shard(shard) = lease
                && let Some(before) = self.last[shard]
            {
                self.members[before].handed.take_if(|handed| *handed == shard);
            }
            self.leases.insert(lease, Grant { member, expires: None, is_abandoned: false });
        }
        other
    }

    fn on_request(&mut self, member: usize, lease: Lease, keeps: bool) {
        let seen = if keeps {
            let other = self.acquire(member, lease);
            if !self.members[member].is_up {
                self.expire(member);
            }
            if other.is_some() { TAKEN } else { MINE }
        } else {
            match self.held(lease) {
                Some(grant) if grant.member == member => MINE,
                Some(_) => TAKEN,
                None => FREE,
            }
        };
        let latency = self.latency();
        self.after(latency, Event::Answer { member, seen });
    }

    fn on_poll(&mut self, member: usize, shard: usize, claim: u64) {
        let it = &mut self.members[member];
        if !it.is_up || it.claims.get(&shard) != Some(&claim) {
            return;
        }
        it.requests += 1;
        let is_cut = it.is_cut;
        let latency = self.latency();
        if !is_cut {
            if self.acquire(member, Lease::Shard(shard)).is_none() {
                self.after(latency, Event::Granted { member, shard, claim });
                return;
            }
            self.after(latency, Event::Standby { member, shard, claim });
        }
        let poll = self.random.u64(500 * MILLI..600 * MILLI);
        self.after(poll, Event::Poll { member, shard, claim });
    }

    fn on_granted(&mut self, member: usize, shard: usize, claim: u64) {
        let it = &mut self.members[member];
        if !it.is_up || it.claims.get(&shard) != Some(&claim) {
            // The keeper of a claim that was taken back releases the lease.
            let lease = Lease::Shard(shard);
            if self.leases.get(&lease).is_some_and(|grant| grant.member == member) {
                self.leases.remove(&lease);
            }
            return;
        }
        it.member.on_granted(shard);
        assert_eq!(self.runs[shard], None, "two owners of shard {shard}");
        self.runs[shard] = Some(member);
        if self.last[shard].replace(member) != Some(member) {
            self.moves += 1;
            self.last_move = self.now;
        }
        self.wake(member);
    }

    fn on_release(&mut self, member: usize, lease: Lease) {
        if let Lease::Shard(shard) = lease {
            self.runs[shard].take_if(|run| *run == member);
        }
        if self.leases.get(&lease).is_some_and(|grant| grant.member == member) {
            self.leases.remove(&lease);
        }
    }

    fn on_ended(&mut self, member: usize, shard: usize) {
        if !self.members[member].is_up {
            return;
        }
        self.runs[shard].take_if(|run| *run == member);
        let lease = Lease::Shard(shard);
        if let Some(grant) = self.leases.get_mut(&lease)
            && grant.member == member
        {
            grant.is_abandoned = true;
            if !self.members[member].is_cut {
                self.leases.remove(&lease);
            }
        }
        let now = self.instant();
        self.members[member].member.on_gone(shard, now);
        self.wake(member);
    }

    fn on_lost(&mut self, member: usize) {
        if !self.members[member].is_up {
            return;
        }
        let now = self.instant();
        self.members[member].member.on_slot_lost(now);
        // Nobody renews the lease of the slot any more, not even after a short cut that follows.
        for (lease, grant) in &mut self.leases {
            if matches!(lease, Lease::Slot(_)) && grant.member == member {
                grant.is_abandoned = true;
                grant.expires.get_or_insert(self.now + TTL);
            }
        }
        let mut lost = Vec::new();
        for (shard, run) in self.runs.iter_mut().enumerate() {
            if run.take_if(|run| *run == member).is_some() {
                lost.push(shard);
            }
        }
        for shard in lost {
            let it = &mut self.members[member];
            // It seeks the lease again as the same claim.
            it.member.on_standby(shard);
            if let Some(claim) = it.claims.get(&shard).copied() {
                self.after(500 * MILLI, Event::Poll { member, shard, claim });
            }
        }
        self.wake(member);
    }

    fn describe(&self) -> String {
        let member = |member: usize| format!("{member}: {:?}\n", self.members[member].member);
        self.up().into_iter().map(member).collect()
    }

    /// Checks that each shard has one owner, and that each member has its share.
    pub(super) fn assert_balanced(&self) {
        let up = self.up();
        let mut loads = vec![0; self.members.len()];
        for (shard, run) in self.runs.iter().enumerate() {
            let Some(member) = *run else {
                let lease = self.leases.get(&Lease::Shard(shard));
                panic!("shard {shard} has no owner: {lease:?}\n{}", self.describe());
            };
            assert!(self.members[member].is_up);
            loads[member] += 1;
        }
        for &member in &up {
            let it = &self.members[member].member;
            assert_eq!(it.view().map(|view| view.members()), Some(up.len()), "member {member}");
            assert_eq!(Some(loads[member]), it.share(), "member {member}");
        }
        let loads = || up.iter().map(|member| loads[*member]);
        let difference = loads().max().unwrap_or(0) - loads().min().unwrap_or(0);
        assert!(difference <= 1, "{difference}");
    }

    pub(super) fn owned(&self, member: usize) -> usize {
        self.runs.iter().filter(|run| **run == Some(member)).count()
    }

    /// Counts moves and requests from now on.
    pub(super) fn begin_count(&mut self) {
        self.moves = 0;
        self.members.iter_mut().for_each(|it| it.requests = 0);
    }

    pub(super) fn moves(&self) -> usize {
        self.moves
    }

    /// Returns how many requests the members have sent, without renewals.
    pub(super) fn requests(&self) -> u64 {
        self.members.iter().map(|it| it.requests).sum()
    }

    pub(super) fn now(&self) -> Duration {
        Duration::from_micros(self.now)
    }

    pub(super) fn last_move(&self) -> Duration {
        Duration::from_micros(self.last_move)
    }
}

const SEEN: [Seen; 4] = [Seen::Mine, Seen::Free, Seen::Taken, Seen::Unknown];
const MINE: u8 = 0;
const FREE: u8 = 1;
const TAKEN: u8 = 2;
const UNKNOWN: u8 = 3;
