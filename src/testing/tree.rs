//! The test tree: injects faults, waits for events, and checks that nothing is left over.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::expect::{Expect, relative};
use super::faults::{FaultWrapper, Faults, StartFault};
use super::log::{LoggedEvents, Recorder, Search, Stuck};
use super::standstill::ClockWatch;
use crate::app::run::Root;
use crate::child::ChildSpec;
use crate::dead_letter::DeadLetter;
use crate::error::{ControlError, RunError, StartError};
use crate::exit::ExitError;
use crate::handle::{ChildRef, SupervisorHandle};
use crate::lifecycle::Lifecycle;
use crate::path::Path;
use crate::spec::{TreeBuilder, build};
use crate::status::{Event, EventKind};

/// How long a test waits by default.
const PATIENCE: Duration = Duration::from_secs(60 * 60);

/// A running tree whose children can be made to fail, and whose events are recorded.
///
/// The [module](super) shows how to use it. Paths are relative to the root, as for a
/// [`SupervisorHandle`]: `db`, `ingest/mqtt`, `conns/conn#1`.
///
/// The methods of a `TestTree` are assertions: they panic in the line of the test. The methods of
/// its [`handle`](Self::handle) return a `Result` instead.
///
/// End a test with [`stop`](Self::stop), or with [`ended`](Self::ended) if the tree ends by itself.
/// Both check that no child is left over. Dropping a `TestTree` aborts the tree and checks nothing,
/// so that a failed test reports its own failure only.
///
/// ```
/// use verger::testing::TestTree;
/// use verger::{Context, Supervisor, worker};
///
/// async fn db(ctx: Context) {
///     ctx.cancelled().await;
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let tree = TestTree::start(Supervisor::builder("app").child(worker("db", db))).await;
///
/// tree.kill("db").await;
/// tree.expect(["db: active -> errored (aborted)", "db: -> active"]).await;
/// tree.stop().await;
/// # }
/// ```
#[derive(Debug)]
#[must_use = "the tree is aborted when this is dropped"]
pub struct TestTree {
    handle: SupervisorHandle,
    path: Path,
    faults: Arc<Faults>,
    recorder: Recorder,
    patience: Duration,
    clock: Option<Arc<ClockWatch>>,
    // Aborts the tree when it is dropped.
    root: Root,
}

impl TestTree {
    /// Builds and starts a tree, and resolves when it is up.
    ///
    /// It does what [`Supervisor::start`](crate::Supervisor::start) does. The events of the start
    /// are in [`events`](Self::events), but [`expect`](Self::expect) begins after them, and shows them if it fails. To
    /// expect events of the start, or to make a child fail in it, use [`spawn`](Self::spawn) and [`up`](Self::up).
    ///
    /// # Panics
    ///
    /// If the tree can't be built, or is not up within the [`patience`](Self::patience).
    pub fn start(tree: impl TreeBuilder) -> impl Future<Output = Self> {
        let spawned = Self::try_spawn(tree);
        Assertion::new(async move {
            let tree = spawned?;
            tree.come_up().await?.map_err(|error| error.to_string())?;
            tree.recorder.log().end_start();
            Ok(tree)
        })
    }

    /// Builds and starts a tree, and returns the error if the start fails.
    ///
    /// # Errors
    ///
    /// As for [`Supervisor::start`](crate::Supervisor::start).
    ///
    /// # Panics
    ///
    /// If the tree can't be built, does not come up within the [`patience`](Self::patience), or
    /// leaves a child running after a failed start.
    pub fn try_start(tree: impl TreeBuilder) -> impl Future<Output = Result<Self, StartError>> {
        let spawned = Self::try_spawn(tree);
        Assertion::new(async move {
            let tree = spawned?;
            if let Err(error) = tree.come_up().await? {
                tree.check_left_over()?;
                return Ok(Err(error));
            }
            tree.recorder.log().end_start();
            Ok(Ok(tree))
        })
    }

