//! Stops calls to a service that keeps failing.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::coop::consume_budget;

use super::circuit::{Circuit, CircuitChange, CircuitRefusal, CircuitState, Permit};
use crate::clock::now;
use crate::human_duration::HumanDuration;
use crate::invisible::Visible;
use crate::panic::catch_panic;
use crate::subscriber;
use crate::sync::Mutex;

/// Refuses calls to a service that keeps failing, so that callers fail fast and the service can recover.
///
/// | state | calls |
/// | --- | --- |
/// | *closed* | are made; several failures in a row open the circuit |
/// | *open* | are refused at once, until the reset time is over |
/// | *half open* | one call is made as a probe, all others are refused |
///
/// If the probe succeeds, the circuit closes. If it fails, the circuit opens again. A probe that has no result within
/// the reset time gives way to the next one, and its result has no effect any more. The rules are
/// those of Akka's circuit breaker; the pattern is from "Release It!" by Michael Nygard.
///
/// A breaker is cheap to clone, and clones share one state. It needs no supervisor.
///
/// ```
/// use std::time::Duration;
///
/// use verger::resilience::{CallError, CircuitBreaker};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let payments = CircuitBreaker::new("payments").max_failures(2);
/// for _ in 0..2 {
///     let refused = payments.call(async || Err::<(), _>("connection refused")).await;
///     assert!(matches!(refused, Err(CallError::Failed("connection refused"))));
/// }
/// let refused = payments.call(async || Ok(())).await;
/// assert_eq!(refused.unwrap_err().to_string(), "payments: the circuit is open for another 30s");
/// # }
/// ```
pub struct CircuitBreaker<E> {
    shared: Arc<CircuitShared<E>>,
}

// Not derived, because errors need not be `Clone`.
impl<E> Clone for CircuitBreaker<E> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

struct CircuitShared<E> {
    name: String,
    circuit: Mutex<Circuit>,
    settings: Settings<E>,
}

struct Settings<E> {
    max_failures: u32,
    reset_after: Duration,
    call_timeout: Option<Duration>,
    fails_if: Option<Arc<FailsIf<E>>>,
    retry_after: Option<Arc<OpenFor<E>>>,
    on_change: Option<Arc<OnChange>>,
}

type FailsIf<E> = dyn Fn(&E) -> bool + Send + Sync;
type OpenFor<E> = dyn Fn(&E) -> Option<Duration> + Send + Sync;
type OnChange = dyn Fn(CircuitState, CircuitState) + Send + Sync;

impl<E> Clone for Settings<E> {
    fn clone(&self) -> Self {
        Self {
            fails_if: self.fails_if.clone(),
            retry_after: self.retry_after.clone(),
            on_change: self.on_change.clone(),
            ..*self
        }
    }
}

impl<E> CircuitBreaker<E> {
    /// Returns a closed breaker that opens after 5 failures in a row, for 30 s.
    ///
    /// By default, calls have no timeout and every error is a failure. The name appears in errors
    /// and in the log.
    pub fn new(name: impl Into<String>) -> Self {
        let settings = Settings {
            max_failures: 5,
            reset_after: Duration::from_secs(30),
            call_timeout: None,
            fails_if: None,
            retry_after: None,
            on_change: None,
        };
        Self::with(name.into(), settings)
    }

    fn with(name: String, settings: Settings<E>) -> Self {
        let circuit = Mutex::new(Circuit::new(settings.max_failures, settings.reset_after));
        Self { shared: Arc::new(CircuitShared { name, circuit, settings }) }
    }

    /// Returns a new closed breaker with a changed setting. Earlier clones don't change.
    fn set(self, set: impl FnOnce(&mut Settings<E>)) -> Self {
        let mut settings = self.shared.settings.clone();
        set(&mut settings);
        Self::with(self.shared.name.clone(), settings)
    }

    /// Sets how many failures in a row open the circuit; at least 1. Default: 5.
    #[must_use]
    pub fn max_failures(self, max: u32) -> Self {
        self.set(|settings| settings.max_failures = max.max(1))
    }

    /// Sets how long the circuit is open before it lets a probe through. Default: 30 s.
    ///
    /// With zero, the next call is the probe.
    #[must_use]
    pub fn reset_after(self, reset: Duration) -> Self {
        self.set(|settings| settings.reset_after = reset)
    }

