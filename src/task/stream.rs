//! A stream of the results of tasks, of which a bounded number runs.
//!
//! # Invariants
//!
//! 1. No more tasks run, or have a result that wasn't returned, than the concurrency allows.
//! 2. One poll of the stream polls each task once at most.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::{Future, poll_fn};
use std::num::NonZeroUsize;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use futures_core::Stream;
use tokio::task::coop::consume_budget;

use super::ready::{Ready, ReadyQueue};

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
