//! The clock of a guard, which also counts the time for which the machine was suspended.
//!
//! A store counts on while a machine that holds one of its leases is suspended. The clock of tokio doesn't, on
//! Linux and macOS. Linux reports how long the machine was suspended; elsewhere, this clock is the one of tokio.

use std::time::{Duration, Instant};

use crate::clock::{later, now};

/// An instant, and how long the machine had been suspended by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeaseInstant {
    at: Instant,
    suspended: Duration,
}

impl LeaseInstant {
    /// `awake` is an instant of tokio's clock.
    pub(super) fn new(awake: Instant, suspended: Duration) -> Self {
        Self { at: later(awake, suspended), suspended }
    }

    /// Returns the instant, counted with the time for which the machine was suspended.
    pub(super) fn at(self) -> Instant {
        self.at
    }

    /// Returns the time that has passed since `earlier`.
    pub(super) fn since(self, earlier: Self) -> Duration {
        self.at.saturating_duration_since(earlier.at)
    }

    /// Returns for how much of the time since `earlier` the machine was suspended.
    pub(super) fn suspended_since(self, earlier: Self) -> Duration {
        self.suspended.saturating_sub(earlier.suspended)
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct LeaseClock {
    source: SuspendedTime,
    /// What the source reported when the last suspend was noticed.
    known: Duration,
    /// How long the machine was suspended since this clock was made.
    suspended: Duration,
}

/// The shortest suspend. Smaller differences come from readings that aren't exact: see [`boot_offset`].
const SHORTEST: Duration = Duration::from_millis(10);

impl LeaseClock {
    pub(super) fn new(source: SuspendedTime) -> Self {
        Self { known: source.read(), source, suspended: Duration::ZERO }
    }

    pub(super) fn now(&mut self) -> LeaseInstant {
        let read = self.source.read();
        let more = read.saturating_sub(self.known);
        if more >= SHORTEST {
            self.known = read;
            self.suspended += more;
        }
        LeaseInstant::new(now(), self.suspended)
    }
}

/// Reports for how long the machine was suspended in all.
#[derive(Clone, Debug, Default)]
pub(crate) enum SuspendedTime {
    /// The time that the kernel reports.
    #[default]
    Kernel,
    /// A time that a test has set.
    #[cfg(test)]
    Given(std::sync::Arc<crate::sync::Mutex<Duration>>),
}

impl SuspendedTime {
    fn read(&self) -> Duration {
        match self {
            Self::Kernel => boot_offset(),
            #[cfg(test)]
            Self::Given(given) => *given.lock(),
        }
    }
}

/// Returns by how much the clock that goes on in a suspend is ahead of the one that stops.
///
/// The kernel reads one clock at a time. The task may be preempted between the two, and then the result is too low,
/// but it is never too high. Therefore the highest of three results is used.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn boot_offset() -> Duration {
    use rustix::time::{ClockId, Timespec};

    #[expect(clippy::disallowed_methods, reason = "only their difference is used, not the time")]
    fn read(clock: ClockId) -> Duration {
        let Timespec { tv_sec, tv_nsec } = rustix::time::clock_gettime(clock);
        let secs = u64::try_from(tv_sec).unwrap_or_default();
        Duration::new(secs, u32::try_from(tv_nsec).unwrap_or_default())
    }

    let difference = |_| {
        let boot = read(ClockId::Boottime);
        boot.saturating_sub(read(ClockId::Monotonic))
    };
    (0..3).map(difference).max().unwrap_or_default()
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn boot_offset() -> Duration {
    Duration::ZERO
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::sync::Mutex;

    #[tokio::test(start_paused = true)]
    async fn the_time_of_a_suspend_is_added_once() {
        let given = Arc::new(Mutex::new(Duration::from_secs(3_600)));
        let mut clock = LeaseClock::new(SuspendedTime::Given(Arc::clone(&given)));
        let began = clock.now();
        assert_eq!(began.at(), now(), "a suspend before the clock was made doesn't count");

        tokio::time::advance(Duration::from_secs(1)).await;
        *given.lock() += Duration::from_secs(20);
        for _ in 0..2 {
            let now = clock.now();
            assert_eq!(now.since(began), Duration::from_secs(21));
            assert_eq!(now.suspended_since(began), Duration::from_secs(20));
        }
        *given.lock() += Duration::from_secs(2);
        assert_eq!(clock.now().suspended_since(began), Duration::from_secs(22));
    }

    #[tokio::test(start_paused = true)]
    async fn an_inexact_reading_is_no_suspend() {
        let given = Arc::new(Mutex::new(Duration::from_secs(1)));
        let mut clock = LeaseClock::new(SuspendedTime::Given(Arc::clone(&given)));
        let began = clock.now();
        for nanos in [9_999_999, 0, 5_000_000, 9_999_999] {
            *given.lock() = Duration::new(1, nanos);
            assert_eq!(clock.now(), began);
        }
        // Many small errors don't add up.
        *given.lock() = Duration::from_millis(1_010);
        assert_eq!(clock.now().suspended_since(began), Duration::from_millis(10));
        // A reading that was too low is followed by a right one.
        *given.lock() = Duration::from_millis(900);
        assert_eq!(clock.now().suspended_since(began), Duration::from_millis(10));
        *given.lock() = Duration::from_millis(1_010);
        assert_eq!(clock.now().suspended_since(began), Duration::from_millis(10));
    }

    #[tokio::test(start_paused = true)]
    async fn the_kernel_reports_no_suspend_while_a_test_runs() {
        let mut clock = LeaseClock::new(SuspendedTime::Kernel);
        let began = clock.now();
        for _ in 0..1_000 {
            assert_eq!(clock.now(), began);
        }
    }
}
