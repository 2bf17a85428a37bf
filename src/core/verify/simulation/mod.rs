//! A supervisor with scripted children, without tasks and without time that passes by itself.
//!
//! Children follow their [`FakeChild`]. Time jumps from one deadline to the next. The simulation
//! applies each effect as the driver would, and [`Invariants`] checks every event: every test checks
//! every invariant, whatever it is about.
//!
//! The transcript can be read as text: [`Simulation::acts`] for what was done, [`Simulation::timed`]
//! for when, [`Simulation::story`] for the edges of one child.

mod effects;
mod fake_child;
mod inputs;
mod time;
mod transcript;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::core::verify::invariants::Invariants;
use crate::core::{ChildRequest, IncarnationNumber, Key, Machine, RequirementId, Ticket};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::policy::FailureDecision;
use crate::policy::{Backoff, Intensity, Rules};

pub(in crate::core) use self::fake_child::{Busy, FakeChild, Heart, Script, fake};

#[derive(Clone, Debug)]
enum Happening {
    Ready,
    Ignored,
    Exited(ExitReason),
    Answered(FailureDecision),
}

/// The subject of a line of the transcript.
#[derive(Debug)]
enum TranscriptLine {
    Act,
    Cause,
    Edge(Key),
    Other,
}

/// See the [module](self).
pub(in crate::core) struct Simulation {
    pub(in crate::core) machine: Machine,
    pub(in crate::core) now: Instant,
    began: Instant,
    invariants: Invariants,
    fakes: BTreeMap<Key, FakeChild>,
    provided: BTreeMap<String, RequirementId>,
    agenda: BTreeMap<(Instant, u64), (Key, IncarnationNumber, Happening)>,
    serial: u64,
    transcript: Vec<(Instant, TranscriptLine, String)>,
    read: usize,
    stories_read: BTreeMap<Key, usize>,
    answers: BTreeMap<Ticket, String>,
    tickets: Ticket,
    ticks: usize,
}

/// Rules without backoff, as OTP has them, and without a limit.
pub(in crate::core) fn rules() -> Rules {
    Rules { backoff: Backoff::none(), of_each: None, ..Rules::default() }
}

/// At most this many restarts a minute.
pub(in crate::core) fn at_most(max: u32) -> Option<Intensity> {
    Some(Intensity::sliding(max, secs(60)))
}

impl Simulation {
    /// A supervisor with these children that has not begun.
    pub(in crate::core) fn ordered(
        rules: Rules,
        fakes: impl IntoIterator<Item = FakeChild>,
    ) -> Self {
        let now = Instant::now();
        let mut sim = Self::around(Machine::ordered(rules, now, 7), now);
        let keys: Vec<_> = fakes.into_iter().map(|fake| sim.insert(fake)).collect();
        for key in keys {
            sim.link(key);
        }
        sim
    }

    /// A supervisor with these children, all of which have started.
    pub(in crate::core) fn running(
        rules: Rules,
        fakes: impl IntoIterator<Item = FakeChild>,
    ) -> Self {
        let mut sim = Self::ordered(rules, fakes);
        sim.advance(Duration::ZERO);
        assert!(sim.is_up(), "{}", sim.tail());
        sim.skip();
        sim
    }

    /// Children named by letters, all of which have started.
    pub(in crate::core) fn named(rules: Rules, names: &str) -> Self {
        Self::running(rules, names.split(' ').map(fake))
    }
}

impl Simulation {
    pub(in crate::core) fn dynamic(
        rules: Rules,
        fakes: impl IntoIterator<Item = FakeChild>,
    ) -> Self {
        let now = Instant::now();
        let mut sim = Self::around(Machine::dynamic(rules, now, 7), now);
        sim.settle();
        for fake in fakes {
            sim.add(fake);
        }
        sim.settle();
        sim.skip();
        sim
    }
}

impl Simulation {
    pub(super) fn around(machine: Machine, now: Instant) -> Self {
        Self {
            invariants: Invariants::of(&machine),
            machine,
            now,
            began: now,
            fakes: BTreeMap::new(),
            provided: BTreeMap::new(),
            agenda: BTreeMap::new(),
            serial: 0,
            transcript: Vec::new(),
            read: 0,
            stories_read: BTreeMap::new(),
            answers: BTreeMap::new(),
            tickets: 0,
            ticks: 0,
        }
    }

    pub(super) fn insert(&mut self, mut fake: FakeChild) -> Key {
        // A spec that requires an unknown name is refused before it gets to the machine.
        fake.requires.retain(|name| self.invariants.key(name).is_some());
        let declaration = fake.declaration();
        let key = self.machine.add(Arc::clone(&declaration.options), self.now);
        self.invariants.added(key, declaration, self.now);
        self.fakes.insert(key, fake);
        key
    }

    pub(super) fn link(&mut self, key: Key) {
        let fake = &self.fakes[&key];
        let provides = self.provided.get(&fake.name).copied();
        let requires = fake.requires.clone();
        if provides.is_none() && requires.is_empty() {
            return;
        }
        let ids = requires.into_iter().map(|name| {
            let id = self.provided.get(&name).copied();
            id.unwrap_or_else(|| {
                let id = self.machine.provided_by(self.key(&name));
                self.provided.insert(name, id);
                id
            })
        });
        let ids = ids.collect();
        self.machine.link(key, provides, ids);
    }

    /// Adds a child and requests its start, as `start_child` does.
    pub(in crate::core) fn add(&mut self, fake: FakeChild) -> Ticket {
        let name = fake.name.clone();
        let admitted = self.machine.admits();
        assert!(admitted.is_ok(), "{admitted:?}");
        let key = self.insert(fake);
        self.link(key);
        self.request(&name, ChildRequest::Start)
    }

    pub(in crate::core) fn key(&self, name: &str) -> Key {
        self.invariants.key(name).expect("a child")
    }

    pub(in crate::core) fn fake(&mut self, name: &str) -> &mut FakeChild {
        let key = self.key(name);
        self.fakes.get_mut(&key).expect("a child")
    }

    /// From now on every child runs and stops as it should.
    pub(in crate::core) fn heal(&mut self) {
        let keys: Vec<_> = self.fakes.keys().copied().collect();
        for key in keys {
            // And its fallbacks, which may have replaced it already.
            let mut fake = Some(self.fakes.get_mut(&key).expect("a child"));
            while let Some(it) = fake {
                it.scripts.clear();
                it.answers.clear();
                it.silent = false;
                it.heart = Heart::Beats;
                (it.ready, it.stops, it.dies) = (Some(ms(1)), Some(ms(1)), Some(ms(1)));
                fake = it.fallback.as_deref_mut();
            }
            let child = &self.invariants.children[&key];
            let (live, stopping) = (child.live, child.cancelled || child.aborted);
            let incarnation = child.incarnation;
            if live && stopping {
                self.schedule(ms(1), key, incarnation, Happening::Exited(ExitReason::Shutdown));
            } else if live && child.lifecycle == Lifecycle::Activating {
                self.schedule(ms(1), key, incarnation, Happening::Ready);
            }
        }
    }
}

pub(in crate::core) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(in crate::core) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}
