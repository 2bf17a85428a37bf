//! How fast memory and the processors are at the moment.
//!
//! On a virtual machine there are neighbours that take no time from it, but room in the caches they
//! share with it, a part of the memory's bandwidth, and, where their threads run on the same cores,
//! up to half of what these can do at once. Nobody tells of them: the same work takes twice as long
//! from one second to the next, unless each step of it waits for the one before. So two small pieces
//! of work that are always the same are done now and then, and what they take is compared with what
//! they took at best.

use std::hint::black_box;
use std::time::{Duration, Instant};
use std::{iter, thread};

use serde::Serialize;

use super::thread::worked_here;

/// A round counts as disturbed if a pulse in it took so many times as long as the best ones.
pub(crate) const MOST_SLOW: f64 = 1.3;

/// Of four bytes each: larger than what a processor has to itself, smaller than what several share.
const PLACES: u32 = 2 << 20;
/// The first places that a walk comes to are in no cache, whatever ran before, since so many others
/// have been walked through meanwhile. To the rest it comes twice, if nobody else wants the cache.
const RINGS: usize = 8;
/// Of each processor: some ten milliseconds.
const STEPS: usize = 100_000;
/// Of each processor: a quarter of a millisecond.
const STIRS: u64 = 200_000;

/// So many before anything is measured, to have something to compare with.
const FIRST: usize = 12;
/// A walk is among the best if it is one of so many: a single one may have been lucky.
const BEST_WALKS: usize = 10;
/// Sums have no luck, and for most of an hour there may be neighbours.
const BEST_SUMS: usize = 50;
/// Between two pulses, until memory is fast again.
const REST: Duration = Duration::from_millis(50);

pub(crate) struct Pulse {
    /// In each, a place says what the next one is, so that nothing can be fetched ahead.
    rings: Vec<Vec<u32>>,
    memory: Pace,
    cores: Pace,
}

/// What each pulse took so far, the shortest first.
#[derive(Default)]
struct Pace(Vec<Duration>);

impl Pace {
    /// How long that is, against the best, which are one of so many.
    fn slowness(&mut self, took: Duration, best: usize) -> f64 {
        let at = self.0.partition_point(|it| *it < took);
        self.0.insert(at, took);
        took.as_secs_f64() / self.0[self.0.len() / best].as_secs_f64()
    }
}

/// How long each took, against the best.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Beat {
    pub(crate) memory: f64,
    pub(crate) cores: f64,
}

impl Beat {
    pub(crate) fn max(self, other: Self) -> Self {
        Self { memory: self.memory.max(other.memory), cores: self.cores.max(other.cores) }
    }

    pub(crate) fn slowness(self) -> f64 {
        self.memory.max(self.cores)
    }
}

impl Pulse {
    pub(crate) fn new() -> Self {
        let rings = vec![ring(); RINGS];
        let mut pulse = Self { rings, memory: Pace::default(), cores: Pace::default() };
        iter::repeat_with(|| pulse.beat()).take(FIRST).for_each(drop);
        pulse
    }

    /// Works on all processors at once.
    pub(crate) fn beat(&mut self) -> Beat {
        self.rings.rotate_left(1);
        let ring = &self.rings[0];
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let (memory, cores) = thread::scope(|scope| {
            let starts = (0..processors).map(|it| it * ring.len() / processors);
            let workers: Vec<_> =
                starts.map(|start| scope.spawn(move || (walk(ring, start), stir()))).collect();
            let took = workers.into_iter().map(|worker| worker.join().expect("no panic"));
            took.fold((Duration::ZERO, Duration::ZERO), |all, one| {
                (all.0 + one.0, all.1.max(one.1))
            })
        });
        Beat {
            memory: self.memory.slowness(memory, BEST_WALKS),
            cores: self.cores.slowness(cores, BEST_SUMS),
        }
    }

    /// The first one that isn't slow, or the last in that time.
    pub(crate) fn calm(&mut self, at_most: Duration) -> Beat {
        let began = Instant::now();
        loop {
            let beat = self.beat();
            if beat.slowness() <= MOST_SLOW || began.elapsed() >= at_most {
                return beat;
            }
            thread::sleep(REST);
        }
    }
}

/// By the thread's own time: whoever else had its processor is told by [`Load`](super::load::Load).
fn walk(ring: &[u32], start: usize) -> Duration {
    let began = worked_here();
    black_box((0..STEPS).fold(start, |at, _| ring[at] as usize));
    worked_here() - began
}

/// Six sums that don't wait for each other: as much as a core can do at once, if it has nobody else to
/// work for.
fn stir() -> Duration {
    let began = worked_here();
    let mut sums = [0_u64; 6];
    for step in 0..STIRS {
        for sum in &mut sums {
            *sum = sum.rotate_left(7) ^ step;
        }
    }
    black_box(sums);
    worked_here() - began
}

/// All places in one circle, in no order: Sattolo's shuffle.
fn ring() -> Vec<u32> {
    let mut random = fastrand::Rng::with_seed(1);
    let mut ring: Vec<_> = (0..PLACES).collect();
    (1..ring.len()).rev().for_each(|last| ring.swap(last, random.usize(..last)));
    ring
}
