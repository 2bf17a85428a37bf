//! The run-time limit: an incarnation that is Active for longer has failed.
//!
//! # Invariants
//!
//! 1. An Active child with a limit has a separate timer for it, beside the timer of its watchdog, unless the limit has
//!    passed while the supervisor ends.

use std::time::{Duration, Instant};

use crate::clock::later;
use crate::core::{ChildState, Children, Key, StepCx, Timer};
use crate::exit::ExitReason;

impl Children {
    fn run_time_limit(&self, key: Key) -> Option<Duration> {
        self.entries.get(key)?.rules.run_time_limit
    }

    /// Sets the deadline of a child that is Active since this instant, or removes it.
    pub(super) fn arm_run_time_limit(&mut self, key: Key, since: Instant) {
        match self.run_time_limit(key) {
            Some(limit) => self.timers.arm(Timer::RunTime(key), later(since, limit)),
            None => self.timers.disarm(Timer::RunTime(key)),
        }
    }

    /// The limit of a child is over.
    pub(in crate::core) fn on_run_time_over(&mut self, key: Key, cx: &mut StepCx<'_>) {
        if let (Some(ChildState::Active), Some(limit)) = (self.state(key), self.run_time_limit(key))
        {
            self.fail_running(key, ExitReason::TimedOut(limit), false, cx);
        }
    }
}
