//! A naive model of restart intensity: a list of all granted restarts, counted anew each time.
//!
//! The events are its only input. While events are missed, or a hand clears the window at an unknown
//! moment, it is in doubt whether a restart counts, and both answers are accepted.

use std::time::{Duration, SystemTime};

/// The largest difference between the clock of this process and that of the tree.
pub(super) const SLACK: Duration = Duration::from_millis(20);

#[derive(Clone, Debug)]
pub(super) struct Budget {
    /// The limit; `None`: no limit.
    max: Option<u32>,
    period: Duration,
    grants: Vec<Grant>,
    /// Until this instant, restarts may have been granted whose events were missed.
    blind_until: Option<SystemTime>,
    /// The interval in which the window is cleared; without an end, the call is in progress.
    clearing: Option<(SystemTime, Option<SystemTime>)>,
}

/// Whether a decision was checked exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sure {
    Yes,
    No,
}

#[derive(Clone, Copy, Debug)]
struct Grant {
    at: SystemTime,
    /// Whether the restart certainly counts.
    certain: bool,
}

impl Budget {
    pub(super) fn new(max: Option<u32>, period: Duration) -> Self {
        Self { max, period, grants: Vec::new(), blind_until: None, clearing: None }
    }

    /// Resets the model, because the supervisor restarts.
    pub(super) fn reset(&mut self) {
        self.grants.clear();
        self.blind_until = None;
    }

    /// Checks a granted restart, and returns whether there was doubt. Unless it is `certain`, the
    /// restart may be uncharged.
    ///
    /// # Errors
    ///
    /// Returns a message if the restart exceeded the limit.
    pub(super) fn grant(&mut self, at: SystemTime, certain: bool) -> Result<Sure, String> {
        let Some(max) = self.max else { return Ok(Sure::Yes) };
        self.tidy(at);
        let sure = self.grants.iter().filter(|grant| grant.certain).count();
        let certain = certain && self.clearing.is_none();
        self.grants.push(Grant { at, certain });
        if certain && sure >= max as usize {
            let period = self.period;
            return Err(format!("a restart was granted after {sure} of {max} in {period:?}"));
        }
        let all = sure + usize::from(certain) == self.grants.len() && self.blind_until.is_none();
        Ok(if all { Sure::Yes } else { Sure::No })
    }

    /// Checks a refused restart, and returns whether there was doubt.
    ///
    /// # Errors
    ///
    /// Returns a message if the limit allowed the restart.
    pub(super) fn refuse(&mut self, at: SystemTime) -> Result<Sure, String> {
        let Some(max) = self.max else { return Err("refused without a limit".into()) };
        self.tidy(at);
        let (most, period) = (self.grants.len(), self.period);
        if most < max as usize && self.blind_until.is_none() {
            return Err(format!("a restart was refused after {most} of {max} in {period:?}"));
        }
        let sure = self.grants.iter().filter(|grant| grant.certain).count();
        Ok(if sure >= max as usize { Sure::Yes } else { Sure::No })
    }

    /// Returns how many restarts count at least at `late`, and at most at `early`.
    pub(super) fn count(&mut self, early: SystemTime, late: SystemTime) -> (usize, usize) {
        self.tidy(early);
        let (period, doubt) = (self.period, self.clearing.is_some());
        let counts = |at: SystemTime| late.duration_since(at).unwrap_or_default() <= period;
        let least = self.grants.iter().filter(|it| it.certain && !doubt && counts(it.at)).count();
        let most = if self.blind_until.is_some() { usize::MAX } else { self.grants.len() };
        (least, most)
    }

    /// Records that events before this instant were missed.
    pub(super) fn blind(&mut self, at: SystemTime) {
        self.blind_until = Some(at + self.period);
        self.doubt();
    }

    /// Records that a call that clears the window begins.
    pub(super) fn clears(&mut self, from: SystemTime) {
        self.clearing = Some((from, None));
    }

    /// Records that the call has returned. The window may or may not be cleared, so all entries stay, in doubt.
    pub(super) fn may_have_cleared(&mut self, to: SystemTime) {
        self.clearing = self.clearing.map(|_| (SystemTime::UNIX_EPOCH, Some(to)));
    }

    fn tidy(&mut self, now: SystemTime) {
        if let Some((from, to)) = self.clearing
            && now + SLACK >= from
        {
            self.doubt();
            if let Some(to) = to
                && now > to + SLACK
            {
                self.grants.retain(|grant| grant.at + SLACK >= from);
                self.clearing = None;
            }
        }
        let period = self.period;
        let counts = |at: SystemTime| now.duration_since(at).unwrap_or_default() <= period;
        self.grants.retain(|grant| counts(grant.at));
        self.blind_until = self.blind_until.filter(|&until| now <= until);
    }

    fn doubt(&mut self) {
        self.grants.iter_mut().for_each(|grant| grant.certain = false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_secs(5);
    const TICK: Duration = Duration::from_nanos(1);
    const T0: SystemTime = SystemTime::UNIX_EPOCH;

    fn spent() -> Budget {
        let mut budget = Budget::new(Some(2), PERIOD);
        budget.grant(T0, true).unwrap();
        budget.grant(T0 + TICK, true).unwrap();
        budget
    }

    #[test]
    fn as_many_as_allowed_are_granted_and_the_next_is_refused() {
        assert!(spent().grant(T0 + PERIOD, true).is_err());
        assert!(spent().refuse(T0 + PERIOD).is_ok());
        assert!(spent().grant(T0 + PERIOD + TICK, true).is_ok());
        assert!(spent().refuse(T0 + PERIOD + TICK).is_err());
    }

    #[test]
    fn a_restart_that_may_be_uncharged_allows_both_answers() {
        let mut budget = Budget::new(Some(1), PERIOD);
        budget.grant(T0, false).unwrap();

        assert!(budget.clone().grant(T0, true).is_ok());
        assert!(budget.refuse(T0).is_ok());
    }

    #[test]
    fn after_missed_events_there_is_doubt_for_one_period() {
        let mut budget = spent();
        budget.blind(T0 + TICK);

        assert!(budget.clone().grant(T0 + PERIOD, true).is_ok());
        assert!(budget.clone().refuse(T0 + TICK + PERIOD).is_ok());
        assert!(budget.refuse(T0 + TICK + PERIOD + TICK).is_err());
    }

    #[test]
    fn a_window_that_may_have_been_cleared_stays_in_doubt() {
        let later = T0 + Duration::from_secs(1);
        let mut budget = spent();
        budget.clears(later);
        assert!(budget.clone().grant(later, true).is_ok(), "it may be cleared by now");
        assert!(budget.clone().refuse(later).is_ok(), "or not");

        budget.may_have_cleared(later);

        let after = later + SLACK + TICK;
        assert!(budget.clone().refuse(after).is_ok());
        assert!(budget.grant(after, true).is_ok());
    }
}
