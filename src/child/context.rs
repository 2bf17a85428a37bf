//! What a child is given: its place in the tree, its stop signal, and the way to its supervisor.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use tokio::task::coop::consume_budget;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::cell::StopLevel;
use super::check::check_policy;
use super::incarnation::{Incarnation, Signal, WATCHED};
use crate::clock::now;
use crate::error::BuildError;
use crate::panic::CatchWakerPanic;
use crate::path::Path;
use crate::policy::{RestartPolicy, StartCause};
use crate::start_of::cut;

/// The link between one incarnation of a child and its supervisor.
///
/// Cheap to clone: give one to each task that the child spawns. A context belongs to one incarnation.
/// When that has ended, for any reason, its contexts are cancelled and calls on them are ignored.
///
/// If you also use anyhow's trait of the same name, import it as `use anyhow::Context as _;`.
///
/// ```
/// use std::time::Duration;
///
/// use verger::{Context, Exit};
///
/// async fn poller(ctx: Context) -> Exit {
///     ctx.set_status(format!("attempt {}", ctx.incarnation()));
///     let mut ticks = tokio::time::interval(Duration::from_secs(10));
///     // `None` once the child is cancelled.
///     while ctx.run_until_cancelled(ticks.tick()).await.is_some() {
///         tracing::info!("polling");
///     }
///     Ok(())
/// }
/// # drop(poller);
/// ```
#[derive(Clone)]
pub struct Context {
    pub(crate) incarnation: Arc<Incarnation>,
}

impl Context {
    pub(crate) fn new(incarnation: Arc<Incarnation>) -> Self {
        Self { incarnation }
    }

    /// Returns the path of the child, such as `app/ingest/mqtt`.
    #[must_use]
    pub fn path(&self) -> Path {
        self.incarnation.path()
    }

    /// Returns the number of this incarnation, from 1.
    #[must_use]
    pub fn incarnation(&self) -> u32 {
        self.incarnation.number
    }

    /// Returns why this incarnation was started.
    #[must_use]
    pub fn start_cause(&self) -> StartCause {
        self.incarnation.start_cause
    }

