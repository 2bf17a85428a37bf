//! Rules for when a backoff resets to its first delay.

use std::time::Duration;

/// A rule for when the backoff of a child resets to its first delay.
///
/// A reset also starts the count of consecutive failures again. The time for which a child was active
/// is measured from its readiness to its exit. It is evaluated when the child fails, and for the
/// status.
///
/// ```
/// use std::time::Duration;
///
/// use verger::Backoff;
/// use verger::policy::Reset;
///
/// let backoff = Backoff::exponential(Duration::from_millis(200), Duration::from_secs(30));
/// // The first delay again, after a failure that follows 10 minutes of work.
/// let backoff = backoff.reset(Reset::ActiveFor(Duration::from_secs(600)));
/// # drop(backoff);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reset {
    /// Never resets, not even by [`report_healthy`](crate::Context::report_healthy).
    ///
    /// It can't be combined with other rules.
    Never,
    /// Resets only by [`report_healthy`](crate::Context::report_healthy), as Pekko's manual reset.
    ///
    /// With every other rule except `Never`, this call resets the backoff as well.
    Manual,
    /// Resets when the child was active for at least this time.
    ActiveFor(Duration),
    /// Resets when the child becomes ready.
    ///
    /// Use it for children that signal readiness. A child that is ready when it is spawned would reset
    /// at each start.
    OnReady,
    /// Resets when the child acknowledges a message, and its mailbox has no
    /// message left that failed before.
    OnAck,
    /// Halves the number of counted failures with each `half_life` for which the child was active.
    Decay {
        /// The time after which half of the failures are forgotten.
        half_life: Duration,
    },
}
