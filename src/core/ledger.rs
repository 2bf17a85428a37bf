//! What a machine remembers of a child that has failed.
//!
//! Boxed at the first failure: a child that just runs has no ledger.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::History;
use super::quota::Quota;
use crate::exit::ExitReason;
use crate::policy::{Backoff, Position, Random, RestartPolicy};

/// The state of a child that is seldom needed.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Ledger {
    /// Failures since the child was last healthy.
    pub(crate) streak: u32,
    /// Where it is on its backoff's curve.
    place: Position,
    /// It was healthy, for what its backoff takes for that, since it failed last.
    well: bool,
    /// How the last incarnation ended.
    pub(crate) last: Option<ExitReason>,
    /// When the next attempt is due, and the wait that was drawn for it.
    pub(crate) next: Option<(Instant, Duration)>,
    /// What the incarnation that there is, or was last, says of its own restart.
    pub(crate) policy: Option<Arc<RestartPolicy>>,
    /// A message waits for the child, and no incarnation was started since it was told.
    pub(crate) mail: bool,
    /// Until when the incarnation that there is gets no messages, or the next one, if it is a
    /// restart.
    pub(crate) held: Option<Instant>,
    /// What is left of the child's own limits.
    pub(crate) quota: Quota,
}

impl Ledger {
    /// Draws the wait before the next attempt; `None` if the backoff has no more.
    pub(crate) fn fail(&mut self, backoff: &Backoff, random: &mut dyn Random) -> Option<Duration> {
        let first = self.streak == 0;
        self.streak = self.streak.saturating_add(1);
        if first && backoff.is_at_once(std::mem::take(&mut self.well)) {
            return Some(Duration::ZERO);
        }
        let wait = backoff.next_wait(&mut self.place, random);
        if wait.is_none() {
            // Who tries the child again begins again.
            self.place.reset();
        }
        wait
    }

    /// Another wait was asked for than would have been drawn: its place on the curve stays.
    pub(crate) fn fail_and_wait(&mut self, wait: Duration) -> Duration {
        self.streak = self.streak.saturating_add(1);
        self.well = false;
        wait
    }

    /// The child was well: its failures in a row are over, and its backoff begins again.
    pub(crate) fn recover(&mut self) {
        self.streak = 0;
        self.place.reset();
        self.quota.reset();
        self.well = true;
    }

    /// The child was active for `life`: forgets what its backoff says is to be forgotten.
    pub(crate) fn forgive(&mut self, backoff: &Backoff, life: Duration) {
        if has_recovered(backoff, life) {
            return self.recover();
        }
        if backoff.half_life().is_none() {
            return;
        }
        let half_lives = half_lives(backoff, life);
        let streak = self.streak.checked_shr(half_lives).unwrap_or(0);
        if streak < self.streak {
            self.streak = streak;
            self.place.halve(half_lives);
        }
    }

    /// The failures in a row of a child that has been active for `life`.
    fn streak_after(&self, backoff: &Backoff, life: Duration) -> u32 {
        match has_recovered(backoff, life) {
            true => 0,
            false => self.streak.checked_shr(half_lives(backoff, life)).unwrap_or(0),
        }
    }

    #[cfg(test)]
    pub(super) fn place(&self) -> u32 {
        self.place.index()
    }

    /// What there is to tell of a child that has been active for `life`, if it is.
    pub(crate) fn history(&self, backoff: &Backoff, life: Option<Duration>) -> History {
        let attempt = life.map_or(self.streak, |life| self.streak_after(backoff, life));
        History { attempt, next: self.next, last: self.last.clone() }
    }
}

fn has_recovered(backoff: &Backoff, life: Duration) -> bool {
    backoff.resets_after().is_some_and(|enough| life >= enough)
}

/// How many half-lives of the backoff a life is.
fn half_lives(backoff: &Backoff, life: Duration) -> u32 {
    let half_lives =
        backoff.half_life().and_then(|half| life.as_nanos().checked_div(half.as_nanos()));
    u32::try_from(half_lives.unwrap_or(0)).unwrap_or(u32::MAX)
}
