//! What plans are asked with, and what they answer.

use std::time::{Duration, Instant, SystemTime};

/// Draws a random duration of at most the given one.
pub(super) type Draw<'a> = &'a mut dyn FnMut(Duration) -> Duration;

/// One reading of both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    pub(super) instant: Instant,
    pub(super) wall_clock: SystemTime,
}

impl Now {
    /// The wall clock time of an instant.
    pub(super) fn wall_clock_at(self, at: Instant) -> SystemTime {
        let shifted = match at.checked_duration_since(self.instant) {
            Some(ahead) => self.wall_clock.checked_add(ahead),
            None => self.wall_clock.checked_sub(self.instant.saturating_duration_since(at)),
        };
        shifted.unwrap_or(self.wall_clock)
    }
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step<T> {
    /// Begin the run that was planned for this time, in place of one that is running unless runs may be concurrent.
    Run(T),
    /// This many runs were due, and too many are running.
    Skip(u64),
    WaitUntil(Instant),
    /// Wait for the end of a run, or of the child.
    WaitForEnd,
}
