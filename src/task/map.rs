//! The description of a stream of tasks.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::thread;
use std::time::Duration;

use super::report::TaskResult;
use super::stream::TaskStream;
use super::supervisor::TaskSupervisor;

/// A builder of a [`TaskStream`], created by [`TaskSupervisor::map`].
///
/// The example of [`TaskSupervisor::map`] sets its options.
#[must_use = "a builder does nothing until `stream` is called and polled"]
pub struct TaskMap<I: Iterator, F, T, O = TaskResult<T>> {
    tasks: TaskSupervisor,
    items: I,
    task: F,
    name: String,
    concurrency: NonZeroUsize,
    ordered: bool,
    timeout: Option<Duration>,
    keep: fn(&I::Item) -> Option<I::Item>,
    output: fn(Option<I::Item>, TaskResult<T>) -> O,
    of: PhantomData<fn() -> T>,
}

impl TaskSupervisor {
    /// Describes a stream of the values of many tasks, of which only a few run at a time.
    ///
    /// `task` is called for one item after another, when the stream is polled and there is room for another
    /// task. See [`TaskMap`] for the options. This is Elixir's `Task.Supervisor.async_stream`.
    ///
    /// ```
    /// use verger::task::TaskSupervisor;
    /// use verger::{Context, Exit, Supervisor};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let tasks = TaskSupervisor::new("tasks");
    /// let app = Supervisor::builder("app").child(tasks.spec()).build()?.start().await?;
    ///
    /// let mut squares = tasks.map(1..=3, async |n| n * n).concurrency(2).stream();
    /// let mut sum = 0;
    /// while let Some(square) = squares.next().await {
    ///     sum += square?;
    /// }
    /// assert_eq!(sum, 14);
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn map<I, F, Fut>(&self, items: I, task: F) -> TaskMap<I::IntoIter, F, Fut::Output>
    where
        I: IntoIterator,
        F: FnMut(I::Item) -> Fut,
        Fut: Future<Output: Send + 'static> + Send + 'static,
    {
        TaskMap::new(self.clone(), items.into_iter(), task)
    }
}

/// Returns how many tasks can make progress at the same time.
pub(super) fn parallelism() -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

impl<I: Iterator, F, T> TaskMap<I, F, T> {
    pub(super) fn new(tasks: TaskSupervisor, items: I, task: F) -> Self {
        Self {
            tasks,
            items,
            task,
            name: "item".to_owned(),
            concurrency: parallelism(),
            ordered: true,
            timeout: None,
            keep: |_| None,
            output: |_, result| result,
            of: PhantomData,
        }
    }

    /// Makes the items of the stream pairs of an input and the result of its task.
    pub fn keep_inputs(self) -> TaskMap<I, F, T, (I::Item, TaskResult<T>)>
    where
        I::Item: Clone,
    {
        TaskMap {
            tasks: self.tasks,
            items: self.items,
            task: self.task,
            name: self.name,
            concurrency: self.concurrency,
            ordered: self.ordered,
            timeout: self.timeout,
            keep: |item| Some(item.clone()),
            output: |item, result| (item.expect("every input is kept"), result),
            of: PhantomData,
        }
    }
}

impl<I: Iterator, F, T, O> TaskMap<I, F, T, O> {
    /// Sets the name of each task. Default: `item`, so that the paths are `app/tasks/item#1` and so on.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets how many tasks run or wait to be read at the same time. Default: the available parallelism.
    ///
    /// # Panics
    ///
    /// If `max` is 0.
    pub fn concurrency(mut self, max: usize) -> Self {
        self.concurrency =
            NonZeroUsize::new(max).expect("a concurrency of 0 runs no task; write 1 or more");
        self
    }

    /// Returns results in the order in which the tasks end, instead of that of the inputs.
    pub fn unordered(mut self) -> Self {
        self.ordered = false;
        self
    }

    /// Aborts a task that takes longer than this. Its result is
    /// [`TaskError::TimedOut`](super::TaskError::TimedOut). Default: no timeout.
    ///
    /// The time counts from the first poll of the task, also while the stream isn't polled.
    pub fn timeout(mut self, after: Duration) -> Self {
        self.timeout = Some(after);
        self
    }

    /// Returns the stream, which starts the first tasks when it is polled.
    pub fn stream<'a, Fut>(self) -> TaskStream<'a, O>
    where
        I: Send + 'a,
        I::Item: Send + 'a,
        F: FnMut(I::Item) -> Fut + Send + 'a,
        Fut: Future<Output = T> + Send + 'static,
        T: Send + 'static,
        O: 'a,
    {
        let Self { tasks, mut items, mut task, name, timeout, keep, output, .. } = self;
        let next = move || {
            let item = items.next()?;
            let kept = keep(&item);
            let task = tasks.spawn_within(name.clone(), timeout, task(item)).abort_on_drop();
            Some(Box::pin(async move { output(kept, task.await) }) as _)
        };
        TaskStream::new(Box::new(next), self.concurrency, self.ordered)
    }
}

impl<I: Iterator, F, T, O> fmt::Debug for TaskMap<I, F, T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskMap")
            .field("tasks", &self.tasks)
            .field("name", &self.name)
            .field("concurrency", &self.concurrency)
            .field("ordered", &self.ordered)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
