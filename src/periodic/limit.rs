//! The limit of one run: when it is cancelled, and when it is dropped.
//!
//! Knows no task and no timer: the time is an argument.
//!
//! # Invariants
//!
//! 1. The run is cancelled once, when its limit is reached.
//! 2. From its cancellation on the run has the whole grace of its child, even if the limit was noticed late. Without a
//!    grace it is dropped immediately, and with an infinite one never.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::panic::catch_panic;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct RunLimit {
    /// Cancelled at the limit, and with the child.
    token: CancellationToken,
    /// When the run is over its limit.
    at: Instant,
    /// The grace of the child. `None` if it is infinite.
    grace: Option<Duration>,
    state: State,
}

#[derive(Debug)]
enum State {
    Within,
    /// The run was cancelled. It is dropped at this instant.
    Over(Option<Instant>),
}

/// What to do with a run now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LimitStep {
    WaitUntil(Instant),
    /// Wait until the run has ended, without a bound.
    WaitForEnd,
    /// The run was just cancelled: poll it, so that it can react.
    Poll,
    Drop,
}

impl RunLimit {
    pub(super) fn new(token: CancellationToken, at: Instant, grace: Option<Duration>) -> Self {
        Self { token, at, grace, state: State::Within }
    }

    /// Whether the run is over its limit, and so has failed.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Over(_))
    }

    /// Returns what to do now. Cancels the run if its limit is reached.
    pub(super) fn step(&mut self, now: Instant) -> LimitStep {
        match self.state {
            State::Within if now < self.at => LimitStep::WaitUntil(self.at),
            State::Within => {
                let drop_at = self.grace.and_then(|grace| now.checked_add(grace));
                self.state = State::Over(drop_at);
                if drop_at == Some(now) {
                    return LimitStep::Drop;
                }
                // The wakers may be a user's.
                catch_panic(|| self.token.cancel());
                LimitStep::Poll
            }
            State::Over(Some(at)) if at <= now => LimitStep::Drop,
            State::Over(Some(at)) => LimitStep::WaitUntil(at),
            State::Over(None) => LimitStep::WaitForEnd,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn limited(grace: Option<Duration>) -> (RunLimit, CancellationToken, Instant) {
        let (token, now) = (CancellationToken::new(), crate::clock::now());
        (RunLimit::new(token.clone(), now + 5 * SECOND, grace), token, now)
    }

    #[test]
    fn a_run_is_cancelled_at_its_limit_and_dropped_when_the_grace_is_over() {
        let (mut limit, token, now) = limited(Some(2 * SECOND));
        assert_eq!(limit.step(now), LimitStep::WaitUntil(now + 5 * SECOND));
        assert!(!limit.is_over() && !token.is_cancelled());
        assert_eq!(limit.step(now + 5 * SECOND), LimitStep::Poll);
        assert!(limit.is_over() && token.is_cancelled());
        assert_eq!(limit.step(now + 6 * SECOND), LimitStep::WaitUntil(now + 7 * SECOND));
        assert_eq!(limit.step(now + 7 * SECOND), LimitStep::Drop);
    }

    #[test]
    fn a_run_whose_limit_is_noticed_late_has_the_whole_grace() {
        let (mut limit, _token, now) = limited(Some(2 * SECOND));
        assert_eq!(limit.step(now + 60 * SECOND), LimitStep::Poll);
        assert_eq!(limit.step(now + 60 * SECOND), LimitStep::WaitUntil(now + 62 * SECOND));
    }

    #[test]
    fn without_a_grace_a_run_is_dropped_immediately_and_with_an_infinite_one_never() {
        let (mut limit, token, now) = limited(Some(Duration::ZERO));
        assert_eq!(limit.step(now + 5 * SECOND), LimitStep::Drop);
        assert!(!token.is_cancelled());
        let (mut limit, _token, now) = limited(None);
        assert_eq!(limit.step(now + 5 * SECOND), LimitStep::Poll);
        assert_eq!(limit.step(now + 1_000_000 * SECOND), LimitStep::WaitForEnd);
    }
}
