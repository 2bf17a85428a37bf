//! What a machine remembers of a child that has failed, and who waits for it.
//!
//! Boxed at the first failure or request: a child that just runs has no ledger.

use std::time::{Duration, Instant};

use super::{History, Ticket};
use crate::exit::ExitReason;
use crate::policy::{Backoff, Random};

/// The state of a child that is seldom needed.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Ledger {
    /// Failures since the child was last healthy: the index for the backoff's curve.
    pub(crate) streak: u32,
    /// How the last incarnation ended.
    pub(crate) last: Option<ExitReason>,
    /// When the next attempt is due, and the wait that was drawn for it.
    pub(crate) next: Option<(Instant, Duration)>,
    /// Whom to tell about what becomes of the child.
    pub(crate) waiting: Vec<(Ticket, Want)>,
}

/// What a caller waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Want {
    /// The first start of a child that was just added; it is forgotten if that fails.
    Started,
    /// The start of a stopped child; it stays stopped if that fails.
    StartedAgain,
    /// The new incarnation of a running child.
    Renewed,
    /// That the child is down.
    Down,
}

impl Ledger {
    /// Draws the wait before the next attempt.
    pub(crate) fn fail(&mut self, backoff: &Backoff, random: &mut dyn Random) -> Duration {
        let delay = backoff.delay(self.streak, random);
        self.streak = self.streak.saturating_add(1);
        delay
    }

    /// Whether a caller waits for a start that nobody but him is to hear the failure of.
    pub(crate) fn awaited_start(&self) -> Option<Want> {
        let mut wants = self.waiting.iter().map(|&(_, want)| want);
        wants.find(|want| matches!(want, Want::Started | Want::StartedAgain))
    }

    pub(crate) fn history(&self) -> History {
        History { attempt: self.streak, next: self.next, last: self.last.clone() }
    }
}
