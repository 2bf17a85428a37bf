//! Guards: values that an incarnation keeps until it is cancelled.

use std::any::Any;

use super::cell::{IncarnationCell, StopLevel};
use crate::panic::catch_panic;

/// Identifies a guard among those that a cell holds.
pub(crate) type GuardId = u64;

impl IncarnationCell {
    /// Keeps the guard until the level rises, and drops it then.
    ///
    /// Returns `None`, and drops the guard, if the level has risen already.
    pub(crate) fn hold(&self, guard: Box<dyn Any + Send>) -> Option<GuardId> {
        let mut locked = self.locked.lock();
        if self.level() > StopLevel::None {
            drop(locked);
            catch_panic(|| drop(guard));
            return None;
        }
        let guards = &mut locked.extras.get_or_insert_default().guards;
        let id = guards.last_key_value().map_or(0, |(last, _)| last + 1);
        guards.insert(id, guard);
        Some(id)
    }

    /// Returns a guard that is held.
    pub(crate) fn release(&self, id: GuardId) -> Option<Box<dyn Any + Send>> {
        self.locked.lock().extras.as_mut()?.guards.remove(&id)
    }
}
