//! The inbox of a supervisor: events from its children, calls from its handles, and stop requests.
//!
//! A push wakes the supervisor's task, and the supervisor takes everything that is waiting under one
//! lock. A channel would wake and lock for each item. perf: budgets row "restarts/s of 10,000"
//!
//! # Invariants
//!
//! 1. Everything that is pushed is taken once and in order, behind what is left of earlier batches.
//! 2. If the supervisor's task found the inbox empty, the next push wakes it, and no other push does.
//! 3. A batch yields events and requests in the order in which they were pushed, or events first.
//! 4. Nothing is pushed once the inbox is closed: events and requests are returned to the caller.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::child::StopLevel;
use crate::core::MachineEvent;
use crate::panic::wake;
use crate::sync::Mutex;

/// A buffer for this many items is kept. A larger one is dropped once it is empty.
const KEPT_CAPACITY: usize = 1024;

/// A call that stops the supervisor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StopRequest {
    /// The cause, in the caller's words.
    pub(crate) reason: Arc<str>,
    /// How urgent it is. A request for a level that is reached already has no effect.
    pub(crate) level: StopLevel,
}

/// What was pushed and isn't handled yet.
#[derive(Debug)]
pub(crate) struct Batch<R> {
    pub(crate) events: VecDeque<MachineEvent>,
    /// Each request with the number of events that were pushed before it.
    requests: VecDeque<(u64, R)>,
    /// How many events were taken from this batch.
    taken: u64,
    pub(crate) stop: Option<StopRequest>,
}

impl<R> Default for Batch<R> {
    fn default() -> Self {
        Self { events: VecDeque::new(), requests: VecDeque::new(), taken: 0, stop: None }
    }
}

impl<R> Batch<R> {
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.requests.is_empty() && self.stop.is_none()
    }

    pub(crate) fn next_event(&mut self) -> Option<MachineEvent> {
        let event = self.events.pop_front()?;
        self.taken += 1;
        Some(event)
    }

    /// Returns the next event, unless a request was pushed before it.
    pub(crate) fn next_event_in_order(&mut self) -> Option<MachineEvent> {
        match self.requests.front() {
            Some(&(before, _)) if before <= self.taken => None,
            _ => self.next_event(),
        }
    }

    pub(crate) fn next_request(&mut self) -> Option<R> {
        self.requests.pop_front().map(|(_, request)| request)
    }

    /// Keeps the first reason and the highest level.
    fn stop(&mut self, stop: StopRequest) {
        match &mut self.stop {
            None => self.stop = Some(stop),
            Some(first) => first.level = first.level.max(stop.level),
        }
    }

    /// Moves everything from `waiting` behind what is left.
    fn append(&mut self, waiting: &mut Self) {
        append(&mut self.events, &mut waiting.events);
        append(&mut self.requests, &mut waiting.requests);
        if let Some(stop) = waiting.stop.take() {
            self.stop(stop);
        }
    }
}

