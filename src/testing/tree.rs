//! A tree under test: what a test does to it, and what it waits for.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::assertion::Assertion;
use super::builder::Builder;
use super::expect::{Expect, relative};
use super::faults::{Faults, StartFault};
use super::log::{Recorder, Search, Stuck};
use crate::app::Root;
use crate::child::ChildSpec;
use crate::dead_letter::DeadLetter;
use crate::error::{ControlError, RunError, StartError};
use crate::exit::ExitError;
use crate::handle::{ChildRef, SupervisorHandle};
use crate::lifecycle::Lifecycle;
use crate::path::Path;
use crate::status::{Event, EventKind};

/// How long a test waits for anything, unless it says otherwise.
const PATIENCE: Duration = Duration::from_secs(60 * 60);

/// A running tree whose children can be made to fail, and whose events are recorded.
///
/// See the [module](super) for how it is used. Paths are relative to the root, as for a
/// [`SupervisorHandle`]: `db`, `ingest/mqtt`, `conns/conn#1`.
///
/// What is asked of a `TestTree` is an assertion: it panics, in the line of the test, if it does
/// not come true. What is asked of its [`handle`](Self::handle) is answered with a `Result`.
///
/// A test ends with [`stop`](Self::stop), or with [`ended`](Self::ended) if the tree ends by
/// itself: these see to it that nothing is left. Dropping a `TestTree` before aborts the tree and
/// looks at nothing, so that a test that fails elsewhere says only why.
#[derive(Debug)]
#[must_use = "the tree is aborted when this is dropped"]
pub struct TestTree {
    handle: SupervisorHandle,
    path: Path,
    faults: Arc<Faults>,
    recorder: Recorder,
    patience: Duration,
    // Aborts the tree when it is dropped.
    root: Root,
}

impl TestTree {
    /// Builds and starts a tree, and resolves when it is up: as
    /// [`Supervisor::start`](crate::Supervisor::start) does.
    ///
    /// What happened until then is in [`events`](Self::events), but [`expect`](Self::expect) begins
    /// with what comes after it. To look at the start, or to let a child fail in it, use
    /// [`spawn`](Self::spawn).
    ///
    /// # Panics
    ///
    /// If it can't be built, does not come up, or not within the [`patience`](Self::patience).
    pub fn start(tree: impl Builder) -> impl Future<Output = Self> {
        let spawned = Self::try_spawn(tree);
        Assertion::new(async move {
            let tree = spawned?;
            tree.come_up().await?.map_err(|error| error.to_string())?;
            tree.forget();
            Ok(tree)
        })
    }

    /// The same for a tree that may not come up.
    ///
    /// # Errors
    ///
    /// As for [`Supervisor::start`](crate::Supervisor::start).
    ///
    /// # Panics
    ///
    /// If it can't be built, does not come up within the [`patience`](Self::patience), or leaves
    /// something behind when it does not come up.
    pub fn try_start(tree: impl Builder) -> impl Future<Output = Result<Self, StartError>> {
        let spawned = Self::try_spawn(tree);
        Assertion::new(async move {
            let tree = spawned?;
            if let Err(error) = tree.come_up().await? {
                tree.nothing_is_left()?;
                return Ok(Err(error));
            }
            tree.forget();
            Ok(Ok(tree))
        })
    }

    /// Builds and starts a tree, and waits for nothing.
    ///
    /// On a runtime with one thread, as `#[tokio::test]` makes it, nothing happens in the tree
    /// before the test awaits something. So faults that are set right after this are there in time
    /// for the first start.
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
    /// If it can't be built, and outside of a tokio runtime that has its timers enabled.
    #[track_caller]
    pub fn spawn(tree: impl Builder) -> Self {
        match Self::try_spawn(tree) {
            Ok(tree) => tree,
            Err(text) => panic!("{text}"),
        }
    }

    /// Sets how long the tree may take for what is waited for. Default: one hour, which is nothing
    /// while the clock is paused. A test in real time should be less patient.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Resolves when the tree is up.
    ///
    /// # Panics
    ///
    /// If it does not come up, or not within the [`patience`](Self::patience).
    pub fn up(&self) -> impl Future<Output = ()> + Send {
        Assertion::new(async move { self.come_up().await?.map_err(|error| error.to_string()) })
    }

