//! The number of the lease with which a child runs.

use std::fmt;

/// A number that grows with every grant of a lease.
///
/// A lease can't stop a process that is paused, with its holder inside: it goes on where it was, after the lease has
/// been granted to the next holder. A resource that compares tokens can refuse it. Send the token with each write, keep
/// the highest one beside the data, and refuse writes with a lower one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(u64);

impl FencingToken {
    /// Creates a token with this number. Only engines do.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
