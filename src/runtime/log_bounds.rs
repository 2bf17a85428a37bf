//! How many log lines about one child are logged a minute.
//!
//! A child that fails again and again, or a group that restarts with it, would flood the log. The counts belong to
//! the tree and not to a supervisor, because a supervisor that is restarted would start to count again.
//!
//! # Invariants
//!
//! 1. Of one kind of lines about one declared path, at most ten are logged within a minute that begins with the first. Then
//!    none are for five minutes. The children of a dynamic supervisor with one name share the count.
//! 2. The last line before a pause says that none follow for a while, and the first one after it that some were
//!    left out, unless it comes an hour later.
//! 3. A child that is gone leaves no count for longer than that, beyond a number that doesn't grow.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::clock::now;
use crate::path::Path;
use crate::policy::{DeadLetterLog, LetterLine, Throttle};
use crate::sync::Mutex;

/// The time in which lines are counted.
const WITHIN: Duration = Duration::from_secs(60);

/// After this time, a count is removed also if its pause was never ended by a line: the child is gone.
const FORGOTTEN: Duration = Duration::from_secs(3_600);

/// How many counts are kept before those that are over are removed.
const KEPT: usize = 1_024;

/// What a line says about its child.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LineKind {
    Restarting,
    Active,
    /// Any decision but a restart.
    Decided,
    Undecided,
    Unhealthy,
    Healthy,
    Standby,
    LeaseUnknown,
    LeaseGranted,
    LeaseLost,
    Killed,
    Leaked,
    LeakEnded,
    DeactivateFailed,
    Panicked,
    Run {
        has_failed: bool,
    },
    RuntimeLate,
    /// It waits for a service that is provided elsewhere.
    OutOfScope,
    ShuttingDown,
    Stopped,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct LogBounds(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    counts: HashMap<(Path, LineKind), Count>,
    /// The length of `counts` after the last removal.
    left: usize,
}

#[derive(Debug)]
struct Count {
    since: Instant,
    throttle: Throttle,
}

impl Count {
    fn new(now: Instant) -> Self {
        Self { since: now, throttle: Throttle::new(DeadLetterLog::default()) }
    }

    /// Whether the next line begins a new count.
    fn is_over(&self, now: Instant) -> bool {
        !self.throttle.is_paused() && now.saturating_duration_since(self.since) >= WITHIN
    }

    /// Whether the count may be removed. A pause is kept for as long as a line may soon end it.
    fn is_forgotten(&self, now: Instant) -> bool {
        self.is_over(now) || now.saturating_duration_since(self.since) >= FORGOTTEN
    }
}

impl LogBounds {
    /// Counts a line. Returns how it is logged, or `None` if it isn't.
    pub(crate) fn count(&self, path: &Path, kind: LineKind) -> Option<LetterLine> {
        let now = now();
        let Counts { counts, left } = &mut *self.0.lock();
        let count = counts.entry((path.without_serials(), kind)).or_insert_with(|| Count::new(now));
        if count.is_over(now) {
            *count = Count::new(now);
        }
        let line = count.throttle.letter(now);
        if counts.len() > KEPT.max(2 * *left) {
            counts.retain(|_, count| !count.is_forgotten(now));
            *left = counts.len();
        }
        line
    }
}

#[cfg(all(test, not(verger_loom)))]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ten_lines_of_a_kind_a_minute_are_logged_and_then_none_for_five() {
        let (bounds, [a, b]) = (LogBounds::default(), ["a", "b"].map(Path::root));
        let logged = |path, kind| (0..100).filter(|_| bounds.count(path, kind).is_some()).count();
        assert_eq!(logged(&a, LineKind::Restarting), 10);
        assert_eq!(logged(&a, LineKind::Active), 10, "of another kind");
        assert_eq!(logged(&b, LineKind::Active), 10, "of another child");
        advance(Duration::from_secs(299)).await;
        assert_eq!(logged(&a, LineKind::Active), 0);
        advance(Duration::from_secs(1)).await;
        let resumed = LetterLine::Resumed { total: 201, unlogged: 190 };
        assert_eq!(bounds.count(&a, LineKind::Active), Some(resumed));
        assert_eq!(logged(&a, LineKind::Active), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn nine_lines_a_minute_are_always_logged() {
        let (bounds, a) = (LogBounds::default(), Path::root("a"));
        for minute in 0..10 {
            for count in 1..=9 {
                let line = bounds.count(&a, LineKind::Restarting);
                assert_eq!(line, Some(LetterLine::Counted { count }), "{minute}");
            }
            advance(WITHIN).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn counts_that_are_over_are_removed_and_pauses_are_kept() {
        let (bounds, paused) = (LogBounds::default(), Path::root("paused"));
        for _ in 0..20 {
            bounds.count(&paused, LineKind::Active);
        }
        for round in 0..10 {
            for n in 0..KEPT {
                bounds.count(&Path::root(&format!("{round}-{n}")), LineKind::Active);
            }
            advance(WITHIN / 3).await;
        }
        let counts = bounds.0.lock().counts.len();
        assert!(counts <= 6 * KEPT, "{counts}");
        assert_eq!(bounds.count(&paused, LineKind::Active), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_that_no_line_ends_is_removed_in_the_end() {
        let bounds = LogBounds::default();
        for round in 0..10 {
            for n in 0..KEPT {
                let path = Path::root(&format!("{round}-{n}"));
                for _ in 0..11 {
                    bounds.count(&path, LineKind::Active);
                }
            }
            advance(FORGOTTEN).await;
        }
        let counts = bounds.0.lock().counts.len();
        assert!(counts <= 3 * KEPT, "{counts}");
    }
}
