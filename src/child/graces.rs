//! The graces that were set explicitly below a supervisor, added up.

use std::time::Duration;

/// How long children may take to stop, as far as their graces were set explicitly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExplicitGraces {
    /// All of them, one after the other as far as children stop so.
    pub(crate) sum: Duration,
    /// The longest single one.
    pub(crate) longest: Duration,
}

impl ExplicitGraces {
    pub(crate) fn of(grace: Duration) -> Self {
        Self { sum: grace, longest: grace }
    }

    /// Adds children that stop before or after these.
    pub(crate) fn then(self, other: Self) -> Self {
        let (sum, longest) = (self.sum.saturating_add(other.sum), self.longest.max(other.longest));
        Self { sum, longest }
    }

    /// Adds children that stop at the same time.
    pub(crate) fn beside(self, other: Self) -> Self {
        Self { sum: self.sum.max(other.sum), longest: self.longest.max(other.longest) }
    }
}