    /// Builds and starts a tree without waiting for it.
    ///
    /// On a current-thread runtime, as in `#[tokio::test]`, the tree is not polled before the test
    /// awaits. Faults that the test sets right after this call therefore apply to the first start.
    ///
    /// ```
    /// use verger::testing::TestTree;
    /// use verger::{Context, Readiness, Supervisor, worker};
    ///
    /// async fn db(ctx: Context) {
    ///     ctx.ready();
    ///     ctx.cancelled().await;
    /// }
    ///
    /// async fn api(ctx: Context) {
    ///     ctx.cancelled().await;
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let app = Supervisor::builder("app")
    ///     .child(worker("db", db).readiness(Readiness::Signal))
    ///     .child(worker("api", api));
    ///
    /// let tree = TestTree::spawn(app);
    /// tree.fail_next_start("db", "connection refused");
    /// tree.up().await;
    ///
    /// tree.expect(["db: activating -> errored", "db: -> active", "api: -> active"]).await;
    /// tree.stop().await;
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If the tree can't be built, or outside of a tokio runtime that has its timers enabled.
    #[track_caller]
    pub fn spawn(tree: impl TreeBuilder) -> Self {
        match Self::try_spawn(tree) {
            Ok(tree) => tree,
            Err(text) => panic!("{text}"),
        }
    }

    /// Sets how long the assertions wait. Default: one hour.
    ///
    /// An hour takes no time while the clock is paused. Set less in a test that runs in real time.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sets how long the assertions wait in real time while the paused clock stands still. Default: 30 s.
    ///
    /// The clock stands still while a closure blocks a thread: of a [`blocking`](crate::blocking()) child, of
    /// [`spawn_blocking`](crate::Context::spawn_blocking), or of tokio's function of that name. An assertion
    /// that waits longer fails, and names the child. Without a paused clock, this has no effect.
    pub fn real_patience(self, patience: Duration) -> Self {
        if let Some(clock) = &self.clock {
            let _ = clock.patience.send(patience);
        }
        self
    }

    /// Resolves when the tree is up.
    ///
    /// # Panics
    ///
    /// If the tree is not up within the [`patience`](Self::patience).
    pub fn up(&self) -> impl Future<Output = ()> + Send {
        Assertion::new(async move { self.come_up().await?.map_err(|error| error.to_string()) })
    }

    /// Returns a handle to the root, for calls that are not assertions.
    #[must_use]
    pub fn handle(&self) -> &SupervisorHandle {
        &self.handle
    }

