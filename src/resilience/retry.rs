//! Retries a single call.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use crate::policy::{Backoff, Random};

/// The policy of [`retry`]: how often, after what delay and after which results the call is repeated.
///
/// `T` is the value that the call returns, `E` its error.
#[must_use = "a policy does nothing until it is given to `retry`"]
pub struct Retry<T, E> {
    attempts: u32,
    backoff: Backoff,
    random: Option<Box<dyn Random>>,
    again_if: Option<Box<AgainIf<E>>>,
    accept_if: Option<Box<AcceptIf<T>>>,
    retry_after: Option<Box<DelayOfError<E>>>,
    on_failure: Option<Box<OnFailure<E>>>,
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
    /// Returns a policy that makes the call up to `attempts` times, including the first one.
    ///
    /// The call is made at least once, so that there is a result to return. Attempts follow without
    /// a delay unless a [`backoff`](Self::backoff) is set.
    pub fn attempts(attempts: u32) -> Self {
        let attempts = attempts.max(1);
        Self {
            attempts,
            backoff: Backoff::none(),
            random: None,
            again_if: None,
            accept_if: None,
            retry_after: None,
            on_failure: None,
        }
    }

    /// Sets the delays between attempts. There is no delay after the last attempt.
    ///
    /// A backoff that ends also ends the attempts. Default: [`Backoff::none`].
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
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
    /// the [`backoff`](Self::backoff) sets the delay.
    ///
    /// A delay from the error is used as it is, without jitter or bounds. The attempt counts as
    /// usual. The backoff doesn't advance, so a later attempt without such a delay continues where
    /// the backoff was.
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
    /// let policy = Retry::<(), TooManyRequests>::attempts(5)
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
/// let answer = retry(Retry::attempts(6).backoff(backoff), || {
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
/// Returns the error of the last attempt, unchanged.
///
/// # Panics
///
/// A panic of the call is passed on, and is not retried.
///
/// # Cancel safety
///
/// If the future is dropped, the current attempt is dropped with it, and no further one is made.
pub async fn retry<T, E, F, Fut>(mut policy: Retry<T, E>, mut call: F) -> Result<T, E>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let mut delays = policy.backoff.delays();
    if let Some(random) = policy.random.take() {
        let mut random = random;
        delays = delays.random(move || random.unit());
    }
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
            None => return result,
            // A zero delay needs no timer, but still yields to other tasks.
            Some(Duration::ZERO) => tokio::task::yield_now().await,
            Some(wait) => tokio::time::sleep(wait).await,
        }
    }
    unreachable!("the attempts are counted")
}

impl<T, E> fmt::Debug for Retry<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry")
            .field("attempts", &self.attempts)
            .field("backoff", &self.backoff)
            .finish_non_exhaustive()
    }
}
