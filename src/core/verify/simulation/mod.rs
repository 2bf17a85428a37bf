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
use std::time::{Duration, Instant};

use crate::core::verify::invariants::Invariants;
use crate::core::verify::recording::Recording;
use crate::core::{
    ChildRequest, Declaration, IncarnationNumber, Key, Links, Machine, MachineEvent, RequirementId,
    Ticket, UserCalls,
};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::policy::{Backoff, ChildRules, FailureDecision, Intensity, Rules};

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
    user_code: UserCalls,
    recording: Option<Recording>,
    /// The names that children require, in the order of their numbers.
    required: Vec<String>,
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
        let mut sim = Self::around(Machine::ordered(rules, 0, now), now);
        for fake in fakes {
            sim.insert(fake);
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
        let mut sim = Self::around(Machine::dynamic(rules, now), now);
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
            user_code: UserCalls::new(None, 7),
            recording: None,
            required: Vec::new(),
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
        let (declaration, key) = (fake.declaration(), self.machine.next_key());
        let links = self.links(&fake);
        let rules = ChildRules::of(&declaration.options, &self.machine.children().rules);
        self.invariants.added(key, declaration, self.now);
        self.fakes.insert(key, fake);
        self.event(MachineEvent::Declared(Declaration::Child { rules, links, place: None }));
        key
    }

    /// Numbers the names that the child requires, and its own if others require it.
    fn links(&mut self, fake: &FakeChild) -> Links {
        let mut requires = Vec::new();
        for name in &fake.requires {
            if !self.required.contains(name) {
                self.required.push(name.clone());
            }
            requires.extend(self.number(name).map(|id| (id, self.key(name))));
        }
        Links { provides: self.number(&fake.name), requires }
    }

    fn number(&self, name: &str) -> Option<RequirementId> {
        let number = self.required.iter().position(|it| it == name)?;
        u32::try_from(number).ok().map(RequirementId::Name)
    }

    /// Adds a child and requests its start, as `start_child` does.
    pub(in crate::core) fn add(&mut self, fake: FakeChild) -> Ticket {
        let name = fake.name.clone();
        let admitted = self.machine.admits();
        assert!(admitted.is_ok(), "{admitted:?}");
        self.insert(fake);
        self.request(&name, ChildRequest::StartNew { keep: false })
    }

    pub(in crate::core) fn key(&self, name: &str) -> Key {
        self.invariants.key(name).expect("a child")
    }

    pub(in crate::core) fn fake(&mut self, name: &str) -> &mut FakeChild {
        let key = self.key(name);
        self.fakes.get_mut(&key).expect("a child")
    }

    /// Records all steps from now on.
    pub(in crate::core) fn record(&mut self) {
        self.recording = Some(Recording::of(&self.machine));
    }

    /// Replays what was recorded. It must have the same effects.
    pub(in crate::core) fn replay(&mut self) {
        let recording = self.recording.take().expect("a recording");
        recording.check(&self.machine);
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
