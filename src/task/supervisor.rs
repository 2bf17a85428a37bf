//! The supervisor of tasks: its description, and the way to it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::body::{self, BodyLimits};
use super::join::{Requested, Task, TaskState, why_not_running};
use super::place::Place;
use super::report::{TaskReport, TaskShared};
use crate::child::helpers::HelperGuard;
use crate::child::{ChildSpec, Context, once};
use crate::error::{BuildError, ControlError};
use crate::exit::Exit;
use crate::handle::SupervisorHandle;
use crate::path::check_name;
use crate::policy::Readiness;
use crate::spec::{DynamicSupervisor, DynamicSupervisorBuilder};

/// A supervisor of tasks that return a value: the description of it, and the way to it once it runs.
///
/// Make it before the tree, add its [`spec`](Self::spec) to the tree, and give a clone to each child that spawns
/// tasks. Each task is a [temporary](crate::RestartType::Temporary) child of the supervisor: it is listed as
/// `app/tasks/resize#7`, its panic is logged like that of every child, and it ends with its supervisor. The
/// [`Task`] that a call returns is awaited for the value. It is modelled on Elixir's `Task.Supervisor`.
///
/// A clone reaches the same supervisor, also after a restart of it. The value belongs to one place of one tree:
/// make one for each.
///
/// ```
/// use verger::task::TaskSupervisor;
/// use verger::{Context, Exit, Supervisor, worker_with};
///
/// async fn api(_ctx: Context, tasks: TaskSupervisor) -> Exit {
///     let thumb = tasks.spawn("resize", async { "a small picture" }).await?;
///     assert_eq!(thumb, "a small picture");
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let tasks = TaskSupervisor::new("tasks").max_children(100);
/// let app = Supervisor::builder("app")
///     .child(tasks.spec())
///     .child(worker_with("api", tasks.clone(), api))
///     .build()?
///     .start()
///     .await?;
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TaskSupervisor {
    builder: Arc<DynamicSupervisorBuilder>,
    place: Arc<Place>,
}

