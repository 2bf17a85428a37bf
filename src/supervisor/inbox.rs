//! What a supervisor has yet to hear: events from its children, requests from its handles, and
//! whether it is to stop.
//!
//! Two queues and one waker under one lock. Whoever finds the waker there takes it and wakes the
//! supervisor; those who come before it has looked find none, so a storm of exits wakes it once,
//! and the supervisor takes all of them under one lock. A channel would wake and lock for each,
//! and bring blocks of memory that only a busy supervisor ever fills.
//!
//! # Invariants
//!
//! 1. What was pushed before a `poll_take` that returned `Ready` is in its batch, in order and
//!    behind what had been left there.
//! 2. If `poll_take` returned `Pending`, the next push wakes.
//! 3. Events and requests of a batch can be taken in the order in which they came, or events first.
//! 4. Nothing is pushed once the inbox is closed; events and requests are given back.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::queue::{Queue, SMALL, move_behind};
use crate::machine::Event;
use crate::sync::{Mutex, MutexGuard};

/// That the supervisor is to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StopRequest {
    /// Why, in the words of who asked.
    pub(crate) reason: Arc<str>,
    /// It is to have stopped by then.
    pub(crate) within: Option<Duration>,
}

/// What has come in.
#[derive(Debug)]
pub(crate) struct Batch<R> {
    pub(crate) events: VecDeque<Event>,
    /// Each with how many events had come before it.
    pub(crate) requests: Queue<(u64, R)>,
    /// How many events have gone through the batch.
    taken: u64,
    /// Boxed, since it comes once.
    pub(crate) stop: Option<Box<StopRequest>>,
}

impl<R> Default for Batch<R> {
    fn default() -> Self {
        Self { events: VecDeque::new(), requests: Queue::default(), taken: 0, stop: None }
    }
}

