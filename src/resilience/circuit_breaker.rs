//! To stop calling what doesn't answer, for a while.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::now;
use crate::policy::{Change, Circuit, CircuitState, Permit};
use crate::sync::Mutex;

/// Stops calls to something that doesn't work, so that neither it nor its callers waste their time.
///
/// *Closed*, it makes the calls. After so many failures in a row it *opens*: calls are refused at
/// once. When its reset time is over, the next call is made as a probe, *half open*: if it works,
/// the breaker closes, if not, it opens for as long again. From "Release It!" by Michael Nygard;
/// the rules are those of Akka's.
///
/// Cheap to clone; clones share one state. It needs no supervisor.
///
/// ```
/// use std::time::Duration;
///
/// use verger::{CallError, CircuitBreaker};
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
    shared: Arc<Shared<E>>,
}

/// By hand, because errors need not be `Clone`, and those of std are not.
impl<E> Clone for CircuitBreaker<E> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

struct Shared<E> {
    name: String,
    circuit: Mutex<Circuit>,
    settings: Settings<E>,
}

struct Settings<E> {
    max_failures: u32,
    reset_after: Duration,
    call_timeout: Option<Duration>,
    fails_if: Option<Arc<Filter<E>>>,
    retry_after: Option<Arc<Asked<E>>>,
    on_change: Option<Arc<Listener>>,
}

type Filter<E> = dyn Fn(&E) -> bool + Send + Sync;
type Asked<E> = dyn Fn(&E) -> Option<Duration> + Send + Sync;
type Listener = dyn Fn(CircuitState, CircuitState) + Send + Sync;

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
    /// A closed breaker that opens after 5 failures in a row, for 30 s. Calls may take as long as
    /// they like, and every error is a failure.
    ///
    /// The name is for errors and logs.
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
        Self { shared: Arc::new(Shared { name, circuit, settings }) }
    }

    /// The same, closed, with another setting. Clones that were made before are left as they are.
    fn set(self, set: impl FnOnce(&mut Settings<E>)) -> Self {
        let mut settings = self.shared.settings.clone();
        set(&mut settings);
        Self::with(self.shared.name.clone(), settings)
    }

    /// How many failures in a row open it; at least 1. Default: 5.
    #[must_use]
    pub fn max_failures(self, max: u32) -> Self {
        self.set(|settings| settings.max_failures = max.max(1))
    }

    /// How long it is open before a call is made to see. With zero, the next call is. Default: 30 s.
    #[must_use]
    pub fn reset_after(self, reset: Duration) -> Self {
        self.set(|settings| settings.reset_after = reset)
    }

    /// How long a call may take before it is dropped and is a failure. Default: as long as it
    /// likes.
    #[must_use]
    pub fn call_timeout(self, timeout: Duration) -> Self {
        self.set(|settings| settings.call_timeout = Some(timeout))
    }

    /// Takes only these errors for failures; the others are answers that happen to be bad, such as
    /// *not found*, and count as success.
    #[must_use]
    pub fn fails_if(self, fails_if: impl Fn(&E) -> bool + Send + Sync + 'static) -> Self {
        self.set(|settings| settings.fails_if = Some(Arc::new(fails_if)))
    }

    /// Asks the error that opens it for how long it is to be open: what a server has said in
    /// `Retry-After`, for example. `None`: for the [reset time](Self::reset_after). It makes no
    /// error a failure, and opens nothing by itself.
    #[must_use]
    pub fn retry_after(
        self,
        reset: impl Fn(&E) -> Option<Duration> + Send + Sync + 'static,
    ) -> Self {
        self.set(|settings| settings.retry_after = Some(Arc::new(reset)))
    }

    /// Calls this whenever the state changes, with the one before and the new one; in the task of
    /// the call that changed it, so it must be quick. It replaces the one that was set before.
    #[must_use]
    pub fn on_change(
        self,
        on_change: impl Fn(CircuitState, CircuitState) + Send + Sync + 'static,
    ) -> Self {
        self.set(|settings| settings.on_change = Some(Arc::new(on_change)))
    }

    /// Whether calls are made. That the reset time of an open one is over is only noticed by the
    /// next call.
    #[must_use]
    pub fn state(&self) -> CircuitState {
        self.shared.circuit.lock().state()
    }

    /// Makes the call, unless the circuit is open.
    ///
    /// # Errors
    ///
    /// [`CallError::Open`] if it was not made, [`CallError::TimedOut`] if it took too long, and
    /// otherwise its own error in [`CallError::Failed`].
    ///
    /// # Panics
    ///
    /// A panic of the call is a failure, and passes through.
    ///
    /// # Cancel safety
    ///
    /// The call is dropped, and counts neither as a success nor as a failure. If it was the probe
    /// of a half-open circuit, the next call is the probe.
    pub async fn call<T, F, Fut>(&self, call: F) -> Result<T, CallError<E>>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let settings = &self.shared.settings;
        let (admitted, change) = self.shared.circuit.lock().admit(now());
        let permit = admitted
            .map_err(|retry_in| CallError::Open { name: self.shared.name.clone(), retry_in })?;
        let mut under_way = UnderWay { breaker: self, permit: Some(permit) };
        self.tell(change);
        let result = match settings.call_timeout {
            None => Ok(call().await),
            Some(timeout) => tokio::time::timeout(timeout, call()).await.map_err(|_| timeout),
        };
        match result {
            Ok(Ok(value)) => {
                under_way.succeeded();
                Ok(value)
            }
            Ok(Err(error)) => {
                if settings.fails_if.as_ref().is_none_or(|fails| fails(&error)) {
                    let asked = settings.retry_after.as_ref().and_then(|reset| reset(&error));
                    under_way.failed(asked);
                } else {
                    under_way.succeeded();
                }
                Err(CallError::Failed(error))
            }
            Err(after) => {
                under_way.failed(None);
                Err(CallError::TimedOut { name: self.shared.name.clone(), after })
            }
        }
    }

    /// After the lock is released: the listener may call, too.
    fn tell(&self, change: Option<Change>) {
        let Some((from, to)) = change else { return };
        tracing::info!(target: "verger::circuit", name = self.shared.name, %from, %to, "changed");
        if let Some(on_change) = &self.shared.settings.on_change {
            on_change(from, to);
        }
    }
}