    /// A handle to the root, for all that is not an assertion.
    #[must_use]
    pub fn handle(&self) -> &SupervisorHandle {
        &self.handle
    }

    /// Resolves when the child is in this state: at once if it is in it already, otherwise when it
    /// has come to it, even if it did not stay. The child need not be there yet.
    ///
    /// # Panics
    ///
    /// If the tree ends before, or the [`patience`](Self::patience) does. The text shows the tree.
    pub fn wait_for<'a>(
        &'a self,
        path: &'a str,
        state: Lifecycle,
    ) -> impl Future<Output = ()> + Send + 'a {
        Assertion::new(async move {
            let full = self.full(path)?;
            let mut next = self.recorder.log().events.len();
            let there = match self.handle.which_child(path).await {
                Ok(child) => Some(child.lifecycle),
                Err(_) => self.recorder.log().last_state(&full),
            };
            if there == Some(state) {
                return Ok(());
            }
            let looked = self.recorder.until(self.patience, |log| {
                let new = &log.events[next..];
                next = log.events.len();
                let come = new.iter().any(|event| {
                    let to = match event.kind {
                        EventKind::Moved { to, .. } => Some(to),
                        _ => None,
                    };
                    to == Some(state) && event.path.as_str() == full
                });
                come.then_some(Ok(()))
            });
            match looked.await {
                Ok(()) => Ok(()),
                Err(stuck) => {
                    let seen = match self.recorder.log().last_state(&full) {
                        Some(seen) => format!("it is {seen}"),
                        None => format!("there is no `{full}`"),
                    };
                    let text = format!("`{full}` did not become {state}, {seen}: {stuck}");
                    Err(self.with_status(text).await)
                }
            }
        })
    }

    /// Aborts a child, as an outsider would, and resolves when that run of it is over. For its
    /// supervisor it is a failure like any other.
    ///
    /// # Panics
    ///
    /// If the child is not running, and if it is still there after the [`patience`](Self::patience).
    pub fn kill<'a>(&'a self, path: &'a str) -> impl Future<Output = ()> + Send + 'a {
        Assertion::new(async move {
            let full = self.full(path)?;
            let mut next = self.recorder.log().events.len();
            let text = |error: ControlError| format!("can't kill `{full}`: {error}");
            let incarnation = self.handle.which_child(path).await.map_err(text)?.incarnation;
            self.handle.kill_child(path).await.map_err(text)?;
            let looked = self.recorder.until(self.patience, |log| {
                let new = &log.events[next..];
                next = log.events.len();
                let over = new.iter().any(|event| {
                    event.path.as_str() == full
                        && event.incarnation >= incarnation
                        && match event.kind {
                            // That it is errored is said first; the rest when it is gone.
                            EventKind::Moved { from, to, .. } => {
                                from == Lifecycle::Errored || to == Lifecycle::Stopped
                            }
                            EventKind::GaveUp { .. } | EventKind::Leaked => true,
                            _ => false,
                        }
                });
                over.then_some(Ok(()))
            });
            match looked.await {
                // To kill the last child may end the tree.
                Ok(()) | Err(Stuck::Ended(_)) => Ok(()),
                Err(stuck) => {
                    let text = format!("`{full}` was killed and did not end: {stuck}");
                    Err(self.with_status(text).await)
                }
            }
        })
    }

    /// Lets a running child hang, from now on and for as long as this run of it lasts: it does
    /// nothing more, and ignores the request to stop until it is aborted.
    ///
    /// Of a supervisor this means that nobody minds its children, and its own supervisor can't
    /// abort it in order: it is reported as leaked, and then aborted with all below it.
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
            // It was spawned and has not done anything yet.
            Some(Lifecycle::Activating | Lifecycle::Active | Lifecycle::Deactivating) => {
                self.faults.at_start(&full, StartFault::Hang);
            }
            Some(state) => panic!("`{full}` can't hang: it is {state}"),
            None => panic!("`{full}` can't hang: there is no such child"),
        }
    }

    /// Lets the next start of a child fail with this error. Called twice, the next two fail.
    ///
    /// The child itself is not asked: what has an `activate` fails in it; a function fails when it
    /// is first polled, and then it is Active already, unless it has
    /// [`Readiness::Signal`](crate::Readiness::Signal). With
    /// [`ExitError::ignore`](crate::ExitError::ignore) it declines.
    ///
    /// A child of a dynamic supervisor may be named with its number, or without, as in
    /// `conns/conn`: then it is the next of that name.
    ///
    /// # Panics
    ///
    /// If the path is malformed. That the start did not come is told by [`stop`](Self::stop) and
    /// [`ended`](Self::ended).
    #[track_caller]
    pub fn fail_next_start(&self, path: &str, error: impl Into<ExitError>) {
        self.at_next_start(path, StartFault::Fail(error.into()));
    }

    /// Lets the next start of a child hang, as [`hang`](Self::hang) does. What is ready as soon as
    /// it is spawned, a function by default, becomes Active nevertheless.
    ///
    /// # Panics
    ///
    /// As for [`fail_next_start`](Self::fail_next_start).
    #[track_caller]
    pub fn hang_next_start(&self, path: &str) {
        self.at_next_start(path, StartFault::Hang);
    }

    /// Adds a child to the supervisor at `parent`, or to the root if that is empty; as
    /// [`SupervisorHandle::start_child`] does. Faults can strike it, too.
    ///
    /// # Errors
    ///
    /// As for [`SupervisorHandle::supervisor`] and [`SupervisorHandle::start_child`].
    pub async fn start_child(
        &self,
        parent: &str,
        spec: impl Into<ChildSpec>,
    ) -> Result<ChildRef, ControlError> {
        let spec = self.faults.wrap(spec.into());
        match parent {
            "" => self.handle.start_child(spec).await,
            _ => self.handle.supervisor(parent).await?.start_child(spec).await,
        }
    }

    /// Resolves when these events have happened, in this order, and returns them. What happens in
    /// between is passed over.
    ///
    /// It begins after the last event that was expected before, or after the
    /// [`start`](Self::start). Also what has happened before this was called counts, and what
    /// happened before the tree ended.
    ///
    /// # Panics
    ///
    /// If the tree ends before, or the [`patience`](Self::patience) does, or if something is
    /// expected that can't happen. The text shows what happened instead.
    pub fn expect<E: Into<Expect>>(
        &self,
        events: impl IntoIterator<Item = E>,
    ) -> impl Future<Output = Vec<Event>> + Send {
        self.search(events.into_iter().map(Into::into).collect(), false)
    }

    /// The same for events that come one directly after the other, with nothing before, and nothing
    /// in between: in the whole tree.
    ///
    /// # Panics
    ///
    /// As for [`expect`](Self::expect), and as soon as anything else happens.
    pub fn expect_exactly<E: Into<Expect>>(
        &self,
        events: impl IntoIterator<Item = E>,
    ) -> impl Future<Output = Vec<Event>> + Send {
        self.search(events.into_iter().map(Into::into).collect(), true)
    }

    /// Passes over what has happened so far: the next [`expect`](Self::expect) begins here.
    pub fn forget(&self) {
        self.recorder.log().forget();
    }

    /// All events since the tree was built, whether they were expected or not.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        self.recorder.log().events.clone()
    }

    /// All dead letters since the tree was built, those that are
    /// [suppressed](crate::SupervisorBuilder::suppress_dead_letters) included.
    #[must_use]
    pub fn dead_letters(&self) -> Vec<DeadLetter> {
        self.recorder.log().letters.clone()
    }

    /// Stops the tree in order, unless it has ended already, and sees to it that nothing is left.
    /// Events can be expected afterwards as well.
    ///
    /// # Panics
    ///
    /// If the tree gave up or could not start, something leaked, it has not stopped within the
    /// [`patience`](Self::patience), a child of it is still there, or a start that was to fail did
    /// not come.
    pub fn stop(&self) -> impl Future<Output = ()> + Send {
        Assertion::new(async move {
            let stopped = timeout(self.patience, self.handle.stop("the test is over")).await;
            let result = stopped.map_err(|_| {
                let patience = self.patience;
                format!("`{}` did not stop within {patience:?}{}", self.path, self.live())
            })?;
            result.map_err(|error| format!("`{}` did not end well: {error}", self.path))?;
            self.nothing_is_left()
        })
    }

    /// Resolves when the tree has ended by itself, and sees to it that nothing is left.
    ///
    /// # Errors
    ///
    /// As for [`SupervisorHandle::wait`]: how it ended.
    ///
    /// # Panics
    ///
    /// If it has not ended within the [`patience`](Self::patience), a child of it is still there
    /// that is not told to have leaked, or a start that was to fail did not come.
    pub fn ended(&self) -> impl Future<Output = Result<(), RunError>> + Send {
        Assertion::new(async move {
            let Ok(result) = timeout(self.patience, self.handle.wait()).await else {
                let text = format!("`{}` did not end within {:?}", self.path, self.patience);
                return Err(self.with_status(text).await);
            };
            if !matches!(result, Err(RunError::Leaked { .. })) {
                self.nothing_is_left()?;
            }
            Ok(result)
        })
    }

    fn try_spawn(tree: impl Builder) -> Result<Self, String> {
        let faults = Arc::new(Faults::default());
        let built = tree.build_with(&|child| faults.wrap(child));
        let root = built.map_err(|error| error.to_string())?.spawn();
        let handle = root.handle();
        let (path, recorder) = (handle.path(), Recorder::new(handle.clone()));
        Ok(Self { handle, path, faults, recorder, patience: PATIENCE, root })
    }

    async fn come_up(&self) -> Result<Result<(), StartError>, String> {
        match timeout(self.patience, self.root.up()).await {
            Ok(result) => Ok(result),
            Err(_) => {
                let text = format!("`{}` did not come up within {:?}", self.path, self.patience);
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

    fn search(&self, wanted: Vec<Expect>, exactly: bool) -> Assertion<'_, Vec<Event>> {
        Assertion::new(async move {
            wanted.iter().find_map(Expect::problem).map_or(Ok(()), Err)?;
            let mut search = Search::new(&self.recorder.log(), &wanted, exactly);
            let looked = self.recorder.until(self.patience, |log| search.look(log)).await;
            looked.map_err(|stuck| search.failure(&self.recorder.log(), &stuck))
        })
    }

    /// The path from the root.
    fn full(&self, path: &str) -> Result<String, String> {
        if path.is_empty() || path.split('/').any(str::is_empty) {
            return Err(ControlError::NotAChild { path: path.to_owned() }.to_string());
        }
        Ok(format!("{}/{path}", self.path))
    }

    fn nothing_is_left(&self) -> Result<(), String> {
        let live = self.live();
        if !live.is_empty() {
            return Err(format!("`{}` has ended{live}", self.path));
        }
        let unused = self.faults.unused();
        let Some((path, starts)) = unused.first() else { return Ok(()) };
        Err(format!(
            "`{path}` was to fail or hang in {starts} more start(s), which did not come; is the \
             path right?"
        ))
    }

    /// Who is still there, as the end of a sentence.
    fn live(&self) -> String {
        let live = self.faults.live();
        let each = live.iter().map(|(path, incarnation, hangs)| {
            let hangs = if *hangs { ", hangs" } else { "" };
            format!("\n  {} (incarnation {incarnation}{hangs})", relative(&self.path, path))
        });
        let each: String = each.collect();
        if each.is_empty() { each } else { format!(", and these are still there:{each}") }
    }

    /// The text, and what the tree looks like.
    async fn with_status(&self, mut text: String) -> String {
        if let Ok(status) = self.handle.status().await {
            text += &format!("\nthe tree:\n{}", status.to_string().trim_end());
        }
        text + "\nwhat has happened:\n" + &self.recorder.log().tail()
    }
}