    /// Sets how long a call may take. Default: no limit.
    ///
    /// A call that takes longer is dropped, and counts as a failure.
    #[must_use]
    pub fn call_timeout(self, timeout: Duration) -> Self {
        self.set(|settings| settings.call_timeout = Some(timeout))
    }

    /// Counts only errors for which `fails_if` returns `true` as failures. Default: all errors.
    ///
    /// Other errors, such as *not found*, count as success: the service has answered.
    #[must_use]
    pub fn fails_if(self, fails_if: impl Fn(&E) -> bool + Send + Sync + 'static) -> Self {
        self.set(|settings| settings.fails_if = Some(Arc::new(fails_if)))
    }

    /// Takes the time that the circuit is open from the error, such as a server's `Retry-After`.
    ///
    /// `delay` is called with each error that is a failure. The returned time applies if that failure
    /// opens the circuit. If `delay` returns `None`, the [reset time](Self::reset_after) applies.
    #[must_use]
    pub fn retry_after(
        self,
        delay: impl Fn(&E) -> Option<Duration> + Send + Sync + 'static,
    ) -> Self {
        self.set(|settings| settings.retry_after = Some(Arc::new(delay)))
    }

    /// Calls `on_change` whenever the state changes, with the old and the new state.
    ///
    /// It runs in the task of the call that changed the state, so it must not block. A panic in it is
    /// ignored. A second `on_change` replaces the first.
    #[must_use]
    pub fn on_change(
        self,
        on_change: impl Fn(CircuitState, CircuitState) + Send + Sync + 'static,
    ) -> Self {
        self.set(|settings| settings.on_change = Some(Arc::new(on_change)))
    }

    /// Returns the state of the circuit.
    ///
    /// An open circuit becomes half open at the first call after its reset time, not before.
    #[must_use]
    pub fn state(&self) -> CircuitState {
        self.shared.circuit.lock().state()
    }

    /// Makes the call, unless the circuit is open.
    ///
    /// ```
    /// use std::io;
    ///
    /// use verger::resilience::{CallError, CircuitBreaker};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let vendor = CircuitBreaker::new("vendor").max_failures(1);
    ///
    /// let answer = vendor.call(async || Err::<(), _>(io::Error::other("status 500"))).await;
    /// assert!(matches!(answer, Err(CallError::Failed(_))));
    ///
    /// let answer = vendor.call(async || Ok(())).await;
    /// assert!(matches!(answer, Err(CallError::Open { .. })));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// * [`CallError::Open`] if the call was refused because the circuit is open,
    /// * [`CallError::HalfOpen`] if it was refused because a probe is in progress,
    /// * [`CallError::TimedOut`] if the call took longer than its [timeout](Self::call_timeout),
    /// * [`CallError::Failed`] with the error that the call returned.
    ///
    /// # Panics
    ///
    /// A panic of the call counts as a failure, and is passed on.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the call is dropped with it, and counts neither as a success nor as
    /// a failure. If it was the probe of a half-open circuit, the next call is the probe.
    pub async fn call<T, F, Fut>(&self, call: F) -> Result<T, CallError<E>>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        consume_budget().await;
        let settings = &self.shared.settings;
        let (admitted, change) = self.shared.circuit.lock().admit(now());
        let permit = admitted.map_err(|refusal| {
            let name = self.shared.name.clone();
            match refusal {
                CircuitRefusal::Open(retry_in) => CallError::Open { name, retry_in },
                CircuitRefusal::HalfOpen(at_most) => CallError::HalfOpen { name, at_most },
            }
        })?;
        let mut in_progress = CallInProgress { breaker: self, permit: Some(permit) };
        self.report(change);
        let result = match settings.call_timeout {
            None => Ok(call().await),
            Some(timeout) => tokio::time::timeout(timeout, call()).await.map_err(|_| timeout),
        };
        match result {
            Ok(Ok(value)) => {
                in_progress.succeeded();
                Ok(value)
            }
            Ok(Err(error)) => {
                if settings.fails_if.as_ref().is_none_or(|fails| fails(&error)) {
                    let delay = settings.retry_after.as_ref().and_then(|delay| delay(&error));
                    in_progress.failed(delay);
                } else {
                    in_progress.succeeded();
                }
                Err(CallError::Failed(error))
            }
            Err(after) => {
                in_progress.failed(None);
                Err(CallError::TimedOut { name: self.shared.name.clone(), after })
            }
        }
    }

    /// Reports a change. The lock must be released, because `on_change` may use the breaker.
    fn report(&self, change: Option<CircuitChange>) {
        let Some((from, to)) = change else { return };
        subscriber::info!(target: "verger::circuit", name = self.shared.name, %from, %to, "changed");
        if let Some(on_change) = &self.shared.settings.on_change {
            // The call may be unwinding, where a second panic would end the process.
            catch_panic(|| on_change(from, to));
        }
    }
}

