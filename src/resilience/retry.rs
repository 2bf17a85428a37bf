//! To try again, in one call.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use crate::policy::{Backoff, Random};

/// How often, how soon and after what [`retry`] tries again.
///
/// `T` is what the call returns, `E` its error.
#[must_use = "a policy does nothing until it is given to `retry`"]
pub struct Retry<T, E> {
    attempts: u32,
    backoff: Backoff,
    random: Option<Box<dyn Random>>,
    again_if: Option<Box<Again<E>>>,
    accept_if: Option<Box<Accept<T>>>,
    retry_after: Option<Box<Asked<E>>>,
    on_failure: Option<Box<Listener<E>>>,
}

type Again<E> = dyn Fn(&E, u32) -> bool + Send + Sync;
type Asked<E> = dyn Fn(&E, u32) -> Option<Duration> + Send + Sync;
type Accept<T> = dyn Fn(&T) -> bool + Send + Sync;
type Listener<E> = dyn FnMut(Failure<'_, E>) + Send;

/// One attempt that failed.
struct Failure<'a, E> {
    error: &'a E,
    attempt: u32,
    wait: Option<Duration>,
}

impl<T, E> Retry<T, E> {
    /// Makes the call up to `attempts` times, the first one included. With 0 it is made once: there
    /// is nothing to return otherwise.
    ///
    /// At once unless there is a [`backoff`](Self::backoff).
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

    /// How long to wait before each further attempt. Nobody waits after the last.
    ///
    /// A backoff that has an end ends the attempts, too.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Draws the jitter from this source.
    pub fn random(mut self, random: impl Random + 'static) -> Self {
        self.random = Some(Box::new(random));
        self
    }

    /// Tries again only after errors for which this is true. It is told the error and the number
    /// of the attempt, from 1.
    pub fn again_if(mut self, again_if: impl Fn(&E, u32) -> bool + Send + Sync + 'static) -> Self {
        self.again_if = Some(Box::new(again_if));
        self
    }

    /// Tries again also after a value for which this is false. If there are no more attempts, that
    /// value is returned.
    pub fn accept_if(mut self, accept_if: impl Fn(&T) -> bool + Send + Sync + 'static) -> Self {
        self.accept_if = Some(Box::new(accept_if));
        self
    }

    /// Asks the error how long to wait before the next attempt: what a server has said in
    /// `Retry-After`, for example. It is told the error and the number of the attempt, from 1.
    /// `None`: the [`backoff`](Self::backoff) says it.
    ///
    /// The wait that the error asks for takes the place of the backoff's as it is, without jitter
    /// or bounds. The attempt counts like any other. The backoff stays where it is, so an attempt
    /// after which nothing is asked for goes on there, and one that has an end isn't used up.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use verger::Retry;
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
        wait: impl Fn(&E, u32) -> Option<Duration> + Send + Sync + 'static,
    ) -> Self {
        self.retry_after = Some(Box::new(wait));
        self
    }

    /// Calls this after each attempt that failed, also the last: with the error, the number of the
    /// attempt, from 1, and the wait before the next, `None` if there is no next.
    pub fn on_failure(
        mut self,
        mut on_failure: impl FnMut(&E, u32, Option<Duration>) + Send + 'static,
    ) -> Self {
        self.on_failure = Some(Box::new(move |Failure { error, attempt, wait }| {
            on_failure(error, attempt, wait);
        }));
        self
    }
}

/// Makes a call, and makes it again until it works or the policy says that it is enough.
///
/// For a single call. What is to run for as long as the program does belongs under a supervisor,
/// which does the same for it.
///
/// ```
/// use std::time::Duration;
///
/// use verger::{Backoff, Retry, retry};
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
/// The error of the last attempt, as it is.
///
/// # Panics
///
/// A panic of the call passes through, and is not tried again.
///
/// # Cancel safety
///
/// The attempt under way is dropped, and no further one is made.
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
        let asked = || policy.retry_after.as_ref()?(result.as_ref().err()?, attempt);
        let wait = if again { asked().or_else(|| delays.next()) } else { None };
        if let (Err(error), Some(on_failure)) = (&result, &mut policy.on_failure) {
            on_failure(Failure { error, attempt, wait });
        }
        match wait {
            None => return result,
            // A zero delay never touches a timer, but lets others have their turn.
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
