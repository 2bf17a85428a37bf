//! Queues that change hands whole: what has come in is moved to whoever takes it.
//!
//! A [`Queue`] is for what most supervisors never have. It takes 8 bytes until something is put in,
//! instead of 32, and nobody has to look whether there is any room to be given back: that was a
//! hundred instructions for each supervisor that ends.

use std::collections::VecDeque;

/// Room for this many is not worth giving back.
pub(super) const SMALL: usize = 1024;

/// See the [module](self).
#[derive(Debug)]
#[expect(clippy::box_collection, reason = "most are never made")]
pub(crate) struct Queue<T>(Option<Box<VecDeque<T>>>);

impl<T> Queue<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|queue| queue.is_empty())
    }

    pub(super) fn front(&self) -> Option<&T> {
        self.0.as_ref()?.front()
    }

    pub(super) fn pop_front(&mut self) -> Option<T> {
        self.0.as_mut()?.pop_front()
    }

    pub(super) fn push_back(&mut self, item: T) {
        self.0.get_or_insert_default().push_back(item);
    }

    pub(super) fn move_behind(&mut self, to: &mut Self) {
        match (&mut self.0, &mut to.0) {
            (Some(from), Some(to)) => move_behind(from, to),
            (Some(_), None) => std::mem::swap(self, to),
            (None, _) => {}
        }
    }

    #[cfg(all(test, not(verger_loom)))]
    pub(super) fn clear(&mut self) {
        while self.pop_front().is_some() {}
    }

    #[cfg(all(test, not(verger_loom)))]
    pub(super) fn capacity(&self) -> usize {
        self.0.as_ref().map_or(0, |queue| queue.capacity())
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self(None)
    }
}

/// Moves what is in `from` behind what is in `to`, and keeps no room that only a storm needs.
pub(super) fn move_behind<T>(from: &mut VecDeque<T>, to: &mut VecDeque<T>) {
    if !to.is_empty() {
        return to.append(from);
    }
    std::mem::swap(from, to);
    if from.capacity() > 4 * to.len().max(SMALL) {
        *from = VecDeque::new();
    }
}
