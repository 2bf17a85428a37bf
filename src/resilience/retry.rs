//! Retries a single call.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::time::Duration;

use tokio::task::coop::consume_budget;

use crate::policy::{Backoff, BackoffProblem, Delays, Jitter, Random};

/// The number of attempts unless it is set.
const ATTEMPTS: u32 = 3;

/// The policy of [`retry`]: how often, after what delay and after which results the call is repeated.
///
/// `T` is the value that the call returns, `E` its error. [`new`](Self::new) is a policy with delays of
/// its own, and [`with`](Self::with) is one with the delays of a [`Backoff`]. An invalid value, such as
/// zero attempts, is an error of [`retry`], which then makes no call.
///
/// ```
/// use std::time::Duration;
///
/// use verger::resilience::{Retry, RetryError, retry};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// // Waits 200 ms, 400 ms, 800 ms, 1 s, and 1 s.
/// let policy = Retry::new()
///     .attempts(6)
///     .delay(Duration::from_millis(200))
///     .factor(2.0)
///     .max_delay(Duration::from_secs(1));
/// let result = retry(policy, async || Err::<(), _>("busy")).await;
/// assert_eq!(result, Err(RetryError::Failed("busy")));
/// # }
/// ```
#[must_use = "a policy does nothing until it is given to `retry`"]
pub struct Retry<T, E> {
    attempts: u32,
    delays: RetryDelays,
    random: Option<Box<dyn Random>>,
    again_if: Option<Box<AgainIf<E>>>,
    accept_if: Option<Box<AcceptIf<T>>>,
    retry_after: Option<Box<DelayOfError<E>>>,
    on_failure: Option<Box<OnFailure<E>>>,
}

/// The delays between attempts.
#[derive(Debug)]
enum RetryDelays {
    Own(OwnDelays),
    Backoff {
        backoff: Backoff,
        /// An option of a policy without a backoff that was set as well, kept for the error.
        stray: Option<&'static str>,
    },
}

/// `delay`, multiplied by `factor` after each attempt, up to `max`.
#[derive(Debug)]
struct OwnDelays {
    delay: Duration,
    factor: f64,
    max: Duration,
}

type AgainIf<E> = dyn Fn(&E, u32) -> bool + Send + Sync;
type DelayOfError<E> = dyn Fn(&E, u32) -> Option<Duration> + Send + Sync;
type AcceptIf<T> = dyn Fn(&T) -> bool + Send + Sync;
type OnFailure<E> = dyn FnMut(FailedAttempt<'_, E>) + Send;

/// An attempt that failed.
struct FailedAttempt<'a, E> {
    error: &'a E,
    attempt: u32,
    wait: Option<Duration>,
}

impl<T, E> Retry<T, E> {
    /// Returns a policy that makes up to three attempts without a delay between them.
    pub fn new() -> Self {
        let own = OwnDelays { delay: Duration::ZERO, factor: 1.0, max: Duration::MAX };
        Self::of(RetryDelays::Own(own))
    }

    /// Returns a policy that makes up to three attempts with the delays of `backoff` between them.
    ///
    /// A backoff that ends also ends the attempts. [`delay`](Self::delay), [`factor`](Self::factor) and
    /// [`max_delay`](Self::max_delay) are errors beside a backoff.
    pub fn with(backoff: Backoff) -> Self {
        Self::of(RetryDelays::Backoff { backoff, stray: None })
    }

    fn of(delays: RetryDelays) -> Self {
        Self {
            attempts: ATTEMPTS,
            delays,
            random: None,
            again_if: None,
            accept_if: None,
            retry_after: None,
            on_failure: None,
        }
    }

    /// Sets how often the call is made, including the first attempt. At least 1. Default: 3.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// Sets the delay after the first attempt. Default: none.
    ///
    /// There is no delay after the last attempt.
    pub fn delay(self, delay: Duration) -> Self {
        self.set("delay", |own| own.delay = delay)
    }

    /// Sets the factor by which each delay is longer than the one before. At least 1. Default: 1.
    pub fn factor(self, factor: f64) -> Self {
        self.set("factor", |own| own.factor = factor)
    }

    /// Sets the longest delay. Default: no limit.
    pub fn max_delay(self, max: Duration) -> Self {
        self.set("max_delay", |own| own.max = max)
    }

