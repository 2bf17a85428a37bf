//! The start order of children, and the state of a group operation: the one operation that concerns several children in order.
//!
//! First start, group restart, parking and shutdown are the same walk over a range of the start
//! order. It stops the range from its end, waits, and starts the range from its beginning. What
//! differs is where the range begins and what comes [`After`] it is down. The walk itself is in
//! [`super::ordered`].
//!
//! # Invariants
//!
//! 1. Within a phase the cursor never goes back, unless another operation merges with this one.

use std::collections::BTreeMap;
use std::time::Instant;

use super::{Finish, Key, Position};
use crate::policy::Start;

#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct GroupOp {
    /// The first child that is stopped.
    pub(super) from: Position,
    /// The first child that may be started. It lies before `from` while earlier children still
    /// start, and behind it if only a part of the stopped range restarts.
    pub(super) start_from: Position,
    pub(super) phase: GroupPhase,
    /// The range is not started before this instant.
    pub(super) until: Instant,
    /// The child whose delay the group waits for.
    pub(super) failed_child: Option<Key>,
    /// Set once the time for an ordered stop is over.
    pub(super) closing: Option<CloseScope>,
    pub(super) after: After,
}

/// Which children are cancelled at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum CloseScope {
    /// Those with the lowest stop order that is left.
    LowestOrder,
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupPhase {
    /// All children of the range from `cursor` on are down, and marked with whether they restart.
    /// Children that were added since are not part of the range.
    Stopping {
        cursor: Position,
        mode: StopMode,
    },
    Waiting,
    /// All children of the range before `cursor` have been passed.
    Starting {
        cursor: Position,
        mode: StartMode,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum StopMode {
    /// Each child is cancelled when the one behind it is down.
    Cancel,
    /// All children are cancelled at once, up to the first with a stop order above this one. The walk then
    /// begins again with [`Cancel`](Self::Cancel), to wait for them.
    CancelOrder(Option<i8>),
    /// All children are aborted at once.
    Abort,
    /// Running children are left alone.
    Skip,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum StartMode {
    /// Each child is started when the one before it is up.
    Sequential,
    /// All children are started at once.
    Concurrent,
    /// No child is started. The walk waits until each is up.
    AwaitAll,
}

/// What comes after the range is down.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(super) enum After {
    Restart,
    /// The range stays down. Its siblings go on.
    StayDown,
    /// The supervisor ends.
    Finish(Finish),
}

impl GroupOp {
    pub(super) fn first_start(start: Start, now: Instant) -> Self {
        let phase = GroupPhase::Starting { cursor: 0, mode: StartMode::of(start) };
        let after = After::Restart;
        let (failed_child, closing) = (None, None);
        Self { from: 0, start_from: 0, phase, until: now, failed_child, closing, after }
    }

    pub(super) fn is_finishing(&self) -> bool {
        matches!(self.after, After::Finish(_))
    }

    pub(super) fn is_starting(&self) -> bool {
        matches!(self.phase, GroupPhase::Starting { .. })
    }

    pub(super) fn is_stopping(&self) -> bool {
        matches!(self.phase, GroupPhase::Stopping { .. })
    }

    pub(super) fn restarts(&self) -> bool {
        matches!(self.after, After::Restart)
    }

    /// Whether the child at `pos` is yet to be stopped.
    pub(super) fn will_stop(&self, pos: Position) -> bool {
        let GroupPhase::Stopping { cursor, mode } = self.phase else { return false };
        pos >= self.from
            && match mode {
                StopMode::Cancel => pos < cursor,
                // The cursor passes children that still run.
                StopMode::CancelOrder(_) | StopMode::Abort => true,
                StopMode::Skip => false,
            }
    }

    /// The last child of the range before `to`.
    pub(super) fn last_before(&self, to: Position, order: &StartOrder) -> Option<(Position, Key)> {
        order.last_before(to).filter(|&(pos, _)| pos >= self.from)
    }
}

impl StartMode {
    pub(super) fn of(start: Start) -> Self {
        match start {
            Start::Sequential => Self::Sequential,
            Start::Concurrent => Self::Concurrent,
        }
    }
}

/// The children of an ordered supervisor, in their start order.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct StartOrder(BTreeMap<Position, Key>);

impl StartOrder {
    pub(super) fn insert(&mut self, pos: Position, key: Key) {
        let taken = self.0.insert(pos, key);
        debug_assert!(taken.is_none(), "two children have one place");
    }

    pub(super) fn is_free(&self, pos: Position) -> bool {
        !self.0.contains_key(&pos)
    }

    pub(super) fn remove(&mut self, pos: Position) {
        self.0.remove(&pos);
    }

    /// Returns the first child at or behind `pos`.
    pub(super) fn first_from(&self, pos: Position) -> Option<(Position, Key)> {
        self.0.range(pos..).next().map(|(&pos, &key)| (pos, key))
    }

    /// Returns the last child before `pos`.
    pub(super) fn last_before(&self, pos: Position) -> Option<(Position, Key)> {
        self.0.range(..pos).next_back().map(|(&pos, &key)| (pos, key))
    }

    #[cfg(test)]
    pub(super) fn positions(&self) -> impl Iterator<Item = Position> {
        self.0.keys().copied()
    }
}
