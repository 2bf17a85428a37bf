//! How long a stop of what is below a supervisor may take, as far as that was set explicitly.

use std::time::Duration;

/// How long children may take to stop, as far as their graces were set explicitly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExplicitGraces {
    /// All of them, one after the other as far as children stop so.
    pub(crate) sum: Duration,
    /// The longest single one.
    pub(crate) longest: Duration,
    /// The longest `leak_timeout`, which all supervisors wait for at once after an abort.
    pub(crate) leak_timeout: Duration,
}

impl ExplicitGraces {
    pub(crate) fn of(grace: Duration) -> Self {
        Self { sum: grace, longest: grace, leak_timeout: Duration::ZERO }
    }

    /// Adds children that stop before or after these.
    pub(crate) fn then(self, other: Self) -> Self {
        Self { sum: self.sum.saturating_add(other.sum), ..self.beside(other) }
    }

    /// Adds children that stop at the same time.
    pub(crate) fn beside(self, other: Self) -> Self {
        Self {
            sum: self.sum.max(other.sum),
            longest: self.longest.max(other.longest),
            leak_timeout: self.leak_timeout.max(other.leak_timeout),
        }
    }
}
