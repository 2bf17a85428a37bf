//! Validation of a backoff.

use super::{Backoff, BackoffProblem, Reset};
use crate::human_duration::HumanDuration;

impl Backoff {
    /// Checks the values: `min` is above zero, `max` isn't below it, a jitter is from 0 to 1, and so on.
    ///
    /// A tree checks its backoffs when it is built, a file is checked when it is read, and
    /// `resilience::retry` checks its backoff before the first call. Outside of these,
    /// [`delays`](Self::delays) and [`delay`](Self::delay) panic if a value is invalid. Call this first if
    /// the values come from outside of the program.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use verger::Backoff;
    ///
    /// let backoff = Backoff::exponential(Duration::from_secs(9), Duration::from_secs(1));
    /// let problem = backoff.check().unwrap_err();
    /// assert_eq!(
    ///     problem.to_string(),
    ///     "`max` of the backoff is 1s; write at least `min`, which is 9s",
    /// );
    /// ```
    ///
    /// # Errors
    ///
    /// Returns a [`BackoffProblem`] that names the first invalid value and what to write instead.
    pub fn check(&self) -> Result<(), BackoffProblem> {
        self.shape.check()?;
        if let Some((field, value)) = self.stray {
            let advice = "leave it out, or use `Backoff::exponential`, the only curve that has it";
            return Err(BackoffProblem::new(field, value.to_string(), advice));
        }
        if let (Some(cap), Some(min)) = (self.cap, self.shape.min())
            && cap < min
        {
            let cap = HumanDuration(cap).to_string();
            return Err(BackoffProblem::new("cap", cap, "write at least the first delay"));
        }
        if self.half_life().is_some_and(|half_life| half_life.is_zero()) {
            let advice =
                "write the time after which half of the failures are forgotten, such as 30s";
            return Err(BackoffProblem::new("half_life", "0s".to_owned(), advice));
        }
        if self.resets_on(Reset::Never) && self.resets.len() > 1 {
            let (value, advice) =
                ("`never` with other rules", "remove `never`, or the other rules");
            return Err(BackoffProblem::new("reset", value.to_owned(), advice));
        }
        self.jitter.check()
    }
}