    /// Resolves when the child is cancelled.
    ///
    /// From then on the child has its [`shutdown`](crate::ChildSpec::shutdown) grace to return. After
    /// that it is aborted.
    ///
    /// ```
    /// use tokio::sync::mpsc;
    /// use verger::{Context, Exit};
    ///
    /// async fn consume(ctx: Context, mut jobs: mpsc::Receiver<String>) -> Exit {
    ///     loop {
    ///         tokio::select! {
    ///             () = ctx.cancelled() => return Ok(()),
    ///             Some(job) = jobs.recv() => println!("{job}"),
    ///         }
    ///     }
    /// }
    /// # drop(consume);
    /// ```
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: if the child is cancelled after the future was dropped, a new
    /// future resolves at once.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled { incarnation: Arc::clone(&self.incarnation), token: None }
    }

    /// Returns whether the child is cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.incarnation.cell.level() > StopLevel::None
    }

    /// Returns why the supervisor of this child stops, or one above it: `SIGTERM`, `memory`, the reason
    /// that was given to [`stop`](crate::SupervisorHandle::stop).
    ///
    /// `None` if no supervisor above stops, for example if the child alone is stopped or restarted, and if
    /// a supervisor stops because it gives up. The reason is known before the child is cancelled.
    #[must_use]
    pub fn stop_reason(&self) -> Option<Arc<str>> {
        self.incarnation.parent.stop_reason()
    }

    /// Runs `future` to completion. Drops it and returns `None` if the child is cancelled first.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use verger::Context;
    ///
    /// async fn ticker(ctx: Context) {
    ///     while ctx.run_until_cancelled(tokio::time::sleep(Duration::from_secs(1))).await.is_some() {
    ///         println!("tick");
    ///     }
    /// }
    /// # drop(ticker);
    /// ```
    ///
    /// # Cancel safety
    ///
    /// As cancel safe as `future`, which is dropped at one of its await points.
    pub async fn run_until_cancelled<F: Future>(&self, future: F) -> Option<F::Output> {
        consume_budget().await;
        tokio::select! {
            biased;
            () = self.cancelled() => None,
            output = future => Some(output),
        }
    }

    /// Returns a token that is cancelled with the child.
    ///
    /// For code that takes tokio-util's own type. Cancelling the token yourself doesn't stop the
    /// child: use [`stop_self`](Self::stop_self) for that.
    #[must_use]
    pub fn token(&self) -> CancellationToken {
        self.incarnation.cell.token().child_token()
    }

    /// Signals that the child is ready, so that it becomes [`Active`](crate::Lifecycle::Active).
    ///
    /// Needed by children with [`Readiness::Signal`](crate::Readiness::Signal). Has no effect on a
    /// child that is active already.
    pub fn ready(&self) {
        self.incarnation.notify(Signal::Ready);
    }

    /// Signals that the child works, which resets its backoff to the first delay.
    pub fn report_healthy(&self) {
        self.incarnation.notify(Signal::Healthy);
    }

    /// Sends a heartbeat: the child makes progress.
    ///
    /// Needed by children with a [`watchdog`](crate::ChildSpec::watchdog), at least once per interval while
    /// they are active. Call it where the child makes progress, for example once for each message that it
    /// has handled. It costs about as much as reading the clock, wakes no task, and has no effect on a child
    /// without a watchdog.
    ///
    /// Don't call it from a task that beats by itself, such as a timer: it would go on after the child
    /// has hung.
    pub fn heartbeat(&self) {
        if self.incarnation.has(WATCHED) {
            self.incarnation.cell.beat(now());
        }
    }

    /// Suspends the child's [`watchdog`](crate::ChildSpec::watchdog) until the returned guard is dropped.
    ///
    /// A child that waits for its next message, a lock or a timer on purpose isn't hung. When the last guard
    /// is dropped, the child has the whole interval until its next
    /// [`heartbeat`](Self::heartbeat).
    ///
    /// ```
    /// use tokio::sync::mpsc;
    /// use verger::Context;
    ///
    /// async fn receive(ctx: &Context, jobs: &mut mpsc::Receiver<String>) -> Option<String> {
    ///     let _waiting = ctx.waiting();
    ///     jobs.recv().await
    /// }
    /// # drop(receive);
    /// ```
    pub fn waiting(&self) -> Waiting {
        let watched = self.incarnation.has(WATCHED).then(|| Arc::clone(&self.incarnation));
        if let Some(incarnation) = &watched {
            incarnation.cell.begin_waiting();
        }
        Waiting { watched }
    }

    /// Sets the text shown with the child in [`status`](crate::SupervisorHandle::status), such as
    /// `lag 12 ms`.
    ///
    /// The text is kept until the next call or the end of this incarnation, up to 2 KiB of it.
    pub fn set_status(&self, text: impl Into<String>) {
        self.incarnation.cell.set_status(cut(text.into()).into());
    }

    /// Reports that something is wrong with what the child does, though it works: a certificate that expires soon, a queue
    /// that grows.
    ///
    /// The text, up to 2 KiB of it, is one of the [problems](crate::status::Status::problems) of the tree, and has no effect
    /// on whether the child is ready. `None` takes it back, and so does the end of this incarnation.
    ///
    /// ```
    /// use verger::{Context, Supervisor, worker};
    ///
    /// async fn ingest(ctx: Context) {
    ///     ctx.set_alarming(Some("lag of 40 min"));
    ///     ctx.cancelled().await;
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let app = Supervisor::builder("app").child(worker("ingest", ingest)).build()?.start().await?;
    /// # tokio::task::yield_now().await;
    ///
    /// let status = app.status().await?;
    /// assert!(status.is_ready());
    /// assert_eq!(status.problems()[0].to_string(), "app/ingest: lag of 40 min (not essential)");
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_alarming(&self, text: Option<impl Into<String>>) {
        self.incarnation.cell.set_alarming(text.map(|text| cut(text.into()).into()));
    }

    /// Returns the property of type `T` that
    /// [`on_child_failure`](crate::SupervisorBuilder::on_child_failure) gave the child, if any.
    ///
    /// The value is the one at the start of this incarnation.
    #[must_use]
    pub fn property<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.incarnation.cell.property()
    }

    /// Returns the token of its lease, or that of the lease above it.
    pub(crate) fn token_of_lease(&self) -> Option<FencingToken> {
        let own = self.property::<FencingToken>().map(|token| *token);
        own.or_else(|| self.incarnation.parent.fencing_token)
    }

    /// Stops this child as its supervisor would, grace included.
    ///
    /// The child has then ended normally. Its restart type decides whether it is restarted.
    pub fn stop_self(&self) {
        self.incarnation.notify(Signal::StopSelf);
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("path", &self.path())
            .field("incarnation", &self.incarnation())
            .field("cancelled", &self.is_cancelled())
            .finish()
    }
}