/// Moves `from` behind `to`. Keeps no buffer that only a storm needs.
fn append<T>(to: &mut VecDeque<T>, from: &mut VecDeque<T>) {
    if !to.is_empty() {
        return to.append(from);
    }
    std::mem::swap(from, to);
    if from.capacity() > 4 * to.len().max(KEPT_CAPACITY) {
        *from = VecDeque::new();
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct SupervisorInbox<R> {
    state: Mutex<InboxState<R>>,
}

#[derive(Debug)]
struct InboxState<R> {
    waiting: Batch<R>,
    /// How many events were pushed.
    pushed: u64,
    /// The waker of the supervisor's task.
    waker: Option<Waker>,
    closed: bool,
}

impl<R> SupervisorInbox<R> {
    pub(crate) fn new() -> Self {
        let state = InboxState { waiting: Batch::default(), pushed: 0, waker: None, closed: false };
        Self { state: Mutex::new(state) }
    }

    /// # Errors
    ///
    /// Returns the event if the supervisor has ended.
    pub(crate) fn push_event(&self, event: MachineEvent) -> Result<(), MachineEvent> {
        self.push(event, |state, event| {
            state.waiting.events.push_back(event);
            state.pushed += 1;
        })
    }

    /// # Errors
    ///
    /// Returns the request if the supervisor has ended.
    pub(crate) fn push_request(&self, request: R) -> Result<(), R> {
        self.push(request, |state, request| {
            let before = state.pushed;
            state.waiting.requests.push_back((before, request));
        })
    }

    /// Stops the supervisor. Has no effect if it has ended.
    pub(crate) fn push_stop(&self, stop: StopRequest) {
        let _ = self.push(stop, |state, stop| state.waiting.stop(stop));
    }

    fn push<T>(&self, item: T, put: impl FnOnce(&mut InboxState<R>, T)) -> Result<(), T> {
        let waker = {
            let mut state = self.state.lock();
            if state.closed {
                return Err(item);
            }
            put(&mut state, item);
            state.waker.take()
        };
        // Outside of the lock: a waker may run foreign code.
        if let Some(waker) = waker {
            wake(waker);
        }
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.state.lock().waiting.is_empty()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// Moves everything that is waiting into the batch. If that is nothing, registers the task.
    pub(crate) fn poll_take(&self, cx: &mut Context<'_>, batch: &mut Batch<R>) -> Poll<()> {
        let mut state = self.state.lock();
        if state.waiting.is_empty() {
            state.waker.get_or_insert_with(|| cx.waker().clone()).clone_from(cx.waker());
            return Poll::Pending;
        }
        batch.append(&mut state.waiting);
        Poll::Ready(())
    }

    /// Closes the inbox, and returns what was waiting.
    pub(crate) fn close(&self) -> Batch<R> {
        let (waiting, waker) = {
            let mut state = self.state.lock();
            state.closed = true;
            (std::mem::take(&mut state.waiting), state.waker.take())
        };
        // The waker keeps the ended task's memory alive, and handles keep the inbox.
        drop(waker);
        waiting
    }
}

#[cfg(all(test, not(verger_loom)))]
mod tests {
    use super::*;

    fn take<R>(inbox: &SupervisorInbox<R>, batch: &mut Batch<R>) -> Poll<()> {
        inbox.poll_take(&mut Context::from_waker(Waker::noop()), batch)
    }

    fn requests<R>(batch: &mut Batch<R>) -> Vec<R> {
        std::iter::from_fn(|| batch.next_request()).collect()
    }

    #[test]
    fn a_closed_inbox_returns_requests() {
        let inbox = SupervisorInbox::new();
        assert_eq!(inbox.push_request(1), Ok(()));
        assert_eq!(inbox.close().next_request(), Some(1));
        assert_eq!(inbox.push_request(2), Err(2));
    }

    #[test]
    fn of_two_stops_the_first_reason_and_the_higher_level_count() {
        let levels = [StopLevel::Cancel, StopLevel::Close, StopLevel::Abort];
        for (first, second) in levels.iter().flat_map(|&first| levels.map(|second| (first, second)))
        {
            let inbox = SupervisorInbox::<()>::new();
            inbox.push_stop(StopRequest { reason: "a".into(), level: first });
            inbox.push_stop(StopRequest { reason: "b".into(), level: second });

            let mut batch = Batch::default();
            assert_eq!(take(&inbox, &mut batch), Poll::Ready(()));
            let level = first.max(second);
            assert_eq!(batch.stop, Some(StopRequest { reason: "a".into(), level }));
            assert_eq!(take(&inbox, &mut batch), Poll::Pending);
        }
    }

    #[test]
    fn later_requests_are_put_behind_the_rest_of_a_batch() {
        let (inbox, mut batch) = (SupervisorInbox::new(), Batch::default());
        for pushed in [[1, 2], [3, 4]] {
            for request in pushed {
                inbox.push_request(request).unwrap();
            }
            assert_eq!(take(&inbox, &mut batch), Poll::Ready(()));
        }
        assert_eq!(requests(&mut batch), [1, 2, 3, 4]);
    }

    #[test]
    fn events_and_requests_can_be_taken_in_the_order_in_which_they_were_pushed() {
        let (inbox, mut batch) = (SupervisorInbox::new(), Batch::default());
        // `e` pushes an event, `r` a request, and `|` takes what is waiting.
        let (pushed, mut taken) = ("ee|rer|e|er|er|", String::new());
        for what in pushed.chars() {
            match what {
                'e' => inbox.push_event(MachineEvent::AbortAll).unwrap(),
                'r' => inbox.push_request(()).unwrap(),
                _ => {
                    assert_eq!(take(&inbox, &mut batch), Poll::Ready(()));
                    // Something is left of each batch.
                    if batch.next_event_in_order().is_some() {
                        taken.push('e');
                    }
                }
            }
        }
        loop {
            if batch.next_event_in_order().is_some() {
                taken.push('e');
            } else if batch.next_request().is_some() {
                taken.push('r');
            } else {
                break;
            }
        }
        assert_eq!(taken, pushed.replace('|', ""));
    }

    #[test]
    fn the_memory_of_a_storm_is_freed() {
        let (inbox, mut batch) = (SupervisorInbox::new(), Batch::default());
        for count in [100_000, 1, 1] {
            for request in 0..count {
                inbox.push_request(request).unwrap();
            }
            assert_eq!(take(&inbox, &mut batch), Poll::Ready(()));
            assert_eq!(requests(&mut batch).len(), count);
        }
        let capacity = inbox.state.lock().waiting.requests.capacity() + batch.requests.capacity();
        assert!(capacity <= 8 * KEPT_CAPACITY, "{capacity}");
    }
}

#[cfg(all(test, verger_loom))]
mod loom_tests {
    use std::future::poll_fn;

    use loom::thread;

    use super::*;
    use crate::sync::model::{Task, check};

    fn requests(mut batch: Batch<u32>) -> Vec<u32> {
        std::iter::from_fn(|| batch.next_request()).collect()
    }

    fn poll(inbox: &SupervisorInbox<u32>, task: &Arc<Task>) -> Option<Vec<u32>> {
        let mut batch = Batch::default();
        let waker = task.waker();
        let poll = inbox.poll_take(&mut Context::from_waker(&waker), &mut batch);
        poll.is_ready().then(|| requests(batch))
    }

    #[test]
    fn loom_everything_pushed_is_taken_once_and_in_order() {
        check(|| {
            let inbox = Arc::new(SupervisorInbox::new());
            let (first, second) = (Arc::clone(&inbox), Arc::clone(&inbox));
            let first = thread::spawn(move || {
                first.push_request(10).unwrap();
                first.push_request(11).unwrap();
            });
            let second = thread::spawn(move || {
                second.push_event(MachineEvent::AbortAll).unwrap();
                second.push_request(20).unwrap();
            });

            let (mut taken, mut events) = (Vec::new(), 0);
            let task = Task::new();
            while taken.len() < 3 || events < 1 {
                let mut batch = Batch::default();
                task.run(poll_fn(|cx| inbox.poll_take(cx, &mut batch)));
                events += batch.events.len();
                taken.extend(requests(batch));
                assert!(events == 1 || !taken.contains(&20), "the event was pushed before");
            }

            first.join().unwrap();
            second.join().unwrap();
            assert_eq!(poll(&inbox, &task), None, "nothing is taken twice");
            assert_eq!(events, 1);
            taken.retain(|&request| request != 20);
            assert_eq!(taken, [10, 11]);
        });
    }

    #[test]
    fn loom_a_pending_task_is_woken_once_however_much_is_pushed() {
        loom::model(|| {
            let inbox = Arc::new(SupervisorInbox::new());
            let pushing = {
                let inbox = Arc::clone(&inbox);
                thread::spawn(move || {
                    inbox.push_request(1).unwrap();
                    inbox.push_stop(StopRequest {
                        reason: "enough".into(),
                        level: StopLevel::Cancel,
                    });
                })
            };

            let task = Task::new();
            let taken = poll(&inbox, &task);
            pushing.join().unwrap();

            assert_eq!(task.times_woken(), usize::from(taken.is_none()));
            if taken.is_none() {
                assert_eq!(poll(&inbox, &task), Some(vec![1]));
            }
        });
    }

    #[test]
    fn loom_the_task_that_polled_last_is_woken() {
        loom::model(|| {
            let inbox = Arc::new(SupervisorInbox::new());
            let (before, now) = (Task::new(), Task::new());
            assert_eq!(poll(&inbox, &before), None);
            let pushing = {
                let inbox = Arc::clone(&inbox);
                thread::spawn(move || inbox.push_request(1).unwrap())
            };

            let taken = poll(&inbox, &now);
            pushing.join().unwrap();

            let woken = if taken.is_some() { &before } else { &now };
            assert_eq!(woken.times_woken(), 1);
            assert_eq!(before.times_woken() + now.times_woken(), 1);
        });
    }

    #[test]
    fn loom_a_request_is_returned_by_close_or_by_its_push() {
        loom::model(|| {
            let inbox = Arc::new(SupervisorInbox::new());
            let pushing = [1, 2].map(|request| {
                let inbox = Arc::clone(&inbox);
                thread::spawn(move || inbox.push_request(request))
            });

            let mut seen = requests(inbox.close());
            seen.extend(pushing.into_iter().filter_map(|it| it.join().unwrap().err()));
            seen.sort_unstable();

            assert_eq!(seen, [1, 2]);
            assert!(inbox.is_empty());
        });
    }
}
