//! Running a tree: as a program's main future, behind a handle, or as a child.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::task::JoinHandle;

use crate::child::{Child, ChildFactory, ChildMeta, ChildSpec, Context, function_kind};
use crate::error::{BuildWarning, RunError, StartError};
use crate::exit::Exit;
use crate::handle::{self, SupervisorHandle, request_stop, supervisor_below, until_up};
use crate::runtime::{Blueprint, End, SupervisorShared, supervise};

/// How long a graceful shutdown may take, unless the tree says otherwise.
const SHUTDOWN: Duration = Duration::from_secs(45);

/// How long it may take to abort all that is below a tree of which nothing is known, because a
/// factory makes it: enough for ten levels with the default `leak_timeout`.
const UNKNOWN_ABORT_BOUND: Duration = Duration::from_secs(10);

/// A checked tree, ready to run.
///
/// Made by [`SupervisorBuilder::build`](crate::SupervisorBuilder::build). There are three ways to
/// run one: [`run`](Self::run) until it ends by itself, [`with_graceful_shutdown`] until something
/// else happens, and [`start`](Self::start) to go on with a [`SupervisorHandle`]. It is also a
/// [`Child`]: [`SupervisorBuilder::child`](crate::SupervisorBuilder::child) takes it as it is, and
/// knows it for a supervisor.
///
/// [`with_graceful_shutdown`]: Self::with_graceful_shutdown
#[derive(Clone)]
#[must_use = "a tree does nothing until it is run"]
pub struct Supervisor {
    blueprint: Arc<Blueprint>,
    warnings: Arc<[BuildWarning]>,
}

impl Supervisor {
    pub(super) fn new(blueprint: Arc<Blueprint>, warnings: Vec<BuildWarning>) -> Self {
        Self { blueprint, warnings: warnings.into() }
    }

    /// What is legal in this tree, and probably not meant. It was logged, too.
    #[must_use]
    pub fn warnings(&self) -> &[BuildWarning] {
        &self.warnings
    }

    /// Starts the tree, and returns when its last child has had its turn: it is up, or down for
    /// good, or waits for another that is. A child that fails meanwhile is waited for as long as it
    /// is restarted.
    ///
    /// # Errors
    ///
    /// * [`StartError::ChildFailed`] with [`FirstStart::Fail`](crate::FirstStart::Fail), if the
    ///   first start of a child failed; what had started was stopped in reverse order,
    /// * [`StartError::Ended`] if the tree ended meanwhile, otherwise than well,
    /// * [`StartError::Stopped`] if it was stopped meanwhile.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime that has its timers enabled.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it is ready, every child is aborted.
    pub async fn start(self) -> Result<SupervisorHandle, StartError> {
        let root = Root::spawn(self.blueprint);
        root.up().await?;
        Ok(root.detach())
    }

    /// The tree in its own task, before that has done anything.
    #[cfg(feature = "testing")]
    pub(crate) fn spawn(self) -> Root {
        Root::spawn(self.blueprint)
    }

    /// Runs the tree until it ends by itself: it gives up, its significant children have ended, or
    /// somebody stops it through [`Context::parent`].
    ///
    /// # Errors
    ///
    /// As for [`SupervisorHandle::wait`].
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime that has its timers enabled.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it is ready, every child is aborted. To stop in order, use
    /// [`with_graceful_shutdown`](Self::with_graceful_shutdown).
    pub async fn run(self) -> Result<(), RunError> {
        Root::spawn(self.blueprint).handle().wait().await
    }

    /// Runs the tree, prints to stderr how it ended if it did not end well, and returns the exit
    /// code for `main`.
    ///
    /// | code | meaning |
    /// | --- | --- |
    /// | 0 | it finished, or was asked to stop |
    /// | 1 | it gave up, could not start, or was aborted |
    /// | 3 | it stopped, but something leaked |
    /// | the one that was set | a child failed too often, with [`OnExhausted::Exit`] |
    ///
    /// [`OnExhausted::Exit`]: crate::OnExhausted::Exit
    ///
    /// Code that blocks its thread would keep the runtime, and so the process, from ending: if
    /// something has leaked, the process is exited from here.
    ///
    /// # Panics
    ///
    /// As for [`run`](Self::run).
    pub async fn run_to_exit_code(self) -> ExitCode {
        let root = Root::spawn(self.blueprint);
        let result = root.handle().wait().await;
        exit_code(result, &root)
    }

    /// Runs the tree until `shutdown` resolves, and then stops it in order, within 45 s or
    /// [`stop_deadline`](crate::SupervisorBuilder::stop_deadline): what is left then is aborted.
    ///
    /// ```no_run
    /// # async fn f(tree: verger::Supervisor) -> Result<(), verger::RunError> {
    /// tree.with_graceful_shutdown(verger::signals()).await
    /// # }
    /// ```
    pub fn with_graceful_shutdown<F>(self, shutdown: F) -> GracefulShutdown<F>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        GracefulShutdown { tree: self, shutdown }
    }
}

impl IntoFuture for Supervisor {
    type Output = Result<(), RunError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervisor").field("blueprint", &self.blueprint).finish_non_exhaustive()
    }
}

/// A tree that is stopped in order when a future resolves; see
/// [`Supervisor::with_graceful_shutdown`].
#[must_use = "a tree does nothing until it is run"]
pub struct GracefulShutdown<F> {
    tree: Supervisor,
    shutdown: F,
}

