//! How long a lease lasts, and when its guard acts.

use std::time::Duration;

use crate::policy::Jitter;

/// The times of a lease.
///
/// | | default | |
/// | --- | --- | --- |
/// | [`ttl`](Self::ttl) | 15 s | after the last request that the store has received, the lease expires |
/// | [`renew_deadline`](Self::renew_deadline) | 10 s | after the last request that was answered with *yes*, the child is cancelled |
/// | [`retry`](Self::retry) | 2 s | from one request to renew to the next |
/// | [`poll`](Self::poll) | 500 ms | from one request of a standby to the next; twice as long after each that has failed, up to 10 s |
/// | [`jitter`](Self::jitter) | 0.2 | up to this fraction of them is added to `retry` and `poll`, at random |
///
/// All count from before the request was sent. Between the renew deadline and the expiry, the child has its grace
/// to end: it is aborted before the lease expires.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LeaseTimes {
    pub(crate) ttl: Duration,
    pub(crate) renew_deadline: Duration,
    pub(crate) retry: Duration,
    pub(crate) poll: Duration,
    pub(crate) jitter: f64,
}

impl Default for LeaseTimes {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
            poll: Duration::from_millis(500),
            jitter: 0.2,
        }
    }
}

/// How many requests that aren't answered fit into the renew deadline.
const UNANSWERED: u32 = 3;

impl LeaseTimes {
    /// Returns the time from the renew deadline to the expiry, in which the child has to end.
    pub(crate) fn grace(&self) -> Duration {
        self.ttl.saturating_sub(self.renew_deadline)
    }

    /// Returns how long an answer is waited for, in whole milliseconds.
    ///
    /// A grant that is answered in time can still be renewed before the deadline, and a request to renew that is
    /// never answered leaves time for others.
    pub(super) fn request_timeout(&self) -> Duration {
        let timeout = self.renew_deadline / UNANSWERED;
        timeout - Duration::from_nanos(u64::from(timeout.subsec_nanos() % 1_000_000))
    }

    /// Returns the time from one request to renew to the next.
    pub(super) fn next_retry(&self, random: &mut fastrand::Rng) -> Duration {
        Jitter::Additive(self.jitter).apply(self.retry, random)
    }

    /// Returns the time from one request of a standby to the next.
    pub(super) fn next_poll(&self, random: &mut fastrand::Rng) -> Duration {
        Jitter::Additive(self.jitter).apply(self.poll, random)
    }

    /// Returns the same time after so many requests in a row that have failed: twice as long after each but the first,
    /// up to `slowest`.
    pub(super) fn next_poll_of_failing(
        &self,
        failed: u32,
        slowest: Duration,
        random: &mut fastrand::Rng,
    ) -> Duration {
        let doubled = 2_u32
            .checked_pow(failed.saturating_sub(1))
            .and_then(|times| self.poll.checked_mul(times));
        let poll = doubled.unwrap_or(slowest).min(slowest.max(self.poll));
        Jitter::Additive(self.jitter).apply(poll, random)
    }

    /// Checks the values.
    ///
    /// # Errors
    ///
    /// [`LeaseProblem`] names the first value that is invalid.
    pub(crate) fn check(&self) -> Result<(), LeaseProblem> {
        let Self { ttl, renew_deadline, retry, poll, jitter } = *self;
        // Each with a part of the lease, as by default.
        let of = if ttl.is_zero() { Self::default().ttl } else { ttl };
        let times = [
            ("ttl", ttl, of),
            ("renew_deadline", renew_deadline, of.saturating_mul(2) / 3),
            ("retry", retry, of.saturating_mul(2) / 15),
            ("poll", poll, of / 30),
        ];
        if let Some((option, _, example)) = times.into_iter().find(|(_, time, _)| time.is_zero()) {
            return Err(LeaseProblem::Zero { option, example });
        }
        // Not the opposite comparison, which is false for NaN as well.
        if !(0.0..=1.0).contains(&jitter) {
            return Err(LeaseProblem::Jitter { jitter: jitter.to_string() });
        }
        if renew_deadline >= ttl {
            return Err(LeaseProblem::RenewDeadline { renew_deadline, ttl, example: ttl * 2 / 3 });
        }
        let (_, longest) = Jitter::Additive(jitter).bounds(retry);
        if longest >= renew_deadline {
            return Err(LeaseProblem::Retry {
                retry,
                longest,
                renew_deadline,
                example: renew_deadline / 5,
            });
        }
        Ok(())
    }
}

