//! What becomes of a child that is said to be healthy or unhealthy.
//!
//! It is told, and nothing else happens, unless its spec says that an unhealthy child has failed.
//! Only who is active is well or not: whoever waits, stops or has ended is not asked about, and what
//! is said of him comes too late. How often a check may fail was counted before.

use std::sync::Arc;

use super::children::Children;
use super::state::State;
use super::{Effect, Key, Turn};

impl Children {
    /// Tells it, if it is news. Returns whether the child has failed with it.
    pub(super) fn checked(
        &mut self,
        key: Key,
        problem: Option<Arc<str>>,
        turn: &mut Turn<'_>,
    ) -> bool {
        let slot = self.slot(key);
        if slot.state != State::Active {
            return false;
        }
        let incarnation = slot.incarnation;
        let fails = slot.options.fails_unhealthy && problem.is_some();
        turn.push(Effect::Health { key, incarnation, problem });
        fails
    }
}