/// A call that was let through. If it is dropped, nobody knows what became of it, unless it
/// panicked.
struct UnderWay<'a, E> {
    breaker: &'a CircuitBreaker<E>,
    permit: Option<Permit>,
}

impl<E> UnderWay<'_, E> {
    fn succeeded(&mut self) {
        self.close(Circuit::succeeded);
    }

    /// `asked`: for how long the circuit is to be open, if this opens it.
    fn failed(&mut self, asked: Option<Duration>) {
        self.close(|circuit, permit| circuit.failed(permit, asked, now()));
    }

    fn close(&mut self, tell: impl FnOnce(&mut Circuit, &Permit) -> Option<Change>) {
        let Some(permit) = self.permit.take() else { return };
        let change = tell(&mut self.breaker.shared.circuit.lock(), &permit);
        self.breaker.tell(change);
    }
}

impl<E> Drop for UnderWay<'_, E> {
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

/// Why a call through a [`CircuitBreaker`] has no value.
///
/// The text of [`Failed`](Self::Failed) is that of the error in it, which is its
/// [`source`](Error::source) as well, so that whoever asks for an error's type finds it there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallError<E> {
    /// It was not made: the circuit is open.
    Open {
        /// The name of the breaker.
        name: String,
        /// After what time a call will be made again; zero while the probe is under way.
        retry_in: Duration,
    },
    /// It took too long and was dropped.
    TimedOut {
        /// The name of the breaker.
        name: String,
        /// The time that it may take.
        after: Duration,
    },
    /// It was made, and returned this.
    Failed(E),
}

impl<E: fmt::Display> fmt::Display for CallError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use humantime_serde::re::humantime::format_duration;
        match self {
            Self::Open { name, retry_in } if retry_in.is_zero() => {
                write!(f, "{name}: the circuit is half open, and its one call is under way")
            }
            Self::Open { name, retry_in } => {
                let retry_in = format_duration(rounded(*retry_in));
                write!(f, "{name}: the circuit is open for another {retry_in}")
            }
            Self::TimedOut { name, after } => {
                write!(f, "{name}: no answer within {}", format_duration(*after))
            }
            Self::Failed(error) => error.fmt(f),
        }
    }
}

/// What one would say of a time that is left: whole milliseconds, and from ten seconds on whole
/// seconds. Rounded up, so that it is over by then.
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
            Self::Open { .. } | Self::TimedOut { .. } => None,
        }
    }
}
