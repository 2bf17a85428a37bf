//! The children of an ordered supervisor, in their start order.
//!
//! Knows which child is at which position, and not what happens to it.

use super::{Key, Position};
use std::collections::BTreeMap;

/// See the [module](self).
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct StartOrder(BTreeMap<Position, Key>);

impl StartOrder {
    /// Adds a child behind all others.
    pub(super) fn push(&mut self, pos: Position, key: Key) {
        debug_assert!(self.0.last_key_value().is_none_or(|(&last, _)| last < pos));
        self.0.insert(pos, key);
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
