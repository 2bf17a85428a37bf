//! Whether a loop makes progress, and which polls last long, decided from instants alone.

use std::time::{Duration, Instant};

use crate::path::Path;

/// Whether a loop makes progress.
pub(super) struct LoopProgress {
    bound: Duration,
    /// When the loop was asked for progress, later by the time that isn't measured.
    asked: Instant,
    stalled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    Stalled,
    Recovered {
        /// Since the loop was asked for progress.
        after: Duration,
    },
}

impl LoopProgress {
    pub(super) fn new(bound: Duration, now: Instant) -> Self {
        Self { bound, asked: now, stalled: false }
    }

    pub(super) fn is_stalled(&self) -> bool {
        self.stalled
    }

    /// Returns for how long the loop has made no progress.
    pub(super) fn waited(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.asked)
    }

    /// Notes at `now` whether the loop has answered since it was asked. The thread wanted to look at `due`.
    pub(super) fn observe(
        &mut self,
        answered: bool,
        due: Instant,
        now: Instant,
    ) -> Option<Finding> {
        self.asked += now.saturating_duration_since(due);
        let waited = self.waited(now);
        if answered {
            self.asked = now;
            let was_stalled = std::mem::take(&mut self.stalled);
            return was_stalled.then_some(Finding::Recovered { after: waited });
        }
        let is_new = !self.stalled && waited >= self.bound;
        self.stalled |= is_new;
        is_new.then_some(Finding::Stalled)
    }
}

/// How long a poll lasts until it is reported. The next report follows when it has lasted twice as long.
const LONG: Duration = Duration::from_secs(5);

/// The polls that haven't returned.
#[derive(Default)]
pub(super) struct LongPolls(Vec<Known>);

struct Known {
    child: Path,
    /// When it began, as the thread that polls it has noted.
    since: Instant,
    /// The time of it by which the watching thread was late.
    unmeasured: Duration,
    next: Duration,
}

/// A poll that is to be reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LongPoll {
    pub(super) lasted: Duration,
    pub(super) is_first: bool,
}

impl LongPolls {
    /// Notes which polls are running at `now`. The thread wanted to look at `due`. Returns for each whether it is to
    /// be reported.
    pub(super) fn observe(
        &mut self,
        polls: impl IntoIterator<Item = (Path, Instant)>,
        due: Instant,
        now: Instant,
    ) -> Vec<Option<LongPoll>> {
        let late = now.saturating_duration_since(due);
        let mut before = std::mem::take(&mut self.0);
        let mut reports = Vec::new();
        for (child, since) in polls {
            let found = before.iter().position(|it| it.since == since && it.child == child);
            let mut poll = match found {
                Some(at) => before.swap_remove(at),
                None => Known { child, since, unmeasured: Duration::ZERO, next: LONG },
            };
            if since < due {
                poll.unmeasured += late;
            }
            let lasted = now.saturating_duration_since(since).saturating_sub(poll.unmeasured);
            reports.push((lasted >= poll.next).then(|| {
                let is_first = poll.next == LONG;
                while poll.next <= lasted {
                    poll.next *= 2;
                }
                LongPoll { lasted, is_first }
            }));
            self.0.push(poll);
        }
        reports
    }
}