impl<F: Future<Output = ()> + Send + 'static> GracefulShutdown<F> {
    /// Runs the tree, and returns the exit code for `main`; see [`Supervisor::run_to_exit_code`].
    ///
    /// # Panics
    ///
    /// As for [`Supervisor::run`].
    pub async fn run_to_exit_code(self) -> ExitCode {
        let (result, root) = self.run().await;
        exit_code(result, &root)
    }

    async fn run(self) -> (Result<(), RunError>, Root) {
        let within = self.tree.blueprint.rules.stop_deadline.unwrap_or(SHUTDOWN);
        let root = Root::spawn(self.tree.blueprint);
        let handle = root.handle();
        let result = tokio::select! {
            result = handle.wait() => result,
            () = self.shutdown => {
                request_stop(&root.shared, "graceful shutdown", Some(within));
                handle.wait().await
            }
        };
        (result, root)
    }
}

impl<F: Future<Output = ()> + Send + 'static> IntoFuture for GracefulShutdown<F> {
    type Output = Result<(), RunError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async { self.run().await.0 })
    }
}

impl<F> fmt::Debug for GracefulShutdown<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GracefulShutdown").field("tree", &self.tree).finish_non_exhaustive()
    }
}

/// The task of a root, aborted with all below it if this is dropped.
#[derive(Debug)]
pub(crate) struct Root {
    shared: Arc<SupervisorShared>,
    task: Option<JoinHandle<()>>,
}

impl Root {
    fn spawn(blueprint: Arc<Blueprint>) -> Self {
        // A runtime without timers is the caller's mistake, so the panic is to be his, too.
        drop(tokio::time::sleep(Duration::ZERO));
        let shared = handle::root(blueprint);
        let run = supervise(Arc::clone(&shared), None, |_| ());
        #[expect(clippy::disallowed_methods, reason = "the root's task; whoever runs it waits")]
        let task = tokio::spawn(run);
        Self { shared, task: Some(task) }
    }

    pub(crate) fn handle(&self) -> SupervisorHandle {
        SupervisorHandle::new(Arc::clone(&self.shared))
    }

    /// Waits until the tree is up, or has ended well of its own accord.
    pub(crate) async fn up(&self) -> Result<(), StartError> {
        let Some(end) = until_up(&self.shared).await else { return Ok(()) };
        match (&end, end.result(self.shared.path())) {
            (_, Err(RunError::Start(error))) => Err(error),
            (_, Err(error)) => Err(StartError::Ended(Box::new(error))),
            (End::AutoShutdown | End::Exit { .. }, Ok(())) => Ok(()),
            (_, Ok(())) => Err(StartError::Stopped { path: self.shared.path().clone() }),
        }
    }

    /// Lets the tree live on by itself.
    fn detach(mut self) -> SupervisorHandle {
        self.task = None;
        self.handle()
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

#[expect(clippy::print_stderr, reason = "what `main` would print if it returned the error")]
fn exit_code(result: Result<(), RunError>, root: &Root) -> ExitCode {
    let code = result.map_or_else(
        |error| {
            eprintln!("Error: {error}");
            error.exit_code()
        },
        |()| 0,
    );
    // However it ended: the runtime would wait for whoever blocks one of its threads.
    if !root.shared.leaked_below().is_empty() {
        std::process::exit(code.into());
    }
    code.into()
}

/// How a supervisor that is a child is made.
pub(super) fn factory_of(blueprint: Arc<Blueprint>) -> ChildFactory {
    let name = Arc::clone(&blueprint.name);
    // A function, though `Supervisor` is a `Child`: it does nothing in `activate` and `deactivate`,
    // and as a value each of its methods would have a box, and the value, too.
    let kind = function_kind(Below(blueprint), |below, ctx| Ok(run_below(&below.0, ctx)));
    ChildFactory::new(name, kind)
}

/// What a supervisor that is a child is made from.
struct Below(Arc<Blueprint>);

impl ChildMeta for Below {
    fn lends(&self) -> bool {
        self.0.lends
    }

    fn children(&self) -> &[ChildSpec] {
        &self.0.children
    }
}

fn run_below(
    blueprint: &Arc<Blueprint>,
    ctx: Context,
) -> impl Future<Output = Exit> + Send + use<> {
    supervise(supervisor_below(&ctx, blueprint), Some(ctx), End::exit)
}

/// A supervisor is ready when its first start has passed its last child. All its work is in `run`,
/// and its grace is for its children: give it [`Shutdown::Infinity`](crate::Shutdown::Infinity),
/// the default, also if it is made by [`child`](crate::child) or [`component`](crate::component).
// Who forgot to implement `Child` isn't helped by the one type of ours that does.
#[async_trait]
#[diagnostic::do_not_recommend]
impl Child for Supervisor {
    fn child_spec(spec: ChildSpec) -> ChildSpec {
        spec.supervising(UNKNOWN_ABORT_BOUND)
    }

    async fn run(&mut self, ctx: &Context) -> Exit {
        run_below(&self.blueprint, ctx.clone()).await
    }
}

impl From<Supervisor> for ChildSpec {
    fn from(tree: Supervisor) -> Self {
        let bound = tree.blueprint.abort_bound();
        Self::of_supervisor(factory_of(tree.blueprint), bound)
    }
}
