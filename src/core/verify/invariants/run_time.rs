//! Run-time limits: which child has been active for too long.
//!
//! # Invariants
//!
//! 1. A child has a timer for its run time exactly while it is Active and has a limit: at the end of that. A supervisor
//!    that ends may have used it up.
//! 2. A child has timed out only at a tick, once its limit has passed, and if its supervisor does not end.

use std::time::Instant;

use super::{Invariants, Violation, ensure};
use crate::clock::later;
use crate::core::child::{ChildState, Timer};
use crate::core::{Key, Machine};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;

impl Invariants {
    /// Checks the timer of a child for its run time.
    pub(super) fn check_run_time(
        &self,
        machine: &Machine,
        key: Key,
        state: ChildState,
    ) -> Result<(), Violation> {
        let child = &self.children[&key];
        let limit = child.rules.run_time_limit;
        let end = limit.filter(|_| state == ChildState::Active).map(|it| later(child.since, it));
        let at = machine.children().timers.at(Timer::RunTime(key));
        let right = at == end || (at.is_none() && self.ending);
        ensure(right, format!("{} has a timer for its run time", self.name(key)))
    }

    pub(super) fn check_timed_out(
        &self,
        key: Key,
        reason: &ExitReason,
        now: Instant,
    ) -> Result<(), Violation> {
        let child = &self.children[&key];
        let ExitReason::TimedOut(limit) = *reason else { return Ok(()) };
        let is_over = later(child.since, limit) <= now;
        let is_own = child.rules.run_time_limit == Some(limit);
        let active = child.live && child.lifecycle == Lifecycle::Active;
        let right = is_over && is_own && active && !self.ending;
        ensure(right, "a child has timed out only if it was active for its limit")
    }
}