/// An invalid value of a [`Lease`](super::Lease).
///
/// `BuildError` contains its text:
///
/// ```
/// use verger::lease::Lease;
/// use verger::{BuildError, Context, Supervisor, worker};
///
/// # #[cfg(feature = "testing")] {
/// # use verger::testing::MemoryLeases;
/// # let leases = MemoryLeases::new();
/// let billing = worker("billing", async |ctx: Context| ctx.cancelled().await);
/// let billing = billing.lease(Lease::new("billing", leases).advertise("10.0.0.7 8080"));
/// let error = Supervisor::builder("app").child(billing).build().unwrap_err();
///
/// let BuildError::BadLease { problem, .. } = error else { panic!("{error}") };
/// assert!(problem.ends_with("write one such as `10.0.0.7:8080`"), "{problem}");
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseProblem {
    /// The name is empty, so every lease without a name would be the same one.
    #[error("the name of the lease is empty; write a name such as `billing`")]
    NoName,
    /// The address can't be read from the name of the holder.
    #[error(
        "the address `{address}` of the lease is empty or contains a space; write one such as `10.0.0.7:8080`"
    )]
    Address {
        /// The value that was set.
        address: String,
    },
    /// A job makes up for missed runs, and its engine can't store when the last run was.
    #[error(
        "`Missed::OnceWithin` needs to know the last run of any process, which the engine `{engine}` of the lease \
         `{lease}` can't store; use an engine that stores memos, or write `Missed::Skip`"
    )]
    NoMemo {
        /// The engine, as `Debug` writes it.
        engine: String,
        /// The name of the lease.
        lease: String,
    },
    /// A time is zero.
    #[error("the `{option}` of the lease is zero; write a duration such as `{example:?}`")]
    Zero {
        /// The time: `ttl`, `renew_deadline`, `retry` or `poll`.
        option: &'static str,
        /// A valid value.
        example: Duration,
    },
    /// The lease may have expired at its renew deadline, so the child would have no time to end.
    #[error(
        "the `renew_deadline` of the lease is {renew_deadline:?} and its `ttl` {ttl:?}, so the child would have no \
         time to end before the lease expires; write a deadline below the ttl, such as `{example:?}`"
    )]
    RenewDeadline {
        /// The value that was set.
        renew_deadline: Duration,
        /// How long the lease lasts.
        ttl: Duration,
        /// A valid value.
        example: Duration,
    },
    /// The first request to renew would be sent when the lease is lost already.
    #[error(
        "the `retry` of the lease is {retry:?}, which is up to {longest:?} with jitter, and its `renew_deadline` \
         {renew_deadline:?}, so the lease would be lost before it is renewed; write a shorter time, such as \
         `{example:?}`"
    )]
    Retry {
        /// The value that was set.
        retry: Duration,
        /// The longest time from one request to renew to the next.
        longest: Duration,
        /// How long after the last renewal the lease is lost.
        renew_deadline: Duration,
        /// A valid value.
        example: Duration,
    },
    /// The jitter is no fraction.
    #[error("the `jitter` of the lease is {jitter}; write a number from 0 to 1, such as 0.2")]
    Jitter {
        /// The value that was set.
        jitter: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: LeaseTimes = LeaseTimes {
        ttl: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        retry: Duration::from_secs(2),
        poll: Duration::from_millis(500),
        jitter: 0.2,
    };

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_third_of_the_lease_is_for_the_end_of_the_child() {
        assert_eq!(LeaseTimes::default(), DEFAULT);
        assert_eq!(DEFAULT.grace(), Duration::from_secs(5));
        assert_eq!(DEFAULT.check(), Ok(()));
    }

    #[test]
    fn an_invalid_time_is_named_with_one_that_fits() {
        let text = |times: LeaseTimes| times.check().unwrap_err().to_string();
        let zero = Duration::ZERO;
        for (times, expected) in [
            (
                LeaseTimes { ttl: zero, ..DEFAULT },
                "ttl` of the lease is zero; write a duration such as `15s`",
            ),
            (
                LeaseTimes { renew_deadline: zero, ..DEFAULT },
                "renew_deadline` of the lease is zero; write a duration such as `10s`",
            ),
            (
                LeaseTimes { retry: zero, ..DEFAULT },
                "retry` of the lease is zero; write a duration such as `2s`",
            ),
            (
                LeaseTimes { poll: zero, ..DEFAULT },
                "poll` of the lease is zero; write a duration such as `500ms`",
            ),
        ] {
            assert_eq!(text(times), format!("the `{expected}"));
        }
        assert_eq!(
            text(LeaseTimes { ttl: millis(9_000), ..DEFAULT }),
            "the `renew_deadline` of the lease is 10s and its `ttl` 9s, so the child would have no time to end before \
             the lease expires; write a deadline below the ttl, such as `6s`"
        );
        assert_eq!(
            text(LeaseTimes { retry: millis(9_000), ..DEFAULT }),
            "the `retry` of the lease is 9s, which is up to 10.8s with jitter, and its `renew_deadline` 10s, so the \
             lease would be lost before it is renewed; write a shorter time, such as `2s`"
        );
        assert_eq!(
            text(LeaseTimes { jitter: f64::NAN, ..DEFAULT }),
            "the `jitter` of the lease is NaN; write a number from 0 to 1, such as 0.2"
        );
    }

    #[test]
    fn the_bounds_of_the_times_are_exact() {
        let second = millis(1_000);
        let table = [
            (LeaseTimes { ttl: millis(10_001), ..DEFAULT }, true),
            (LeaseTimes { ttl: millis(10_000), ..DEFAULT }, false),
            (LeaseTimes { retry: 8 * second, ..DEFAULT }, true),
            (LeaseTimes { retry: millis(9_999), jitter: 0.0, ..DEFAULT }, true),
            (LeaseTimes { retry: 10 * second, jitter: 0.0, ..DEFAULT }, false),
            (LeaseTimes { retry: 5 * second, jitter: 1.0, ..DEFAULT }, false),
            (LeaseTimes { poll: 60 * second, ..DEFAULT }, true),
            (LeaseTimes { jitter: -0.1, ..DEFAULT }, false),
            (LeaseTimes { jitter: 1.1, ..DEFAULT }, false),
            (LeaseTimes { retry: Duration::MAX, ..DEFAULT }, false),
            (LeaseTimes { ttl: Duration::MAX, ..DEFAULT }, true),
        ];
        for (times, is_valid) in table {
            assert_eq!(times.check().is_ok(), is_valid, "{times:?}");
        }
    }

    proptest::proptest! {
        #![proptest_config(crate::random_cases::cases(64))]

        #[test]
        fn jitter_adds_up_to_a_fraction(seed: u64) {
            let random = &mut fastrand::Rng::with_seed(seed);
            let (retry, poll) = (DEFAULT.next_retry(random), DEFAULT.next_poll(random));
            proptest::prop_assert!((millis(2_000)..=millis(2_400)).contains(&retry), "{retry:?}");
            proptest::prop_assert!((millis(500)..=millis(600)).contains(&poll), "{poll:?}");
        }
    }
}
