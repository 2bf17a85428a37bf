//! Throttling of the log of dead letters.

use std::time::{Duration, Instant};

/// How many dead letters are logged before a pause in the log.
///
/// By default the first ten are logged, each with a running count, and the tenth announces a pause of
/// five minutes. The first letter after the pause is logged with the total and with the number of
/// letters that weren't logged, and the count starts again. This is Akka's rule: a mailbox that isn't
/// read doesn't flood the log, and isn't forgotten either.
///
/// ```
/// use std::time::Duration;
/// use verger::dead_letter::DeadLetterLog;
/// use verger::Supervisor;
///
/// let log = DeadLetterLog::default().first(100).pause(Duration::from_secs(30));
/// let builder = Supervisor::builder("app").dead_letter_log(log);
/// # drop(builder);
/// ```
///
/// In a file it is `"off"`, `"every"`, or a table such as `{ first = 100, pause = "30s" }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadLetterLog(pub(super) Logged);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Logged {
    Off,
    Every,
    Some { first: u32, pause: Duration },
}

impl DeadLetterLog {
    pub(super) const FIRST: u32 = 10;
    pub(super) const PAUSE: Duration = Duration::from_secs(5 * 60);

    /// Logs no dead letter.
    #[must_use]
    pub const fn off() -> Self {
        Self(Logged::Off)
    }

    /// Logs every dead letter, with a running count.
    #[must_use]
    pub const fn every() -> Self {
        Self(Logged::Every)
    }

    /// Sets how many letters are logged before a pause. Default: 10.
    ///
    /// With 0, only the summary after each pause is logged.
    #[must_use]
    pub const fn first(self, first: u32) -> Self {
        Self(Logged::Some { first, pause: self.some().1 })
    }

    /// Sets the length of the pause. Default: 5 min.
    ///
    /// With [`Duration::MAX`] it never ends.
    #[must_use]
    pub const fn pause(self, pause: Duration) -> Self {
        Self(Logged::Some { first: self.some().0, pause })
    }

    const fn some(self) -> (u32, Duration) {
        match self.0 {
            Logged::Some { first, pause } => (first, pause),
            Logged::Off | Logged::Every => (Self::FIRST, Self::PAUSE),
        }
    }
}

/// Logs the first ten, then pauses for five minutes.
impl Default for DeadLetterLog {
    fn default() -> Self {
        Self(Logged::Some { first: Self::FIRST, pause: Self::PAUSE })
    }
}

/// The log line for a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LetterLine {
    /// The number of letters so far.
    Counted { count: u64 },
    /// The number of letters so far, and the length of the pause that begins.
    Last { count: u64, pause: Duration },
    /// The pause is over: the number of letters, and how many of them weren't logged.
    Resumed { total: u64, unlogged: u64 },
}

/// Counts dead letters and decides which are logged. The restarts of a child that never waits are counted in
/// the same way.
#[derive(Debug)]
pub(crate) struct Throttle {
    log: DeadLetterLog,
    /// Letters since the count started.
    total: u64,
    pause: Option<CurrentPause>,
}

impl LetterLine {
    /// Returns what a line about a child says of the lines that are left out.
    pub(crate) const fn note(self) -> &'static str {
        match self {
            Self::Counted { .. } => "",
            Self::Last { .. } => "; no more are logged for a while",
            Self::Resumed { .. } => "; some before were not logged",
        }
    }
}

#[derive(Debug)]
struct CurrentPause {
    since: Instant,
    unlogged: u64,
}

impl Throttle {
    pub(crate) fn new(log: DeadLetterLog) -> Self {
        Self { log, total: 0, pause: None }
    }

    /// Whether letters are counted and not logged now.
    pub(crate) const fn is_paused(&self) -> bool {
        self.pause.is_some()
    }