    fn set(mut self, option: &'static str, set: impl FnOnce(&mut OwnDelays)) -> Self {
        match &mut self.delays {
            RetryDelays::Own(own) => set(own),
            RetryDelays::Backoff { stray, .. } => *stray = Some(option),
        }
        self
    }

    /// Checks the values, and returns the delays.
    fn check(&mut self) -> Result<Delays, RetryProblem> {
        if self.attempts == 0 {
            return Err(RetryProblem::NoAttempts);
        }
        let backoff = match &self.delays {
            RetryDelays::Backoff { stray: Some(option), .. } => {
                return Err(RetryProblem::BesideBackoff { option });
            }
            RetryDelays::Backoff { backoff, .. } => {
                backoff.check()?;
                backoff.clone()
            }
            RetryDelays::Own(OwnDelays { factor, .. })
                if !(factor.is_finite() && *factor >= 1.0) =>
            {
                return Err(RetryProblem::BadFactor { factor: factor.to_string() });
            }
            RetryDelays::Own(OwnDelays { delay, max, .. }) if max < delay => {
                return Err(RetryProblem::MaxBelowDelay { delay: *delay, max: *max });
            }
            RetryDelays::Own(own) if own.delay.is_zero() => Backoff::none(),
            // The documented delays are exact.
            RetryDelays::Own(own) => {
                let backoff = Backoff::exponential(own.delay, own.max).factor(own.factor);
                backoff.jitter(Jitter::None)
            }
        };
        let delays = backoff.delays();
        Ok(match self.random.take() {
            Some(mut random) => delays.random(move || random.unit()),
            None => delays,
        })
    }

    /// Sets the source of the random numbers for jitter. Default: one with a fresh seed.
    pub fn random(mut self, random: impl Random + 'static) -> Self {
        self.random = Some(Box::new(random));
        self
    }

    /// Retries only errors for which `again_if` returns `true`. Default: all errors.
    ///
    /// It is called with the error and the number of the attempt, from 1.
    pub fn again_if(mut self, again_if: impl Fn(&E, u32) -> bool + Send + Sync + 'static) -> Self {
        self.again_if = Some(Box::new(again_if));
        self
    }

    /// Also retries values for which `accept_if` returns `false`. Default: none.
    ///
    /// If there are no more attempts, the value is returned.
    pub fn accept_if(mut self, accept_if: impl Fn(&T) -> bool + Send + Sync + 'static) -> Self {
        self.accept_if = Some(Box::new(accept_if));
        self
    }

    /// Takes the delay before the next attempt from the error, such as a server's `Retry-After`.
    ///
    /// `delay` is called with the error and the number of the attempt, from 1. If it returns `None`,
    /// the policy sets the delay.
    ///
    /// A delay from the error is used as it is, without jitter or bounds. The attempt counts as
    /// usual. The policy's delays don't advance, so a later attempt without such a delay continues
    /// where they were.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use verger::resilience::Retry;
    ///
    /// struct TooManyRequests {
    ///     retry_after: Option<Duration>,
    /// }
    ///
    /// let policy = Retry::<(), TooManyRequests>::new()
    ///     .attempts(5)
    ///     .retry_after(|error, _attempt| error.retry_after);
    /// # drop(policy);
    /// ```
    pub fn retry_after(
        mut self,
        delay: impl Fn(&E, u32) -> Option<Duration> + Send + Sync + 'static,
    ) -> Self {
        self.retry_after = Some(Box::new(delay));
        self
    }

    /// Calls `on_failure` after each attempt that returned an error, including the last.
    ///
    /// Its arguments are the error, the number of the attempt, from 1, and the delay before the next
    /// attempt, which is `None` if there is no next attempt.
    pub fn on_failure(
        mut self,
        mut on_failure: impl FnMut(&E, u32, Option<Duration>) + Send + 'static,
    ) -> Self {
        self.on_failure = Some(Box::new(move |FailedAttempt { error, attempt, wait }| {
            on_failure(error, attempt, wait);
        }));
        self
    }
}