impl<R> Batch<R> {
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.requests.is_empty() && self.stop.is_none()
    }

    pub(crate) fn next_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        self.taken += 1;
        Some(event)
    }

    /// The next event, unless a request came before it.
    pub(crate) fn next_event_in_order(&mut self) -> Option<Event> {
        match self.requests.front() {
            Some(&(before, _)) if before <= self.taken => None,
            _ => self.next_event(),
        }
    }

    /// The next request, wherever it came among the events.
    pub(crate) fn next_request(&mut self) -> Option<R> {
        self.requests.pop_front().map(|(_, request)| request)
    }

    /// Keeps the first reason and the nearest deadline: who came later wants no less.
    fn stop(&mut self, stop: StopRequest) {
        match &mut self.stop {
            None => self.stop = Some(Box::new(stop)),
            Some(first) => {
                let both = first.within.into_iter().chain(stop.within);
                first.within = both.min();
            }
        }
    }

    /// Moves all of it behind what is in the other.
    fn move_behind(&mut self, to: &mut Self) {
        move_behind(&mut self.events, &mut to.events);
        self.requests.move_behind(&mut to.requests);
        if let Some(stop) = self.stop.take() {
            to.stop(*stop);
        }
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Inbox<R> {
    state: Mutex<State<R>>,
}

#[derive(Debug)]
struct State<R> {
    waiting: Batch<R>,
    /// How many events have come.
    events: u64,
    waker: Option<Waker>,
    closed: bool,
}

impl<R> Inbox<R> {
    pub(crate) fn new() -> Self {
        let state = State { waiting: Batch::default(), events: 0, waker: None, closed: false };
        Self { state: Mutex::new(state) }
    }

    /// # Errors
    ///
    /// Gives the event back if the supervisor has ended.
    pub(crate) fn event(&self, event: Event) -> Result<(), Event> {
        let Some(mut state) = self.open() else { return Err(event) };
        let events = &mut state.waiting.events;
        if events.capacity() == 0 {
            // Most often it stays alone: that a child is up, and that it has ended.
            events.reserve_exact(1);
        }
        events.push_back(event);
        state.events += 1;
        wake(state);
        Ok(())
    }

    /// # Errors
    ///
    /// Gives the request back if the supervisor has ended.
    pub(crate) fn request(&self, request: R) -> Result<(), R> {
        let Some(mut state) = self.open() else { return Err(request) };
        let before = state.events;
        state.waiting.requests.push_back((before, request));
        wake(state);
        Ok(())
    }

    pub(crate) fn stop(&self, stop: StopRequest) {
        let Some(mut state) = self.open() else { return };
        state.waiting.stop(stop);
        wake(state);
    }

    fn open(&self) -> Option<MutexGuard<'_, State<R>>> {
        Some(self.state.lock()).filter(|state| !state.closed)
    }

    /// Whether something waits to be taken.
    pub(crate) fn has_news(&self) -> bool {
        !self.state.lock().waiting.is_empty()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// Moves all that is waiting into the batch.
    pub(crate) fn poll_take(&self, cx: &mut Context<'_>, batch: &mut Batch<R>) -> Poll<()> {
        let mut state = self.state.lock();
        if !state.waiting.is_empty() {
            state.waiting.move_behind(batch);
            return Poll::Ready(());
        }
        // Room that was needed once is needed again, with the next child that ends. What a storm took
        // stays where it is, and is given back when the next event is taken.
        let room = batch.events.capacity();
        if state.waiting.events.capacity() == 0 && batch.events.is_empty() && room <= SMALL {
            std::mem::swap(&mut state.waiting.events, &mut batch.events);
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            None => state.waker = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// The same for who doesn't wait.
    pub(crate) fn take(&self, batch: &mut Batch<R>) {
        self.state.lock().waiting.move_behind(batch);
    }

    /// Takes nothing more in, and returns what was waiting.
    pub(crate) fn close(&self) -> Batch<R> {
        let (waiting, waker) = {
            let mut state = self.state.lock();
            state.closed = true;
            (std::mem::take(&mut state.waiting), state.waker.take())
        };
        // The task is over: its memory is not to live as long as the last handle.
        drop(waker);
        waiting
    }
}

/// Something was put in.
fn wake<R>(mut state: MutexGuard<'_, State<R>>) {
    let waker = state.waker.take();
    drop(state);
    // Outside of the lock: the woken may come at once, and a waker may do anything.
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(all(test, not(verger_loom)))]
mod tests {
    use std::task::Waker;

    use super::*;

    #[test]
    fn a_closed_inbox_gives_requests_back() {
        let inbox = Inbox::new();
        assert_eq!(inbox.request(1), Ok(()));
        assert_eq!(inbox.close().next_request(), Some(1));
        assert_eq!(inbox.request(2), Err(2));
    }

    #[test]
    fn of_two_stops_the_first_reason_and_the_nearest_deadline_count() {
        let (long, soon) = (Some(Duration::from_secs(9)), Some(Duration::from_secs(1)));
        for (first, second, both) in
            [(soon, None, soon), (None, soon, soon), (long, soon, soon), (None, None, None)]
        {
            let inbox = Inbox::<()>::new();
            inbox.stop(StopRequest { reason: "a".into(), within: first });
            inbox.stop(StopRequest { reason: "b".into(), within: second });

            let mut batch = Batch::default();
            let mut cx = Context::from_waker(Waker::noop());
            assert_eq!(inbox.poll_take(&mut cx, &mut batch), Poll::Ready(()));
            let both = StopRequest { reason: "a".into(), within: both };
            assert_eq!(batch.stop.as_deref(), Some(&both));
            assert_eq!(inbox.poll_take(&mut cx, &mut Batch::default()), Poll::Pending);
        }
    }

    #[test]
    fn what_comes_later_is_put_behind_what_is_left() {
        let inbox = Inbox::new();
        let mut batch = Batch::default();
        let mut cx = Context::from_waker(Waker::noop());
        for requests in [[1, 2], [3, 4]] {
            for request in requests {
                inbox.request(request).unwrap();
            }
            assert_eq!(inbox.poll_take(&mut cx, &mut batch), Poll::Ready(()));
        }
        let requests: Vec<_> = std::iter::from_fn(|| batch.next_request()).collect();
        assert_eq!(requests, [1, 2, 3, 4]);
    }

    #[test]
    fn a_request_comes_behind_the_events_that_came_before_it_and_ahead_of_those_after() {
        let inbox = Inbox::new();
        let mut batch = Batch::default();
        let mut cx = Context::from_waker(Waker::noop());
        // `e` is an event, `r` a request, and at `|` what has come is put into the batch.
        let (came, mut taken) = ("ee|rer|e|er|", String::new());
        for what in came.chars() {
            match what {
                'e' => inbox.event(Event::AbortAll).unwrap(),
                'r' => inbox.request(()).unwrap(),
                _ => {
                    assert_eq!(inbox.poll_take(&mut cx, &mut batch), Poll::Ready(()));
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
        assert_eq!(taken, came.replace('|', ""));
    }

    #[test]
    fn the_room_that_a_storm_took_is_given_back() {
        let inbox = Inbox::new();
        let mut batch = Batch::default();
        let mut cx = Context::from_waker(Waker::noop());
        for requests in [100_000, 1, 1] {
            for request in 0..requests {
                inbox.request(request).unwrap();
            }
            assert_eq!(inbox.poll_take(&mut cx, &mut batch), Poll::Ready(()));
            batch.requests.clear();
        }
        let room = inbox.state.lock().waiting.requests.capacity() + batch.requests.capacity();
        assert!(room <= 8 * SMALL, "{room}");
    }
}

#[cfg(all(test, verger_loom))]
mod loom_tests {
    use std::future::poll_fn;

    use loom::thread;

    use super::*;
    use crate::sync::model::{Task, check};

    fn poll(inbox: &Inbox<u32>, task: &Arc<Task>) -> Option<Vec<u32>> {
        let mut batch = Batch::default();
        let waker = task.waker();
        let poll = inbox.poll_take(&mut Context::from_waker(&waker), &mut batch);
        poll.is_ready().then(|| requests(batch))
    }

    fn requests(mut batch: Batch<u32>) -> Vec<u32> {
        std::iter::from_fn(|| batch.next_request()).collect()
    }

    #[test]
    fn loom_all_that_is_pushed_is_taken_once_and_in_order() {
        check(|| {
            let inbox = Arc::new(Inbox::new());
            let (first, second) = (Arc::clone(&inbox), Arc::clone(&inbox));
            let first = thread::spawn(move || {
                first.request(10).unwrap();
                first.request(11).unwrap();
            });
            let second = thread::spawn(move || {
                second.event(Event::AbortAll).unwrap();
                second.request(20).unwrap();
            });

            let (mut requests, mut events) = (Vec::new(), 0);
            let task = Task::new();
            while requests.len() < 3 || events < 1 {
                let mut batch = Batch::default();
                task.run(poll_fn(|cx| inbox.poll_take(cx, &mut batch)));
                let before = requests.len();
                events += usize::from(batch.next_event_in_order().is_some());
                requests.extend(std::iter::from_fn(|| {
                    events += usize::from(batch.next_event_in_order().is_some());
                    let request = batch.next_request()?;
                    assert!(events == 1 || request != 20, "the event was pushed before");
                    Some(request)
                }));
                assert!(requests.len() > before || events == 1, "it was woken for something");
            }

            first.join().unwrap();
            second.join().unwrap();
            assert_eq!(poll(&inbox, &task), None, "nothing comes twice");
            assert_eq!(events, 1);
            requests.retain(|&request| request != 20);
            assert_eq!(requests, [10, 11]);
        });
    }

    #[test]
    fn loom_who_is_told_pending_is_woken_once_however_much_is_pushed() {
        loom::model(|| {
            let inbox = Arc::new(Inbox::new());
            let pushing = {
                let inbox = Arc::clone(&inbox);
                thread::spawn(move || {
                    inbox.request(1).unwrap();
                    inbox.stop(StopRequest { reason: "enough".into(), within: None });
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
            let inbox = Arc::new(Inbox::new());
            let (before, now) = (Task::new(), Task::new());
            assert_eq!(poll(&inbox, &before), None);
            let pushing = {
                let inbox = Arc::clone(&inbox);
                thread::spawn(move || inbox.request(1).unwrap())
            };

            let taken = poll(&inbox, &now);
            pushing.join().unwrap();

            let woken = if taken.is_some() { &before } else { &now };
            assert_eq!(woken.times_woken(), 1);
            assert_eq!(before.times_woken() + now.times_woken(), 1);
        });
    }

    #[test]
    fn loom_a_request_is_in_what_close_returns_or_given_back() {
        loom::model(|| {
            let inbox = Arc::new(Inbox::new());
            let pushing = [1, 2].map(|request| {
                let inbox = Arc::clone(&inbox);
                thread::spawn(move || inbox.request(request))
            });

            let mut seen = requests(inbox.close());
            seen.extend(pushing.into_iter().filter_map(|it| it.join().unwrap().err()));
            seen.sort_unstable();

            assert_eq!(seen, [1, 2]);
            assert!(inbox.close().requests.is_empty(), "nothing is kept");
        });
    }
}
