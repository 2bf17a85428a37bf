//! Granted restarts, counted as simply as possible.
//!
//! The counts use the values of an intensity, and none of the machine's counters.

use std::time::Instant;

use crate::policy::{Intensity, Limits};

/// The restarts that one intensity counts.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Grants {
    /// Sliding: every restart. Tumbling: those of the current period.
    at: Vec<Instant>,
    /// Decaying: the score, and the instant for which it is.
    score: Option<(Instant, f64)>,
}

impl Grants {
    /// Drops what no longer counts.
    fn refresh(&mut self, intensity: Intensity, now: Instant) {
        let recent = |at: Instant| now.saturating_duration_since(at) <= intensity.period();
        if let Some((_, half_life)) = intensity.decay() {
            if let Some((at, score)) = &mut self.score {
                let halves = (now - *at).div_duration_f64(half_life);
                (*at, *score) = (now, *score * (-halves).exp2());
            }
        } else if !intensity.tumbles() {
            self.at.retain(|&at| recent(at));
        } else if self.at.first().is_some_and(|&first| !recent(first)) {
            self.at.clear();
        }
    }

    pub(super) fn fit(&mut self, intensity: Option<Intensity>, now: Instant) -> bool {
        self.count(intensity, now) < intensity.map_or(usize::MAX, |it| it.max() as usize)
    }

    pub(super) fn record(&mut self, intensity: Option<Intensity>, now: Instant) {
        let Some(intensity) = intensity else { return };
        self.refresh(intensity, now);
        if intensity.decay().is_some() {
            let score = self.score.map_or(0.0, |(_, score)| score);
            self.score = Some((now, score + 1.0));
        } else {
            self.at.push(now);
        }
    }

    /// How many of the allowed restarts are used up.
    pub(super) fn count(&mut self, intensity: Option<Intensity>, now: Instant) -> usize {
        let Some(intensity) = intensity else { return 0 };
        self.refresh(intensity, now);
        match intensity.decay() {
            None => self.at.len(),
            Some((max, _)) => {
                let mut score = self.score.map_or(0.0, |(_, score)| score);
                let mut left = 0;
                while score + 1.0 <= max {
                    (score, left) = (score + 1.0, left + 1);
                }
                intensity.max() as usize - left
            }
        }
    }

    /// When the restarts were granted that count for a sliding intensity.
    pub(super) fn at(&self) -> &[Instant] {
        &self.at
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// The granted restarts of one child, for its own limits.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct OwnGrants {
    grants: Grants,
    /// The intensity that the grants count for.
    of: Option<Intensity>,
    /// Whether that is the built-in limit.
    is_default: bool,
    in_a_row: u32,
    failing_since: Option<Instant>,
}

impl OwnGrants {
    pub(super) fn fit(&mut self, limits: &Limits, failed: Instant, now: Instant) -> bool {
        let since = self.failing_since.unwrap_or(failed);
        let mut grants =
            if self.of == limits.intensity { self.grants.clone() } else { Grants::default() };
        grants.fit(limits.intensity, now)
            && limits.consecutive.is_none_or(|max| self.in_a_row < max)
            && limits.failing_for.is_none_or(|max| failed - since <= max)
    }

    pub(super) fn record(&mut self, limits: &Limits, failed: Instant, now: Instant) {
        // A default that doesn't count this failure goes on with what it has counted.
        let counts = limits.intensity.is_some() || !limits.is_default;
        if counts && self.of != limits.intensity {
            (self.of, self.grants) = (limits.intensity, Grants::default());
        }
        self.grants.record(limits.intensity, now);
        if counts {
            self.is_default = limits.is_default;
        }
        self.in_a_row = if limits.consecutive.is_some() { self.in_a_row + 1 } else { 0 };
        self.failing_since = limits.failing_for.map(|_| self.failing_since.unwrap_or(failed));
    }

    /// The child reports that it works, or has handled a message.
    pub(super) fn works(&mut self) {
        self.reset();
        if self.is_default {
            (self.of, self.grants) = (None, Grants::default());
        }
    }

    /// The child is healthy.
    pub(super) fn reset(&mut self) {
        (self.in_a_row, self.failing_since) = (0, None);
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
