//! The watchdog: an Active child that sends no heartbeat has hung.
//!
//! A heartbeat is no event. The child notes when it sent the last one, and the driver looks for that
//! only when the child's deadline is due.
//!
//! # Invariants
//!
//! 1. An Active child with a watchdog has a timer, unless the driver has yet to report its last heartbeat,
//!    or the supervisor ends.
//! 2. A tick that comes late shows that the whole runtime was late. It counts as a heartbeat of each child
//!    whose watchdog is short enough for that to matter: see [`Stall`].

use std::time::{Duration, Instant};

use crate::clock::later;
use crate::core::{ChildState, Children, ConditionEffect, Effect, Key, StepCx, Timer};
use crate::exit::ExitReason;

/// A tick that is later than this is not explained by a busy machine.
pub(super) const LATE: Duration = Duration::from_secs(1);

/// A stall matters to a child whose watchdog is shorter than this many times its length.
const MATTERS: u32 = 4;

/// The runtime was late. It matters to a child if it took more than a quarter of the child's interval.
#[derive(Clone, Copy, Debug)]
pub(in crate::core) struct Stall {
    /// The instant of the last late tick.
    pub(in crate::core) end: Instant,
    /// How late the latest tick was.
    pub(in crate::core) late: Duration,
    /// Whether the log says that it has spared a child.
    pub(in crate::core) reported: bool,
}

impl Stall {
    /// When every child that it matters to has had its whole interval again.
    pub(in crate::core) fn spent(&self) -> Instant {
        later(self.end, self.late.saturating_mul(MATTERS))
    }

    fn matters_to(&self, interval: Duration) -> bool {
        self.late > interval / MATTERS
    }
}

impl Children {
    /// Notes that a deadline is handled so `late` that the runtime was.
    pub(super) fn note_stall(&mut self, due: Instant, late: Duration, now: Instant) {
        // A shorter stall prolongs one that still matters.
        let unspent = self.stall.filter(|stall| now < stall.spent());
        self.stall = Some(Stall {
            end: now,
            late: unspent.map_or(late, |stall| stall.late.max(late)),
            // The deadlines that one stall has delayed may need several ticks.
            reported: self.stall.is_some_and(|stall| stall.reported && due <= stall.end),
        });
    }

    /// Sets the deadline of an Active child, measured from now, or removes it.
    pub(super) fn arm_watchdog(&mut self, key: Key, now: Instant) {
        match self.entry(key).rules.watchdog {
            Some(interval) => self.timers.arm(Timer::Child(key), later(now, interval)),
            None => self.timers.disarm(Timer::Child(key)),
        }
    }

    /// The deadline of an Active child is due.
    pub(in crate::core) fn check_heartbeat(&mut self, key: Key, cx: &mut StepCx<'_>) {
        let incarnation = self.entry(key).incarnation;
        cx.push(Effect::Condition(ConditionEffect::CheckHeartbeat { key, incarnation }));
    }

    /// The child sent its `last` heartbeat then, if it sent one. It has hung, or gets its next deadline.
    pub(super) fn on_heartbeat(&mut self, key: Key, last: Option<Instant>, cx: &mut StepCx<'_>) {
        let entry = self.entries.get(key).expect("the child that has answered");
        let watched = entry.rules.watchdog;
        let Some(interval) = watched.filter(|_| entry.state == ChildState::Active) else { return };
        let heard = last.map_or(entry.since, |last| last.max(entry.since));
        let mut at = later(heard, interval);
        if at <= cx.now
            && let Some(stall) = self.stall.as_mut().filter(|it| it.matters_to(interval))
        {
            at = later(stall.end, interval);
            if at > cx.now && !std::mem::replace(&mut stall.reported, true) {
                cx.push(Effect::Condition(ConditionEffect::RuntimeLate { late: stall.late }));
            }
        }
        if at > cx.now {
            self.timers.arm(Timer::Child(key), at);
        } else {
            self.fail_running(key, ExitReason::Hung(interval), false, cx);
        }
    }
}