/// Makes a call, and repeats it until it succeeds or the policy ends the attempts.
///
/// Use it for single calls. A task that runs as long as the program belongs under a supervisor.
///
/// ```
/// use std::time::Duration;
///
/// use verger::resilience::{Retry, retry};
/// use verger::Backoff;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let backoff = Backoff::exponential(Duration::from_millis(200), Duration::from_secs(5));
/// let mut calls = 0;
/// let answer = retry(Retry::with(backoff).attempts(6), || {
///     calls += 1;
///     let works = calls == 3;
///     async move { if works { Ok("at last") } else { Err("not yet") } }
/// });
/// assert_eq!(answer.await, Ok("at last"));
/// # }
/// ```
///
/// # Errors
///
/// Returns [`RetryError::Failed`] with the error of the last attempt, or [`RetryError::Policy`] if the
/// policy has an invalid value. No call is made then.
///
/// # Panics
///
/// A panic of the call is passed on, and is not retried.
///
/// # Cancel safety
///
/// If the future is dropped, the current attempt is dropped with it, and no further one is made.
pub async fn retry<T, E, F, Fut>(mut policy: Retry<T, E>, mut call: F) -> Result<T, RetryError<E>>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    consume_budget().await;
    let mut delays = policy.check().map_err(RetryError::Policy)?;
    for attempt in 1.. {
        let result = call().await;
        let more = attempt < policy.attempts;
        let again = more
            && match &result {
                Ok(value) => policy.accept_if.as_ref().is_some_and(|accept| !accept(value)),
                Err(error) => policy.again_if.as_ref().is_none_or(|again| again(error, attempt)),
            };
        let delay = || policy.retry_after.as_ref()?(result.as_ref().err()?, attempt);
        let wait = if again { delay().or_else(|| delays.next()) } else { None };
        if let (Err(error), Some(on_failure)) = (&result, &mut policy.on_failure) {
            on_failure(FailedAttempt { error, attempt, wait });
        }
        match wait {
            None => return result.map_err(RetryError::Failed),
            // A zero delay needs no timer, but still yields to other tasks.
            Some(Duration::ZERO) => tokio::task::yield_now().await,
            Some(wait) => tokio::time::sleep(wait).await,
        }
    }
    unreachable!("the attempts are counted")
}

/// Makes up to three attempts without a delay between them.
impl<T, E> Default for Retry<T, E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, E> fmt::Debug for Retry<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry")
            .field("attempts", &self.attempts)
            .field("delays", &self.delays)
            .finish_non_exhaustive()
    }
}

/// The error of [`retry`].
///
/// [`Failed`](Self::Failed) displays as the error that it contains. It also returns that error as its
/// [`source`](Error::source), so that code that searches an error chain by type finds it.
///
/// The example of [`Retry`] compares one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RetryError<E> {
    /// The policy has an invalid value, and no call was made.
    Policy(RetryProblem),
    /// The last attempt returned this error.
    Failed(E),
}

impl<E: fmt::Display> fmt::Display for RetryError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(problem) => write!(f, "the retry cannot work: {problem}"),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

impl<E: Error + 'static> Error for RetryError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Policy(problem) => Some(problem),
            Self::Failed(error) => Some(error),
        }
    }
}

/// The reason why a [`Retry`] is invalid, with what to write instead.
///
/// ```
/// use verger::resilience::{Retry, RetryError, RetryProblem, retry};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let result = retry(Retry::new().attempts(0), async || Err::<(), _>("busy")).await;
/// assert_eq!(result, Err(RetryError::Policy(RetryProblem::NoAttempts)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RetryProblem {
    /// There is no attempt, so there would be no result.
    #[error("`attempts` is 0; write `attempts(1)` or more, which includes the first call")]
    NoAttempts,
    /// The factor is below 1, infinite or NaN.
    #[error("`factor` is {factor}; write a number of at least 1.0, such as 2.0")]
    BadFactor {
        /// The value that was set.
        factor: String,
    },
    /// The longest delay is shorter than the first.
    #[error("`max_delay` is {max:?} and `delay` is {delay:?}; write at least {delay:?}")]
    MaxBelowDelay {
        /// The first delay.
        delay: Duration,
        /// The value that was set.
        max: Duration,
    },
    /// An option for the delays is set beside a backoff, which has its own.
    #[error("`{option}` is set beside a backoff; remove it, or begin with `Retry::new()`")]
    BesideBackoff {
        /// The option.
        option: &'static str,
    },
    /// The backoff has an invalid value.
    #[error("{0}")]
    BadBackoff(#[from] BackoffProblem),
}