/// A call that was admitted. Dropping it abandons the call, or counts a panic as a failure.
struct CallInProgress<'a, E> {
    breaker: &'a CircuitBreaker<E>,
    permit: Option<Permit>,
}

impl<E> CallInProgress<'_, E> {
    fn succeeded(&mut self) {
        self.close(Circuit::succeeded);
    }

    /// Counts a failure. If it opens the circuit, `delay` replaces the reset time.
    fn failed(&mut self, delay: Option<Duration>) {
        self.close(|circuit, permit| circuit.failed(permit, delay, now()));
    }

    fn close(&mut self, outcome: impl FnOnce(&mut Circuit, &Permit) -> Option<CircuitChange>) {
        let Some(permit) = self.permit.take() else { return };
        let change = outcome(&mut self.breaker.shared.circuit.lock(), &permit);
        self.breaker.report(change);
    }
}

impl<E> Drop for CallInProgress<'_, E> {
    fn drop(&mut self) {
        match std::thread::panicking() {
            true => self.failed(None),
            false => self.close(|circuit, permit| circuit.abandoned(permit, now())),
        }
    }
}

impl<E> fmt::Debug for CircuitBreaker<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitBreaker")
            .field("name", &self.shared.name)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

/// The error of a call through a [`CircuitBreaker`].
///
/// [`Failed`](Self::Failed) displays as the error that it contains. It also returns that error as
/// its [`source`](Error::source), so that code that searches an error chain by type finds it.
///
/// The example of [`CircuitBreaker::call`] matches one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallError<E> {
    /// The call was refused, because the circuit is open.
    Open {
        /// The name of the breaker.
        name: String,
        /// The time until a probe is let through.
        retry_in: Duration,
    },
    /// The call was refused, because the circuit is half open: a probe is in progress.
    HalfOpen {
        /// The name of the breaker.
        name: String,
        /// The time until the next probe is let through if this one hangs. It usually has its result much
        /// earlier, so a caller tries again after its usual delay.
        at_most: Duration,
    },
    /// The call took longer than its timeout, and was dropped.
    TimedOut {
        /// The name of the breaker.
        name: String,
        /// The timeout.
        after: Duration,
    },
    /// The call was made, and returned this error.
    Failed(E),
}

impl<E: fmt::Display> fmt::Display for CallError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { name, retry_in } => {
                let (name, retry_in) = (Visible(name), HumanDuration(rounded(*retry_in)));
                write!(f, "{name}: the circuit is open for another {retry_in}")
            }
            Self::HalfOpen { name, at_most } => {
                let (name, at_most) = (Visible(name), HumanDuration(rounded(*at_most)));
                write!(f, "{name}: a probe decides whether the circuit closes, within {at_most}")
            }
            Self::TimedOut { name, after } => {
                write!(f, "{}: no answer within {}", Visible(name), HumanDuration(*after))
            }
            Self::Failed(error) => error.fmt(f),
        }
    }
}

/// Rounds a remaining time up: to milliseconds, or to seconds from ten seconds on.
fn rounded(left: Duration) -> Duration {
    const MANY: Duration = Duration::from_secs(10);
    let up = |unit: u32| {
        let over = left.subsec_nanos() % unit;
        left.saturating_add(Duration::from_nanos(u64::from((unit - over) % unit)))
    };
    if left < MANY { up(1_000_000) } else { up(1_000_000_000) }
}

impl<E: Error + 'static> Error for CallError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed(error) => Some(error),
            Self::Open { .. } | Self::HalfOpen { .. } | Self::TimedOut { .. } => None,
        }
    }
}
