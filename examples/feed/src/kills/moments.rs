//! The moments of the kills, as a function of a seed.

use std::time::Duration;

use fastrand::Rng;

/// The longest time that a process serves before it is killed, in milliseconds.
const SERVING: u64 = 400;

/// The longest time from the start of a process to a kill during its start, in milliseconds.
const STARTING: u64 = 50;

/// When a process is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// This long after the start of the process, whether or not it serves.
    Starting(Duration),
    /// This long after the process has said where it takes lines.
    Serving(Duration),
}

/// Returns the moments of all kills: one in eight during the start, the others while serving.
pub(super) fn moments(seed: u64) -> impl Iterator<Item = Moment> {
    let mut rng = Rng::with_seed(seed);
    std::iter::repeat_with(move || match rng.u8(..8) {
        0 => Moment::Starting(Duration::from_millis(rng.u64(..=STARTING))),
        _ => Moment::Serving(Duration::from_millis(rng.u64(..=SERVING))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_determines_the_moments() {
        let first = |seed| moments(seed).take(200).collect::<Vec<_>>();

        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
    }

    #[test]
    fn some_kills_hit_the_start_and_most_of_them_the_work() {
        let (starting, serving): (Vec<Moment>, Vec<Moment>) =
            moments(1).take(200).partition(|moment| matches!(moment, Moment::Starting(_)));

        assert!((10..50).contains(&starting.len()), "{}", starting.len());
        let millis = |from, to| (from..=to).map(Duration::from_millis);
        assert!(
            starting.iter().all(|it| millis(0, STARTING).any(|at| *it == Moment::Starting(at)))
        );
        assert!(serving.iter().all(|it| millis(0, SERVING).any(|at| *it == Moment::Serving(at))));
    }
}