    /// Resolves when the child is in this state, or has entered it since the call.
    ///
    /// The child need not exist yet. It counts as well if the child left the state again.
    ///
    /// # Panics
    ///
    /// If the tree ends before, or the [`patience`](Self::patience) is over. The text shows the tree.
    pub fn wait_for<'a>(
        &'a self,
        path: &'a str,
        state: Lifecycle,
    ) -> impl Future<Output = ()> + Send + 'a {
        Assertion::new(async move {
            let full = self.full(path)?;
            let next = self.recorder.log().events.len();
            let current = match self.handle.which_child(path).await {
                Ok(child) => Some(child.lifecycle),
                Err(_) => self.recorder.log().last_state(&full),
            };
            if current == Some(state) {
                return Ok(());
            }
            let enters = |event: &Event| {
                event.path.as_str() == full
                    && matches!(event.kind, EventKind::Moved { to, .. } if to == state)
            };
            let Err(stuck) = self.until(next, enters).await else { return Ok(()) };
            let current = match self.recorder.log().last_state(&full) {
                Some(current) => format!("it is {current}"),
                None => format!("there is no `{full}`"),
            };
            let text = format!("`{full}` did not become {state}, {current}: {stuck}");
            Err(self.with_status(text).await)
        })
    }

    /// Aborts a child, as if by other code, and resolves when that incarnation has ended.
    ///
    /// For the child's supervisor it is an ordinary failure.
    ///
    /// # Panics
    ///
    /// If the child is not running, or is still running after the [`patience`](Self::patience).
    pub fn kill<'a>(&'a self, path: &'a str) -> impl Future<Output = ()> + Send + 'a {
        Assertion::new(async move {
            let full = self.full(path)?;
            let next = self.recorder.log().events.len();
            let text = |error: ControlError| format!("can't kill `{full}`: {error}");
            let incarnation = self.handle.which_child(path).await.map_err(text)?.incarnation;
            if !self.handle.kill(path).await.map_err(text)?.was_running {
                return Err(format!("can't kill `{full}`: it isn't running"));
            }
            let ends = |event: &Event| {
                event.path.as_str() == full
                    && event.incarnation >= incarnation
                    && match event.kind {
                        // `Errored` is entered before the task has ended, and left afterwards.
                        EventKind::Moved { from, to, .. } => {
                            from == Lifecycle::Errored || to == Lifecycle::Stopped
                        }
                        EventKind::GaveUp { .. } | EventKind::Leaked => true,
                        _ => false,
                    }
            };
            match self.until(next, ends).await {
                // The abort may also end the tree.
                Ok(()) | Err(Stuck::Ended(_)) => Ok(()),
                Err(stuck) => {
                    let text = format!("`{full}` was killed and did not end: {stuck}");
                    Err(self.with_status(text).await)
                }
            }
        })
    }

    /// Makes the current incarnation of a child hang.
    ///
    /// It is no longer polled, and doesn't react to a stop until it is aborted. A supervisor that
    /// hangs no longer serves its children, and can't abort them. Its own supervisor reports it as
    /// leaked, and then aborts it with everything below it.
    ///
    /// # Panics
    ///
    /// If the child is not running.
    #[track_caller]
    pub fn hang(&self, path: &str) {
        let full = self.full(path).unwrap_or_else(|text| panic!("{text}"));
        if self.faults.hang(&full) {
            return;
        }
        let state = self.recorder.log().last_state(&full);
        match state {
            // The task was spawned and has not been polled yet.
            Some(Lifecycle::Activating | Lifecycle::Active | Lifecycle::Deactivating) => {
                self.faults.at_start(&full, StartFault::Hang);
            }
            Some(state) => {
                let exit = self.recorder.log().last_exit(&full);
                let exit = exit.map_or_else(String::new, |exit| format!(" ({exit})"));
                panic!("`{full}` can't hang: it is {state}{exit}")
            }
            None => panic!("`{full}` can't hang: {}", self.recorder.log().no_such_child(&full)),
        }
    }

    /// Makes the next start of a child fail with this error. Called twice, the next two fail.
    ///
    /// A child that implements [`Child`](crate::Child) fails in `activate`. A function fails at its
    /// first poll, when it is already active, unless it has
    /// [`Readiness::Signal`](crate::Readiness::Signal). With
    /// [`ExitError::ignore`](crate::ExitError::ignore), the child declines to start.
    ///
    /// Write the path of a dynamic child with its number, or without, as in `conns/conn`. Without,
    /// it stands for the next child of that name.
    ///
    /// # Panics
    ///
    /// If the path is malformed. If there is no such start, [`stop`](Self::stop) and
    /// [`ended`](Self::ended) panic.
    #[track_caller]
    pub fn fail_next_start(&self, path: &str, error: impl Into<ExitError>) {
        self.at_next_start(path, StartFault::Fail(error.into()));
    }

    /// Makes the next start of a child hang, as [`hang`](Self::hang) does.
    ///
    /// A child that is ready when it is spawned, as a function is by default, still becomes active.
    ///
    /// # Panics
    ///
    /// As for [`fail_next_start`](Self::fail_next_start).
    #[track_caller]
    pub fn hang_next_start(&self, path: &str) {
        self.at_next_start(path, StartFault::Hang);
    }

    /// Adds a child to the supervisor at `parent`, or to the root if `parent` is empty.
    ///
    /// It does what [`SupervisorHandle::start_child`] does. Faults apply to every child of the tree, whoever adds it.
    ///
    /// # Errors
    ///
    /// As for [`SupervisorHandle::supervisor`] and [`SupervisorHandle::start_child`].
    pub async fn start_child(
        &self,
        parent: &str,
        spec: impl Into<ChildSpec>,
    ) -> Result<ChildRef, ControlError> {
        match parent {
            "" => self.handle.start_child(spec).await,
            _ => self.handle.supervisor(parent).await?.start_child(spec).await,
        }
    }

    /// Resolves when these events have happened, in this order, and returns them.
    ///
    /// Other events in between are skipped. The search begins after the last event that was expected
    /// before, or after the [`start`](Self::start). It includes events from before the call.
    ///
    /// # Panics
    ///
    /// If the tree ends before the last event, the [`patience`](Self::patience) is over, or an
    /// expected event can't happen. The text shows what happened instead.
    pub fn expect<E: Into<Expect>>(
        &self,
        events: impl IntoIterator<Item = E>,
    ) -> impl Future<Output = Vec<Event>> + Send {
        self.search(events.into_iter().map(Into::into).collect(), false)
    }

    /// Resolves when these events have happened, in this order, without any other in between.
    ///
    /// This applies to events of the whole tree, from the event after the last expected one on.
    ///
    /// # Panics
    ///
    /// As for [`expect`](Self::expect), and as soon as any other event happens.
    pub fn expect_exactly<E: Into<Expect>>(
        &self,
        events: impl IntoIterator<Item = E>,
    ) -> impl Future<Output = Vec<Event>> + Send {
        self.search(events.into_iter().map(Into::into).collect(), true)
    }

    /// Skips all events so far: the next [`expect`](Self::expect) begins here.
    pub fn forget(&self) {
        self.recorder.log().skip();
    }

    /// Returns all events since the tree was built, whether they were expected or not.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        self.recorder.log().events.clone()
    }

    /// Returns all dead letters since the tree was built, including
    /// [suppressed](crate::SupervisorBuilder::suppress_dead_letters) ones.
    #[must_use]
    pub fn dead_letters(&self) -> Vec<DeadLetter> {
        self.recorder.log().letters.clone()
    }

    /// Stops the tree in order, unless it has already ended, and checks that nothing is left over.
    ///
    /// Events can still be expected afterwards.
    ///
    /// # Panics
    ///
    /// If the tree gave up or could not start, a child leaked or is still running, the tree does not
    /// stop within the [`patience`](Self::patience), or a start fault was not used.
    pub fn stop(&self) -> impl Future<Output = ()> + Send {
        Assertion::new(async move {
            let stopped = self.recorder.within(self.patience, self.handle.stop("the test is over"));
            let result = stopped.await.map_err(|stuck| match stuck {
                Stuck::TimedOut(patience) => {
                    format!("`{}` did not stop within {patience:?}{}", self.path, self.live())
                }
                stuck => format!("`{}` did not stop: {stuck}", self.path),
            })?;
            let result = match result {
                // A child that has leaked and exited since fails the test, but a child that hangs on purpose is
                // killed.
                Err(RunError::Forced { .. }) => match self.root.shared.forced() {
                    forced if forced.leaked.is_empty() => Ok(()),
                    forced => forced.result(),
                },
                result => result,
            };
            result.map_err(|error| format!("`{}` did not end well: {error}", self.path))?;
            self.check_left_over()
        })
    }

    /// Resolves when the tree has ended by itself, and checks that nothing is left over.
    ///
    /// # Errors
    ///
    /// As for [`SupervisorHandle::wait`].
    ///
    /// # Panics
    ///
    /// If the tree does not end within the [`patience`](Self::patience), a child is still running
    /// that was not reported as leaked, or a start fault was not used.
    pub fn ended(&self) -> impl Future<Output = Result<(), RunError>> + Send {
        Assertion::new(async move {
            let result = match self.recorder.within(self.patience, self.handle.wait()).await {
                Ok(result) => result,
                Err(stuck) => {
                    let text = format!("`{}` did not end{}", self.path, stuck.after());
                    return Err(self.with_status(text).await);
                }
            };
            let leaks =
                matches!(&result, Err(RunError::Forced { leaked, .. }) if !leaked.is_empty());
            if !leaks {
                self.check_left_over()?;
            }
            Ok(result)
        })
    }

    fn try_spawn(tree: impl TreeBuilder) -> Result<Self, String> {
        let faults = Arc::new(Faults::default());
        let shared = build(tree).map_err(|error| error.to_string())?.shared(None);
        // Before the root runs, which may be immediately, on a different thread.
        let _ = shared.tree.wrapper.set(Box::new(FaultWrapper(Arc::clone(&faults))));
        let root = Root::spawn(shared);
        let handle = root.handle();
        let clock = ClockWatch::new(handle.clone()).map(Arc::new);
        let (path, recorder) = (handle.path(), Recorder::new(handle.clone(), clock.clone()));
        Ok(Self { handle, path, faults, recorder, patience: PATIENCE, clock, root })
    }

    async fn come_up(&self) -> Result<Result<(), StartError>, String> {
        match self.recorder.within(self.patience, self.root.up()).await {
            Ok(result) => Ok(result),
            Err(stuck) => {
                let text = format!("`{}` did not come up{}", self.path, stuck.after());
                Err(self.with_status(text).await)
            }
        }
    }

    #[track_caller]
    fn at_next_start(&self, path: &str, fault: StartFault) {
        match self.full(path) {
            Ok(full) => self.faults.at_start(&full, fault),
            Err(text) => panic!("{text}"),
        }
    }

    /// Waits for an event, beginning with number `next` of the log.
    async fn until(
        &self,
        mut next: usize,
        is_wanted: impl Fn(&Event) -> bool + Send + Sync,
    ) -> Result<(), Stuck> {
        let look = |log: &mut LoggedEvents| {
            let new = &log.events[next..];
            next = log.events.len();
            new.iter().any(&is_wanted).then_some(Ok(()))
        };
        self.recorder.until(self.patience, look).await
    }

    fn search(&self, wanted: Vec<Expect>, exactly: bool) -> Assertion<'_, Vec<Event>> {
        Assertion::new(async move {
            wanted.iter().find_map(Expect::problem).map_or(Ok(()), Err)?;
            let mut search = Search::new(&self.recorder.log(), &wanted, exactly);
            let looked = self.recorder.until(self.patience, |log| search.look(log)).await;
            looked.map_err(|stuck| search.failure(&self.recorder.log(), &stuck))
        })
    }

    /// Returns the path including the root.
    fn full(&self, path: &str) -> Result<String, String> {
        if path.is_empty() || path.split('/').any(str::is_empty) {
            return Err(ControlError::NotAChild { path: path.to_owned() }.to_string());
        }
        Ok(self.handle.full_path(path).to_string())
    }

    fn check_left_over(&self) -> Result<(), String> {
        let live = self.live();
        if !live.is_empty() {
            return Err(format!("`{}` has ended{live}", self.path));
        }
        let unused = self.faults.unused();
        let Some((path, starts)) = unused.first() else { return Ok(()) };
        let log = self.recorder.log();
        let what = match log.starts(path) {
            0 => log.no_such_child(path),
            1 => "it was started once, and not again after the fault was set".to_owned(),
            starts => {
                format!("it was started {starts} times, and not again after the fault was set")
            }
        };
        Err(format!("`{path}` has {starts} start fault(s) left: {what}"))
    }

    /// Lists the incarnations that are alive, as the end of a sentence.
    fn live(&self) -> String {
        let live = self.faults.live();
        let each = live.iter().map(|(path, incarnation, hangs)| {
            let hangs = if *hangs { ", hangs" } else { "" };
            format!("\n  {} (incarnation {incarnation}{hangs})", relative(&self.path, path))
        });
        let each: String = each.collect();
        if each.is_empty() { each } else { format!(", but these are still running:{each}") }
    }

    /// Appends the status of the tree and its last events to a text.
    async fn with_status(&self, mut text: String) -> String {
        if let Ok(status) = self.handle.status().await {
            text += &format!("\nthe tree:\n{}", status.to_string().trim_end());
        }
        text + "\nwhat has happened:\n" + &self.recorder.log().tail()
    }
}

/// A future that panics with the text of its error.
///
/// The panic names the line of the test that awaits the future, not a line of this crate.
#[must_use = "nothing is asserted unless the future is awaited"]
pub(super) struct Assertion<'a, T> {
    future: Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>,
}

impl<'a, T> Assertion<'a, T> {
    pub(super) fn new(future: impl Future<Output = Result<T, String>> + Send + 'a) -> Self {
        Self { future: Box::pin(future) }
    }
}

impl<T> Future for Assertion<'_, T> {
    type Output = T;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match self.future.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(value)) => Poll::Ready(value),
            Poll::Ready(Err(text)) => panic!("{text}"),
        }
    }
}