    /// Returns the log line for a letter that arrives at `now`.
    pub(crate) fn letter(&mut self, now: Instant) -> Option<LetterLine> {
        let (first, pause) = match self.log.0 {
            Logged::Off => return None,
            Logged::Every => (u64::MAX, Duration::ZERO),
            Logged::Some { first, pause } => (u64::from(first), pause),
        };
        self.total = self.total.saturating_add(1);
        let count = self.total;
        match &mut self.pause {
            // The pause ends exactly after its length.
            Some(current) if now.saturating_duration_since(current.since) >= pause => {
                let unlogged = current.unlogged;
                *self = Self::new(self.log);
                Some(LetterLine::Resumed { total: count, unlogged })
            }
            Some(current) => {
                current.unlogged = current.unlogged.saturating_add(1);
                None
            }
            None if count < first => Some(LetterLine::Counted { count }),
            None => {
                let last = count == first;
                self.pause = Some(CurrentPause { since: now, unlogged: u64::from(!last) });
                last.then_some(LetterLine::Last { count, pause })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::LetterLine::{Counted, Last, Resumed};
    use super::*;

    const PAUSE: Duration = Duration::from_secs(2);
    const TICK: Duration = Duration::from_nanos(1);

    fn throttle() -> Throttle {
        Throttle::new(DeadLetterLog::default().first(4).pause(PAUSE))
    }

    #[test]
    fn kin_134_a_pause_follows_the_first_letters_and_ends_with_a_summary() {
        let (mut throttle, now) = (throttle(), Instant::now());
        for count in 1..=3 {
            assert_eq!(throttle.letter(now), Some(Counted { count }));
        }
        assert_eq!(throttle.letter(now + PAUSE), Some(Last { count: 4, pause: PAUSE }));
        // The pause begins with the line that announces it, and is over at its last instant.
        let end = now + PAUSE + PAUSE;
        assert_eq!(throttle.letter(now + PAUSE), None, "the fifth");
        assert_eq!(throttle.letter(end - TICK), None, "the sixth");
        assert_eq!(throttle.letter(end), Some(Resumed { total: 7, unlogged: 2 }));
        assert_eq!(throttle.letter(end), Some(Counted { count: 1 }), "the eighth");
        for count in 2..=3 {
            assert_eq!(throttle.letter(end), Some(Counted { count }));
        }
        assert_eq!(throttle.letter(end), Some(Last { count: 4, pause: PAUSE }));
    }

    #[test]
    fn an_empty_pause_also_ends_with_a_summary() {
        let (mut throttle, now) = (throttle(), Instant::now());
        for _ in 0..4 {
            throttle.letter(now);
        }
        let late = now + Duration::from_secs(3600);
        assert_eq!(throttle.letter(late), Some(Resumed { total: 5, unlogged: 0 }));
    }

    #[test]
    fn the_default_is_ten_letters_and_five_minutes() {
        let (mut throttle, now) = (Throttle::new(DeadLetterLog::default()), Instant::now());
        for count in 1..=9 {
            assert_eq!(throttle.letter(now), Some(Counted { count }));
        }
        let pause = Duration::from_secs(300);
        assert_eq!(throttle.letter(now), Some(Last { count: 10, pause }));
        assert_eq!(throttle.letter(now + pause - TICK), None);
        assert_eq!(throttle.letter(now + pause), Some(Resumed { total: 12, unlogged: 1 }));
    }

    #[test]
    fn off_every_and_summaries_only() {
        let now = Instant::now();
        let mut off = Throttle::new(DeadLetterLog::off());
        assert_eq!(off.letter(now), None);
        let mut every = Throttle::new(DeadLetterLog::every());
        for count in 1..=100 {
            assert_eq!(every.letter(now), Some(Counted { count }));
        }
        let mut sums = Throttle::new(DeadLetterLog::default().first(0).pause(PAUSE));
        assert_eq!([sums.letter(now), sums.letter(now)], [None, None]);
        assert_eq!(sums.letter(now + PAUSE), Some(Resumed { total: 3, unlogged: 2 }));
        assert_eq!(sums.letter(now + PAUSE), None);
        let mut never = Throttle::new(DeadLetterLog::default().first(1).pause(Duration::MAX));
        assert_eq!(never.letter(now), Some(Last { count: 1, pause: Duration::MAX }));
        assert_eq!(never.letter(now + Duration::from_secs(u32::MAX.into())), None);
    }

    #[test]
    fn the_order_of_the_setters_does_not_matter() {
        let log = DeadLetterLog::default().first(3).pause(PAUSE);
        assert_eq!(DeadLetterLog::default().pause(PAUSE).first(3), log);
        assert_eq!(DeadLetterLog::off().pause(PAUSE).first(3), log);
        assert_eq!(DeadLetterLog::off().pause(PAUSE), DeadLetterLog::default().pause(PAUSE));
    }

    proptest! {
        #![proptest_config(crate::random_cases::cases(64))]

        /// Between two summaries, the lines and the unlogged letters add up to all letters.
        #[test]
        fn every_letter_is_logged_or_counted(
            first in 0_u32..6,
            waits in vec(0_u64..4000, 1..200),
        ) {
            let mut throttle = Throttle::new(DeadLetterLog::default().first(first).pause(PAUSE));
            let (mut now, mut letters, mut lines) = (Instant::now(), 0, 0);
            for wait in waits {
                now += Duration::from_millis(wait);
                letters += 1;
                let line = throttle.letter(now);
                lines += u64::from(line.is_some());
                match line {
                    Some(Counted { count } | Last { count, .. }) => prop_assert_eq!(count, letters),
                    Some(Resumed { total, unlogged }) => {
                        prop_assert_eq!((total, unlogged), (letters, letters - lines));
                        (letters, lines) = (0, 0);
                    }
                    None => prop_assert!(letters > u64::from(first)),
                }
            }
        }
    }
}
