//! How fast memory is at the moment.
//!
//! On a virtual machine there are neighbours that take no time from it, but room in the caches they
//! share with it and a part of the memory's bandwidth. Nobody tells of them: the same work takes
//! twice as long from one second to the next, unless it is arithmetic alone. So a small piece of
//! work that is always the same is done now and then, and what it takes is compared with what it
//! took at best.

use std::hint::black_box;
use std::time::{Duration, Instant};
use std::{iter, thread};

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

/// So many before anything is measured, to have something to compare with.
const FIRST: usize = 12;
/// The best are one of so many: a single one may have been lucky.
const BEST: usize = 10;
/// Between two pulses, until memory is fast again.
const REST: Duration = Duration::from_millis(50);

pub(crate) struct Pulse {
    /// In each, a place says what the next one is, so that nothing can be fetched ahead.
    rings: Vec<Vec<u32>>,
    /// What each pulse took so far, the shortest first.
    seen: Vec<Duration>,
}

impl Pulse {
    pub(crate) fn new() -> Self {
        let mut pulse = Self { rings: vec![ring(); RINGS], seen: Vec::new() };
        iter::repeat_with(|| pulse.beat()).take(FIRST).for_each(drop);
        pulse
    }

    /// Walks on all processors at once, and returns how long it took, against the best.
    pub(crate) fn beat(&mut self) -> f64 {
        self.rings.rotate_left(1);
        let ring = &self.rings[0];
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let took: Duration = thread::scope(|scope| {
            let starts = (0..processors).map(|it| it * ring.len() / processors);
            let walks: Vec<_> =
                starts.map(|start| scope.spawn(move || walk(ring, start))).collect();
            walks.into_iter().map(|walk| walk.join().expect("no panic")).sum()
        });
        let at = self.seen.partition_point(|it| *it < took);
        self.seen.insert(at, took);
        took.as_secs_f64() / self.seen[self.seen.len() / BEST].as_secs_f64()
    }

    /// The first one that isn't slow, or the last in that time.
    pub(crate) fn calm(&mut self, at_most: Duration) -> f64 {
        let began = Instant::now();
        loop {
            let pulse = self.beat();
            if pulse <= MOST_SLOW || began.elapsed() >= at_most {
                return pulse;
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

/// All places in one circle, in no order: Sattolo's shuffle.
fn ring() -> Vec<u32> {
    let mut random = fastrand::Rng::with_seed(1);
    let mut ring: Vec<_> = (0..PLACES).collect();
    (1..ring.len()).rev().for_each(|last| ring.swap(last, random.usize(..last)));
    ring
}