impl TaskSupervisor {
    /// Creates the value for a supervisor with this name.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self::at(Place::new(name.into()))
    }

    /// Returns the value for a supervisor that was started otherwise, such as that of
    /// [`Context::children`].
    ///
    /// ```
    /// use verger::task::TaskSupervisor;
    /// use verger::{Context, Exit};
    ///
    /// async fn api(ctx: Context) -> Exit {
    ///     let tasks = TaskSupervisor::of(&ctx.children());
    ///     assert_eq!(tasks.spawn("sum", async { 1 + 2 }).await?, 3);
    ///     Ok(())
    /// }
    /// # drop(api);
    /// ```
    #[must_use]
    pub fn of(handle: &SupervisorHandle) -> Self {
        Self::at(Place::of(handle))
    }

    fn at(place: Arc<Place>) -> Self {
        let mut builder = DynamicSupervisor::builder(&place.name);
        builder.description.options.registration = Some(Arc::clone(&place) as _);
        Self { builder: Arc::new(builder), place }
    }

    /// Limits the number of tasks. Default: no limit.
    ///
    /// A task above the limit is refused: awaiting it returns [`ControlError::MaxChildren`] at once. The limit
    /// applies to the specs that this value returns from now on, and not to those of earlier clones.
    #[must_use]
    pub fn max_children(mut self, max: usize) -> Self {
        self.builder = Arc::new(self.builder().max_children(max));
        self
    }

    /// Returns the builder of the supervisor, to set its options.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use verger::Supervisor;
    /// use verger::task::TaskSupervisor;
    ///
    /// let tasks = TaskSupervisor::new("tasks");
    /// let supervisor = tasks.builder().leak_timeout(Duration::from_secs(10));
    /// let app = Supervisor::builder("app").child(supervisor);
    /// # drop(app);
    /// ```
    pub fn builder(&self) -> DynamicSupervisorBuilder {
        DynamicSupervisorBuilder::clone(&self.builder)
    }

    /// Returns the spec of the supervisor, as a child of another one.
    pub fn spec(&self) -> ChildSpec {
        self.builder().into_child()
    }

    /// Returns a handle to the supervisor, to list, terminate or add children of any kind.
    ///
    /// # Errors
    ///
    /// [`ControlError::NotStarted`] if the supervisor has never run, [`ControlError::NotRunning`] while it
    /// waits for a restart or is stopped, and [`ControlError::Ended`] if its tree has ended.
    pub async fn handle(&self) -> Result<SupervisorHandle, ControlError> {
        self.place.handle().await
    }

    /// Spawns a task, and returns its value when awaited.
    ///
    /// The call doesn't wait for the start of the task. If the supervisor stops, or the
    /// task is terminated, its future is dropped at the next await point, without a grace. A task that has to
    /// clean up is spawned by [`spawn_with`](Self::spawn_with).
    ///
    /// Awaiting the task returns
    ///
    /// * [`TaskError::Failed`](super::TaskError::Failed) if the future panics,
    /// * [`TaskError::Stopped`](super::TaskError::Stopped) if the task is stopped or aborted before it has a
    ///   value,
    /// * [`TaskError::Refused`](super::TaskError::Refused) if the supervisor has reached its limit, is
    ///   stopping, or doesn't run: before its tree is started, while it waits for a restart, and after its end.
    pub fn spawn<F>(&self, name: impl Into<String>, future: F) -> Task<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        self.spawn_limited(name.into(), None, BodyLimits::default(), |_| future)
    }

    /// Spawns a task that handles its own cancellation.
    ///
    /// When it is cancelled, it has the grace of its child to return, and the value counts. After that it is
    /// aborted. The grace is that of the [`defaults`](DynamicSupervisorBuilder::defaults) of the supervisor.
    ///
    /// ```
    /// # use verger::task::{Task, TaskSupervisor};
    /// # fn example(tasks: &TaskSupervisor) -> Task<u32> {
    /// tasks.spawn_with("count", async |ctx| {
    ///     let mut counted = 0;
    ///     while !ctx.is_cancelled() {
    ///         counted += 1;
    ///         tokio::task::yield_now().await;
    ///     }
    ///     counted
    /// })
    /// # }
    /// ```
    pub fn spawn_with<F, Fut>(&self, name: impl Into<String>, run: F) -> Task<Fut::Output>
    where
        F: FnOnce(Context) -> Fut + Send + 'static,
        Fut: Future<Output: Send + 'static> + Send + 'static,
    {
        let limits = BodyLimits { cooperative: true, ..BodyLimits::default() };
        self.spawn_limited(name.into(), None, limits, run)
    }

    /// Spawns a task that is linked to a child, usually the one that spawns it.
    ///
    /// The task is aborted when this incarnation of the child ends, and the next one starts once the task has
    /// ended, as for [`Context::spawn`]. A panic of the task fails the child, unless the code that awaits the
    /// [`Task`] gets it: a task that no code has begun to await fails the child at once, and so does a `Task`
    /// that is dropped before it returns the panic. After the child was cancelled, a panic is only logged.
    ///
    /// On the context of an incarnation that has ended, the task is stopped before it begins.
    pub fn spawn_linked<F>(
        &self,
        ctx: &Context,
        name: impl Into<String>,
        future: F,
    ) -> Task<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        self.spawn_limited(name.into(), Some(ctx), BodyLimits::default(), |_| future)
    }

    /// Spawns a closure on tokio's blocking pool.
    ///
    /// A closure can't be aborted. When it is cancelled, its child has the grace of its
    /// supervisor's [`defaults`](DynamicSupervisorBuilder::defaults), and the value counts if the closure
    /// returns by then. Then the child is reported as leaked, by its path, after the
    /// [`leak_timeout`](DynamicSupervisorBuilder::leak_timeout) of the supervisor, and so is its end later. A
    /// closure that hasn't begun when it is cancelled never begins.
    pub fn spawn_blocking<T, F>(&self, name: impl Into<String>, closure: F) -> Task<T>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let run = |ctx, report, _linked| body::run_blocking(ctx, report, closure);
        self.start(name.into(), None, run)
    }

    /// Spawns a task of a stream.
    pub(super) fn spawn_within<F>(
        &self,
        name: String,
        timeout: Option<Duration>,
        future: F,
    ) -> Task<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let limits = BodyLimits { timeout, ..BodyLimits::default() };
        self.spawn_limited(name, None, limits, |_| future)
    }

    fn spawn_limited<F, Fut>(
        &self,
        name: String,
        linked_to: Option<&Context>,
        limits: BodyLimits,
        run: F,
    ) -> Task<Fut::Output>
    where
        F: FnOnce(Context) -> Fut + Send + 'static,
        Fut: Future<Output: Send + 'static> + Send + 'static,
    {
        let run = move |ctx, report, linked| body::run(ctx, report, linked, limits, run);
        self.start(name, linked_to, run)
    }

    /// Requests the start of the child that runs a task.
    fn start<T, F, Fut>(&self, name: String, linked_to: Option<&Context>, run: F) -> Task<T>
    where
        T: Send + 'static,
        F: FnOnce(Context, TaskReport<T>, Option<HelperGuard>) -> Fut + Send + 'static,
        Fut: Future<Output = Exit> + Send + 'static,
    {
        let place = Arc::clone(&self.place);
        let shared = Arc::new(TaskShared::new(linked_to));
        let (report, outcome) = TaskReport::new(&shared);
        if let Err(problem) = check_name(&name) {
            let parent = place.path().to_string();
            return Task::new(
                TaskState::Refused(BuildError::BadName { parent, problem }.into()),
                shared,
            );
        }
        let mut linked = None;
        if let Some(ctx) = linked_to {
            let Some(guard) = ctx.incarnation.admit_helper() else {
                return Task::new(TaskState::Unlinked(place.path().join(&name)), shared);
            };
            let token = shared.token().clone();
            guard.aborted_by(move || token.cancel());
            linked = Some(guard);
        }
        let Some(supervisor) = place.running() else {
            return Task::new(why_not_running(place, name), shared);
        };
        let spec = once(name.clone(), move |ctx| run(ctx, report, linked));
        // The answer to the start must not wait for a signal.
        let spec = spec.readiness(Readiness::OnStart);
        match SupervisorHandle::new(supervisor).request_start(spec) {
            Ok(start) => {
                let requested = Requested { outcome, start, place, name };
                Task::new(TaskState::Requested(requested), shared)
            }
            Err(error) => Task::new(TaskState::Refused(error), shared),
        }
    }
}
