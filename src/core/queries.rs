//! What the driver reads from a machine. Nothing here changes one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{
    ChildAnswer, ChildCounts, ChildState, Key, Machine, RequirementId, StopReason, View, each,
};
use crate::lifecycle::Lifecycle;
use crate::policy::{ChildRules, Shutdown};

impl Machine {
    /// Returns when the next [`MachineEvent::Tick`] is due. An instant in the past is due at once.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        each!(self, kind => kind.more).or_else(|| self.children().timers.next())
    }

    /// Checks whether a child may be added now.
    ///
    /// # Errors
    ///
    /// The answer to the caller, if not.
    pub(crate) fn admits(&self) -> Result<(), ChildAnswer> {
        match self {
            _ if self.is_ending() => Err(ChildAnswer::ShuttingDown),
            Self::Ordered(_) => Ok(()),
            Self::Dynamic(dynamic) => dynamic.admits(),
        }
    }

    /// Returns the key of the child that is declared next.
    pub(crate) fn next_key(&self) -> Key {
        self.children().entries.next_key()
    }

    /// Whether an operation on several children runs, such as a group restart.
    pub(crate) fn has_group(&self) -> bool {
        matches!(self, Self::Ordered(ordered) if ordered.group.is_some())
    }

    /// Returns a chain from one of `keys` to a child that requires `id`, if there is one. Each child
    /// of the chain requires the next.
    pub(crate) fn chain_to(&self, id: RequirementId, keys: &[Key]) -> Option<Vec<Key>> {
        self.children().requirements.chain_to(id, keys)
    }

    /// Returns the rules of a child.
    pub(crate) fn rules_of(&self, key: Key) -> Option<&Arc<ChildRules>> {
        self.children().entries.get(key).map(|entry| &entry.rules)
    }

    /// Whether the child is a supervisor.
    pub(crate) fn is_supervisor(&self, key: Key) -> bool {
        self.rules_of(key).is_some_and(|rules| rules.is_supervisor())
    }

    /// Whether the child is aborted without a grace whenever it is stopped.
    pub(crate) fn is_brutally_killed(&self, key: Key) -> bool {
        self.rules_of(key).is_some_and(|rules| rules.shutdown == Shutdown::BrutalKill)
    }

    pub(crate) fn view(&self, key: Key, now: Instant) -> Option<View> {
        let mut view = self.children().view(key, now)?;
        if let Self::Ordered(ordered) = self
            && let Some(moved) = ordered.group_deadline(key)
            && let Some((at, _)) = view.history.as_mut().and_then(|history| history.next.as_mut())
        {
            *at = moved;
        }
        Some(view)
    }

    /// Whether the child provides what its siblings require of it.
    pub(crate) fn is_met(&self, key: Key) -> bool {
        self.children().state(key).is_some_and(ChildState::is_met)
    }

    /// Whether the child runs, or will without a request of a caller, so that its messages need not be
    /// dead letters.
    ///
    /// `false` if the supervisor ends. A child that is about to end, or is being decided on, is taken
    /// to come back.
    pub(crate) fn returns(&self, key: Key) -> bool {
        !self.is_ending() && each!(self, kind => kind.comes_back(key))
    }

    /// Whether the child is down until a message comes for it, and no message waits.
    pub(crate) fn awaits_message(&self, key: Key) -> bool {
        !self.is_ending() && self.children().awaits_message(key)
    }

    /// The child whose end an ordered stop waits for, or the child that it comes to next if that one is
    /// down already. The stop is that of the supervisor, or of a group that restarts.
    pub(crate) fn stops_now(&self) -> Option<Key> {
        match self {
            Self::Ordered(ordered) => ordered.stops_now(),
            // All children stop at once.
            Self::Dynamic(_) => None,
        }
    }

    /// The worker that is cancelled when this child is down. The child is the one that
    /// [stops now](Self::stops_now), or comes after it in the same way.
    ///
    /// The answer stays valid, whatever else happens, until `stops_now` is `None` or all children are
    /// aborted.
    pub(crate) fn stops_after(&self, key: Key) -> Option<Key> {
        match self {
            Self::Ordered(ordered) => ordered.stops_after(key),
            Self::Dynamic(_) => None,
        }
    }

    /// Whether the child has failed and is stopped because of that.
    pub(crate) fn is_failing(&self, key: Key) -> bool {
        let state = self.children().state(key);
        matches!(state, Some(ChildState::Stopping { why: StopReason::Failing { .. }, .. }))
    }

    /// Returns the first child at or behind a place in the start order, and the place behind it.
    ///
    /// Places are numbered from 0. A child keeps its place when other children are removed.
    pub(crate) fn next(&self, place: u64) -> Option<(Key, u64)> {
        each!(self, kind => kind.next(place))
    }

    /// Returns how many active children the supervisor lacks until it is ready.
    pub(crate) fn lacks_active(&self) -> u32 {
        let children = self.children();
        children.rules.min_ready.saturating_sub(children.counts.of(Lifecycle::Active))
    }

    pub(crate) fn counts(&self) -> ChildCounts {
        self.children().counts
    }

    /// Returns how many restarts count at `now`, how many may, and within which period.
    pub(crate) fn intensity(&self, now: Instant) -> (usize, Option<u32>, Duration) {
        self.children().intensity(now)
    }

    /// The same for the limit that is the first to end this child: its own, if it has one.
    pub(crate) fn intensity_of(&self, key: Key, now: Instant) -> (usize, Option<u32>, Duration) {
        match self.children().own_intensity(key, now) {
            Some((limit, used)) => (used, Some(limit.max()), limit.period()),
            None => self.intensity(now),
        }
    }
}
