//! What becomes of a child that is said to be healthy or unhealthy.
//!
//! It is told, and nothing else happens, unless its spec says that an unhealthy child has failed.
//! Only who is active is well or not: whoever waits, stops or has ended is not asked about, and what
//! is said of him comes too late. How often a check may fail was counted before.

use std::sync::Arc;

use super::children::Children;
use super::kind::Kind;
use super::state::State;
use super::{Effect, Key, Turn};
use crate::exit::ExitReason;

impl Children {
    /// Tells it, if it is news. Returns whether the child has failed with it.
    fn checked(&mut self, key: Key, problem: Option<Arc<str>>, turn: &mut Turn<'_>) -> bool {
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

/// A check has come to something else than those before it.
pub(super) fn checked<K: Kind + ?Sized>(
    kind: &mut K,
    key: Key,
    problem: Option<Arc<str>>,
    turn: &mut Turn<'_>,
) {
    let fails = kind.children_mut().checked(key, problem.clone(), turn);
    // Who ends anyway need not fail before.
    if let Some(problem) = problem.filter(|_| fails && !kind.is_finishing()) {
        let reason = ExitReason::Unhealthy(problem.to_string());
        kind.children_mut().fail_running(key, reason, false, turn);
    }
}
