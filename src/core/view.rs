//! What can be seen of the children from outside.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::IncarnationNumber;
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::policy::{ChildRules, Intensity, RestartPolicy};

/// The state of one child.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) rules: Arc<ChildRules>,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) incarnation: IncarnationNumber,
    /// Whether nothing more is expected of the child than what it does.
    pub(crate) settled: bool,
    /// When the child was added.
    pub(crate) created: Instant,
    /// When the current or last incarnation was started.
    pub(crate) started: Option<Instant>,
    /// When the child entered this lifecycle state.
    pub(crate) since: Instant,
    /// Why the child is in this state, where its lifecycle alone does not tell.
    pub(crate) why: Option<&'static str>,
    /// Whether a caller keeps the child from being started.
    pub(crate) held: bool,
    /// Whether the failure callback is deciding on the child.
    pub(crate) undecided: bool,
    /// The restart policy that the current or last incarnation has set for itself.
    pub(crate) policy: Option<Arc<RestartPolicy>>,
    pub(crate) history: Option<FailureSummary>,
    /// The child's own limit, and how many restarts count for it.
    pub(crate) limit: Option<(Intensity, usize)>,
}

/// How an incarnation ended.
#[derive(Clone, Debug)]
pub(crate) struct PastExit {
    pub(crate) reason: Arc<ExitReason>,
    pub(crate) incarnation: IncarnationNumber,
    pub(crate) at: Instant,
    /// How long the child had been Active, if it was.
    pub(crate) lived: Option<Duration>,
}

/// The failures of one child so far.
#[derive(Clone, Debug)]
pub(crate) struct FailureSummary {
    /// Failures in a row: from 1 while one is waited out, 0 once the child is healthy.
    pub(crate) attempt: u32,
    /// When the next attempt is due, and the delay that was drawn for it.
    pub(crate) next: Option<(Instant, Duration)>,
    pub(crate) last: Option<PastExit>,
}

/// How many children a supervisor has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChildCounts {
    pub(crate) by_lifecycle: [u32; 8],
    pub(crate) supervisors: u32,
}

impl ChildCounts {
    pub(crate) fn specs(&self) -> u32 {
        self.by_lifecycle.iter().sum()
    }

    pub(crate) fn of(&self, lifecycle: Lifecycle) -> u32 {
        self.by_lifecycle[lifecycle as usize]
    }

    pub(super) fn add(&mut self, rules: &ChildRules) {
        self.by_lifecycle[Lifecycle::Discovered as usize] += 1;
        self.supervisors += u32::from(rules.is_supervisor());
    }

    pub(super) fn remove(&mut self, rules: &ChildRules, last: Lifecycle) {
        self.by_lifecycle[last as usize] -= 1;
        self.supervisors -= u32::from(rules.is_supervisor());
    }

    /// A fallback replaces a child.
    pub(super) fn replaced(&mut self, old: &ChildRules, new: &ChildRules) {
        self.supervisors += u32::from(new.is_supervisor());
        self.supervisors -= u32::from(old.is_supervisor());
    }

    pub(super) fn moved(&mut self, from: Lifecycle, to: Lifecycle) {
        self.by_lifecycle[from as usize] -= 1;
        self.by_lifecycle[to as usize] += 1;
    }
}
