//! Positions on the curve of a backoff, and the iterators of curves that are iterators.
//!
//! # Invariants
//!
//! 1. A position is two plain values, so a copy of it continues the curve as the original does. The iterator
//!    isn't part of it: a new one skips to the position.

use std::sync::Arc;
use std::time::Duration;

use super::curve::{Factory, Waits};
use crate::panic::{Foreign, catch_panic};

/// The position of one child on the curve of its backoff.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CurvePosition {
    /// The index of the next delay.
    pub(super) index: u32,
    /// The delay that was drawn last.
    pub(super) previous: Option<Duration>,
}

impl CurvePosition {
    /// Resets to the first delay.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    #[cfg(test)]
    pub(crate) fn index(self) -> u32 {
        self.index
    }

    /// Halves the index `times` times.
    pub(crate) fn halve(&mut self, times: u32) {
        self.index = self.index.checked_shr(times).unwrap_or(0);
        self.previous = None;
    }

    /// Moves behind this delay.
    pub(crate) fn advance(&mut self, drawn: Duration) {
        self.previous = Some(drawn);
        self.index = self.index.saturating_add(1);
    }
}

/// The rest of a backoff's iterator, after some delays.
#[derive(Default)]
pub(crate) struct RunningIterator(Option<IteratorRest>);

struct IteratorRest {
    factory: Foreign<Factory>,
    taken: u32,
    rest: Box<Waits>,
}

impl RunningIterator {
    /// Whether there is no iterator.
    pub(crate) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the delay of the iterator at `index`; `None` if it has ended or panicked.
    pub(super) fn at(&mut self, index: u32, factory: &Foreign<Factory>) -> Option<Duration> {
        // The child may have a different backoff by now, or may have moved back on the curve.
        let continues = |it: &IteratorRest| {
            it.taken == index && Arc::ptr_eq(it.factory.shared(), factory.shared())
        };
        let left = self.0.take().filter(continues).map(|it| it.rest);
        let next = || match left {
            Some(mut rest) => rest.next().map(|wait| (wait, rest)),
            None => {
                let mut rest = factory();
                let skipped = usize::try_from(index).unwrap_or(usize::MAX);
                rest.nth(skipped).map(|wait| (wait, rest))
            }
        };
        let (wait, rest) = catch_panic(next)??;
        let factory = factory.clone();
        self.0 = Some(IteratorRest { factory, taken: index.saturating_add(1), rest });
        Some(wait)
    }
}