impl Context {
    /// Overrides the restart policy of the spec, for this incarnation only. `None` restores it.
    ///
    /// The last call before the child ends counts. The override is dropped when the next incarnation
    /// starts. See [`RestartPolicy`].
    ///
    /// Each limit of the policy replaces the same limit of the spec. A limit that newly applies starts
    /// counting at zero, and its count is dropped when a restart is granted without it. So set a limit
    /// in each incarnation that needs it.
    ///
    /// # Errors
    ///
    /// The errors of building a tree with such a spec: [`BuildError::BadBackoff`],
    /// [`BuildError::ZeroPeriod`], [`BuildError::BadScore`], [`BuildError::ZeroDuration`] or
    /// [`BuildError::SetTwice`]. The policy is then unchanged.
    pub fn set_restart_policy(&self, policy: Option<RestartPolicy>) -> Result<(), BuildError> {
        if let Some(policy) = &policy {
            check_policy(policy, &|| self.path())?;
        }
        self.incarnation.report_policy(policy.map(Arc::new));
        Ok(())
    }
}

/// Resolves when the child is cancelled; see [`Context::cancelled`](crate::Context::cancelled).
///
/// The future is `'static`, so you can pass it on, for example to
/// `axum::serve(..).with_graceful_shutdown(ctx.cancelled())`.
///
/// ```
/// use verger::Context;
///
/// /// A server that takes a future to stop it.
/// async fn serve(stop: impl Future<Output = ()> + Send + 'static) {
///     stop.await;
/// }
///
/// async fn http(ctx: Context) {
///     serve(ctx.cancelled()).await;
/// }
/// # drop(http);
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct Cancelled {
    incarnation: Arc<Incarnation>,
    /// Used if the waker of a different task is registered already.
    token: Option<CatchWakerPanic<Pin<Box<WaitForCancellationFutureOwned>>>>,
}

impl Cancelled {
    /// Resolves when the token is cancelled, which happens with the child at the latest.
    pub(crate) fn with_token(incarnation: Arc<Incarnation>, token: CancellationToken) -> Self {
        let token = CatchWakerPanic::new(Box::pin(token.cancelled_owned()));
        Self { incarnation, token: Some(token) }
    }
}

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<()> {
        loop {
            if let Some(token) = &mut self.token {
                return Pin::new(token).poll(cx);
            }
            if let Some(poll) = self.incarnation.cell.poll_above(StopLevel::None, cx) {
                return poll.map(|_| ());
            }
            let token = self.incarnation.cell.token();
            *self = Self::with_token(Arc::clone(&self.incarnation), token);
        }
    }
}

impl fmt::Debug for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancelled").field("incarnation", &self.incarnation).finish_non_exhaustive()
    }
}

/// Suspends the watchdog of a child; see [`Context::waiting`](crate::Context::waiting).
///
/// The example of [`Context::waiting`](crate::Context::waiting) holds one.
#[must_use = "the child counts as waiting only until the guard is dropped"]
pub struct Waiting {
    /// `None` if the child has no watchdog.
    watched: Option<Arc<Incarnation>>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(incarnation) = &self.watched {
            incarnation.cell.end_waiting(now());
        }
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").finish_non_exhaustive()
    }
}

/// A number that grows with every grant of a lease.
///
/// A lease can't stop a process that is paused, with its holder inside: it goes on where it was, after the lease has
/// been granted to the next holder. A resource that compares tokens can refuse it. Send the token with each write, keep
/// the highest one beside the data, and refuse writes with a lower one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(u64);

impl FencingToken {
    /// Creates a token with this number. Only engines do.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
