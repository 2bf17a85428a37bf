//! The results of many tasks, of which a bounded number runs: the description of them, and the stream.
//!
//! Each task has a separate waker. Without it each wake would poll all of them.
//!
//! # Invariants
//!
//! 1. No more tasks run, or have a result that wasn't returned, than the concurrency allows.
//! 2. One poll of the stream polls each task once at most.

use std::collections::{BTreeMap, VecDeque};
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker, ready};
use std::time::Duration;
use std::{fmt, thread};

use futures_core::Stream;
use tokio::task::coop::consume_budget;

use super::report::TaskResult;
use super::supervisor::TaskSupervisor;
use crate::panic::wake;
use crate::sync::Mutex;

/// Resolves to an item of the stream. Aborts its task when it is dropped.
pub(super) type Running<'a, O> = Pin<Box<dyn Future<Output = O> + Send + 'a>>;

/// Starts the task of the next item, if there is one.
type NextTask<'a, O> = Box<dyn FnMut() -> Option<Running<'a, O>> + Send + 'a>;

/// A stream of the results of tasks, made by [`TaskMap::stream`](super::TaskMap::stream).
///
/// It starts tasks only while it is polled, and takes an item from the iterator only if there is room for
/// another task. Ordered, a slow first task holds back the results behind it, which count as long as they wait.
/// A task that panics or exceeds its timeout is an item of the stream, and the others run on.
///
/// Dropping the stream aborts the tasks that run. When the iterator is over and every result was returned, the
/// stream has ended and can be polled further.
///
/// The example of [`TaskSupervisor::map`](super::TaskSupervisor::map) reads one.
#[must_use = "a stream does nothing unless it is polled"]
pub struct TaskStream<'a, O> {
    /// `None` once the iterator is over.
    next: Option<NextTask<'a, O>>,
    concurrency: NonZeroUsize,
    ordered: bool,
    /// By the number of the input.
    entries: BTreeMap<u64, Entry<'a, O>>,
    number: u64,
    queue: Arc<ReadyQueue>,
    /// What was ready at the begin of this poll, or of an earlier one that has returned an item.
    ready: VecDeque<u64>,
}

enum Entry<'a, O> {
    Running(Running<'a, O>, Waker),
    Unread(O),
}

/// The stream moves no future: each is boxed.
impl<O> Unpin for TaskStream<'_, O> {}

impl<'a, O> TaskStream<'a, O> {
    pub(super) fn new(next: NextTask<'a, O>, concurrency: NonZeroUsize, ordered: bool) -> Self {
        Self {
            next: Some(next),
            concurrency,
            ordered,
            entries: BTreeMap::new(),
            number: 0,
            queue: Arc::default(),
            ready: VecDeque::new(),
        }
    }

    /// Returns the next result, or `None` after the last one.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: no result is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<O> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Starts tasks until no more are allowed.
    fn start_tasks(&mut self) {
        while self.entries.len() < self.concurrency.get()
            && let Some(next) = &mut self.next
        {
            let Some(running) = next() else {
                self.next = None;
                return;
            };
            let waker = Ready::waker(&self.queue, self.number);
            self.entries.insert(self.number, Entry::Running(running, waker));
            self.ready.push_back(self.number);
            self.number += 1;
        }
    }

    /// Polls a task. Returns its result if that is the next item.
    fn poll_task(&mut self, number: u64) -> Option<O> {
        let Some(Entry::Running(running, waker)) = self.entries.get_mut(&number) else {
            return None;
        };
        let waker = waker.clone();
        let Poll::Ready(output) = running.as_mut().poll(&mut Context::from_waker(&waker)) else {
            return None;
        };
        if self.ordered {
            self.entries.insert(number, Entry::Unread(output));
            return self.first_unread();
        }
        self.entries.remove(&number);
        Some(output)
    }

    /// Takes the result of the first input that is left, if it exists.
    fn first_unread(&mut self) -> Option<O> {
        let first = self.entries.first_entry()?;
        if let Entry::Running(..) = first.get() {
            return None;
        }
        match first.remove() {
            Entry::Unread(output) => Some(output),
            Entry::Running(..) => None,
        }
    }
}

impl<O> Stream for TaskStream<'_, O> {
    type Item = O;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<O>> {
        ready!(pin!(consume_budget()).poll(cx));
        // Before the queue is read, so that no wake is missed in between.
        self.queue.wake_by(cx.waker());
        if let Some(output) = self.first_unread() {
            return Poll::Ready(Some(output));
        }
        self.start_tasks();
        let queued = self.queue.take();
        self.ready.extend(queued);
        while let Some(number) = self.ready.pop_front() {
            if let Some(output) = self.poll_task(number) {
                return Poll::Ready(Some(output));
            }
        }
        if self.entries.is_empty() { Poll::Ready(None) } else { Poll::Pending }
    }
}

impl<O> fmt::Debug for TaskStream<'_, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskStream")
            .field("concurrency", &self.concurrency)
            .field("ordered", &self.ordered)
            .field("pending", &self.entries.len())
            .finish_non_exhaustive()
    }
}

/// The futures that were woken since the queue was taken.
#[derive(Debug, Default)]
struct ReadyQueue(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    ready: Vec<u64>,
    /// The waker of the task that polls the futures.
    waker: Option<Waker>,
}

impl ReadyQueue {
    /// Sets what is woken by the next wake of a future.
    fn wake_by(&self, waker: &Waker) {
        let replaced = {
            let mut state = self.0.lock();
            if state.waker.as_ref().is_some_and(|kept| kept.will_wake(waker)) {
                return;
            }
            state.waker.replace(waker.clone())
        };
        drop(replaced);
    }

    /// Returns the futures that were woken, some of them more than once.
    fn take(&self) -> Vec<u64> {
        std::mem::take(&mut self.0.lock().ready)
    }
}

/// Wakes one of the futures.
pub(super) struct Ready {
    queue: Arc<ReadyQueue>,
    number: u64,
}

impl Ready {
    fn waker(queue: &Arc<ReadyQueue>, number: u64) -> Waker {
        Waker::from(Arc::new(Self { queue: Arc::clone(queue), number }))
    }
}

impl Wake for Ready {
    fn wake(self: Arc<Self>) {
        let waker = {
            let mut state = self.queue.0.lock();
            state.ready.push(self.number);
            state.waker.take()
        };
        if let Some(waker) = waker {
            wake(waker);
        }
    }
}

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
