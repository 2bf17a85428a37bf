//! When a backoff begins again at its first wait.

use std::time::Duration;

/// What lets a child's backoff begin again, and its failures in a row count from zero again.
///
/// For how long a child was active is reckoned from when it was ready to when it ended, and looked
/// at when it fails, and when somebody looks at the status of the child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reset {
    /// Nothing does, not even [`report_healthy`](crate::Context::report_healthy). Not together with
    /// another.
    Never,
    /// Only [`report_healthy`](crate::Context::report_healthy) does, as it does in addition to
    /// everything below. Pekko's manual reset.
    ByHand,
    /// That it was active for at least this long.
    ActiveFor(Duration),
    /// That it became ready. For children that say so themselves: one that is ready as soon as it
    /// is started begins again each time.
    OnReady,
    /// That it [acknowledged](crate::Delivery::ack) a message, and its mailbox has none left that has
    /// failed before.
    OnAck,
    /// Time: what has been counted halves with each `half_life` for which it was active.
    Decay {
        /// The time after which half is left.
        half_life: Duration,
    },
}
