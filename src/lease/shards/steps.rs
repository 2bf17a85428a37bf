//! What a member decides, and what it is told.

use std::time::{Duration, Instant};

/// The times of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    /// The longest time between two requests is twice this one, and the shortest a fifth of it.
    pub(super) poll: Duration,
    /// How long the members have to be unchanged before shards are handed over.
    pub(super) calm: Duration,
}

impl Times {
    /// Returns how long the members have to be unchanged before a new member claims its first shards.
    pub(super) fn settle(self) -> Duration {
        self.calm.min(4 * self.poll)
    }

    /// Returns the shortest time from one request to the next.
    pub(super) fn shortest(self) -> Duration {
        self.poll / 5
    }
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Request the lease of this slot, to keep it.
    Join(usize),
    /// Look who has the lease of this slot.
    Look(usize),
    /// Look who has the lease of this shard.
    Find(usize),
    /// Start the shard, as soon as its lease is granted.
    Claim(usize),
    /// Take back a claim that hasn't been granted.
    Withdraw(usize),
    /// Stop the shard, and release its lease.
    Drain(usize),
    /// Wait until this instant, or for a report.
    Wait(Instant),
    /// Wait for a report.
    Rest,
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// This member has the lease: it keeps it, or is about to release it.
    Mine,
    /// Nobody has the lease.
    Free,
    /// Another member has the lease.
    Taken,
    Unknown,
}
