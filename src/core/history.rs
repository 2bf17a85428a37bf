//! The failures of one child, and what its rules remember of them between two incarnations.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{FailureSummary, LimitTracker, PastExit};
use crate::policy::{Backoff, CurvePosition, RestartPolicy};

/// See the [module](self).
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct FailureHistory {
    /// Failures since the child was last healthy.
    pub(crate) consecutive_failures: u32,
    /// When the first of them occurred. For the log alone: no rule reads it.
    pub(crate) first_failure: Option<Instant>,
    /// Where the child is on its backoff's curve.
    place: CurvePosition,
    /// Since its last failure, the child was healthy by the rule of its backoff.
    was_healthy: bool,
    /// How the last incarnation ended.
    pub(crate) last: Option<PastExit>,
    /// When the next attempt is due, and the delay that was drawn for it.
    pub(crate) next: Option<(Instant, Duration)>,
    /// The restart policy that the current or last incarnation has set for itself.
    pub(crate) policy: Option<Arc<RestartPolicy>>,
    /// The child's own restart limits, as far as they are used up.
    pub(crate) tracker: LimitTracker,
}

impl FailureHistory {
    /// Counts a failure and draws the delay before the next attempt, from its position on the curve. `None`: the
    /// backoff has no more delays.
    pub(crate) fn fail(
        &mut self,
        backoff: &Backoff,
        draw: impl FnOnce(CurvePosition) -> Option<Duration>,
    ) -> Option<Duration> {
        let first = self.consecutive_failures == 0;
        self.consecutive_failures = self.consecutive_failures.saturating_add(1);
        if first && backoff.is_at_once(std::mem::take(&mut self.was_healthy)) {
            return Some(Duration::ZERO);
        }
        let wait = draw(self.place);
        match wait {
            Some(wait) => self.place.advance(wait),
            // A retry by a caller begins the curve again.
            None => self.place.reset(),
        }
        wait
    }

    /// Counts a failure whose error has asked for this delay. The place on the curve stays.
    pub(crate) fn fail_and_wait(&mut self, wait: Duration) -> Duration {
        self.consecutive_failures = self.consecutive_failures.saturating_add(1);
        self.was_healthy = false;
        wait
    }

    /// Returns for how long the child has been failing that has failed at `failed`: since its first failure in a row, or
    /// since the first of the restarts that its own limit still counts. A supervisor is healthy in between.
    pub(super) fn failing(&self, failed: Instant, now: Instant) -> Duration {
        let since = [self.first_failure, self.tracker.oldest(now)].into_iter().flatten().min();
        since.map_or(Duration::ZERO, |since| failed.saturating_duration_since(since))
    }

    /// The child is healthy: resets its failures in a row and its backoff.
    pub(crate) fn recover(&mut self) {
        (self.consecutive_failures, self.first_failure) = (0, None);
        self.place.reset();
        self.tracker.reset();
        self.was_healthy = true;
    }

    /// Forgets as many failures as the backoff's reset rule says for `life` as Active.
    pub(crate) fn decay(&mut self, backoff: &Backoff, life: Duration) {
        if has_recovered(backoff, life) {
            return self.recover();
        }
        let half_lives = half_lives(backoff, life);
        let left = self.halved(half_lives);
        if left < self.consecutive_failures {
            self.consecutive_failures = left;
            self.place.halve(half_lives);
        }
    }

    fn halved(&self, times: u32) -> u32 {
        self.consecutive_failures.checked_shr(times).unwrap_or(0)
    }

    #[cfg(test)]
    pub(super) fn place(&self) -> u32 {
        self.place.index()
    }

    /// What is visible of a child that has been Active for `life`, if it is.
    pub(crate) fn summary(&self, backoff: &Backoff, life: Option<Duration>) -> FailureSummary {
        let attempt = match life {
            Some(life) if has_recovered(backoff, life) => 0,
            Some(life) => self.halved(half_lives(backoff, life)),
            None => self.consecutive_failures,
        };
        FailureSummary { attempt, next: self.next, last: self.last.clone() }
    }
}

fn has_recovered(backoff: &Backoff, life: Duration) -> bool {
    backoff.resets_after().is_some_and(|enough| life >= enough)
}

fn half_lives(backoff: &Backoff, life: Duration) -> u32 {
    let half_lives =
        backoff.half_life().and_then(|half| life.as_nanos().checked_div(half.as_nanos()));
    u32::try_from(half_lives.unwrap_or(0)).unwrap_or(u32::MAX)
}
