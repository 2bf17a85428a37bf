//! What a supervisor has yet to hear: events from its children, requests from its handles, and
//! whether it is to stop. And who reads it.
//!
//! Two queues and one waker under one lock. Whoever finds the waker there takes it and wakes the
//! supervisor; those who come before it has looked find none, so a storm of exits wakes it once,
//! and the supervisor takes all of them under one lock. A channel would wake and lock for each,
//! and bring blocks of memory that only a busy supervisor ever fills.
//!
//! What reads, and acts on it, lies here as long as it has nothing to do. So one who asks can take it
//! out and read himself, where he would wake the supervisor's task and wait for it.
//!
//! # Invariants
//!
//! 1. The reader is with one at a time. Whoever takes it out has with it all that was pushed before,
//!    in order and behind what had been left there.
//! 2. What is pushed while the reader lies here wakes the supervisor's task, unless that is on its way
//!    already, or whoever pushes takes the reader with it. Whoever puts the reader back looks whether something was pushed meanwhile, or the task
//!    was there in vain, and wakes it then.
//! 3. Events and requests of a batch can be taken in the order in which they came, or events first.
//! 4. Nothing is pushed once the inbox is closed; events and requests are given back.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use super::queue::{Queue, SMALL, move_behind};
use crate::core::MachineEvent;
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
    pub(crate) events: VecDeque<MachineEvent>,
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

    pub(crate) fn next_event(&mut self) -> Option<MachineEvent> {
        let event = self.events.pop_front()?;
        self.taken += 1;
        Some(event)
    }

    /// The next event, unless a request came before it.
    pub(crate) fn next_event_in_order(&mut self) -> Option<MachineEvent> {
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

/// Who takes out what has come in, and acts on it.
pub(crate) trait Reader<R> {
    /// What is to be read.
    fn batch(&mut self) -> &mut Batch<R>;
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Inbox<R, D> {
    state: Mutex<State<R, D>>,
}

#[derive(Debug)]
struct State<R, D> {
    waiting: Batch<R>,
    /// How many events have come.
    events: u64,
    /// Of the supervisor's task.
    waker: Option<Waker>,
    reader: Place<D>,
    closed: bool,
}

/// Where the reader is.
#[derive(Debug)]
enum Place<D> {
    /// It lies here, and nobody reads.
    Here(D),
    /// Somebody reads. `missed`: the supervisor's task has looked for it meanwhile.
    Out { missed: bool },
    /// The supervisor's task is over: there is nothing to be read any more.
    Gone,
}

/// What becomes of a reader that was left in the inbox.
#[derive(Debug)]
pub(crate) enum Left<D> {
    /// It lies there.
    Asleep,
    /// It lies there, and the supervisor's task will come for it.
    Awake,
    /// The supervisor's task is over, and the reader goes with it.
    Alone(D),
}

impl<R, D: Reader<R>> Inbox<R, D> {
    /// The reader is out at first: the supervisor's task begins with it.
    pub(crate) fn new() -> Self {
        let state = State {
            waiting: Batch::default(),
            events: 0,
            waker: None,
            reader: Place::Out { missed: false },
            closed: false,
        };
        Self { state: Mutex::new(state) }
    }

    /// # Errors
    ///
    /// Gives the event back if the supervisor has ended.
    pub(crate) fn event(&self, event: MachineEvent) -> Result<(), MachineEvent> {
        let Some(mut state) = self.open() else { return Err(event) };
        state.put(event);
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

    /// An event from who is ready to read himself. He is given the reader if it lies here, with all
    /// that has come in, and is to [`leave`](Self::leave) it here again.
    ///
    /// # Errors
    ///
    /// Gives the event back if the supervisor has ended.
    pub(crate) fn event_in_person(&self, event: MachineEvent) -> Result<Option<D>, MachineEvent> {
        let Some(mut state) = self.open() else { return Err(event) };
        state.put(event);
        Ok(state.take_reader())
    }

    /// The same for a request.
    ///
    /// # Errors
    ///
    /// Gives the request back if the supervisor has ended.
    pub(crate) fn request_in_person(&self, request: R) -> Result<Option<D>, R> {
        let Some(mut state) = self.open() else { return Err(request) };
        let before = state.events;
        let mut reader = state.take_reader();
        let batch = reader.as_mut().map_or(&mut state.waiting, |reader| reader.batch());
        batch.requests.push_back((before, request));
        Ok(reader)
    }

    pub(crate) fn stop(&self, stop: StopRequest) {
        let Some(mut state) = self.open() else { return };
        state.waiting.stop(stop);
        wake(state);
    }

    fn open(&self) -> Option<MutexGuard<'_, State<R, D>>> {
        Some(self.state.lock()).filter(|state| !state.closed)
    }

    /// Whether something waits to be taken.
    pub(crate) fn has_news(&self) -> bool {
        !self.state.lock().waiting.is_empty()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// The reader, with all that has come in, for the supervisor's task. `None`: somebody else reads,
    /// and wakes the task when he has done.
    pub(crate) fn take_reader(&self, cx: &Context<'_>) -> Option<D> {
        let mut state = self.state.lock();
        let reader = state.take_reader();
        if let Place::Out { missed } = &mut state.reader
            && reader.is_none()
        {
            *missed = true;
            state.keep_waker(cx);
        }
        reader
    }

    /// Moves all that is waiting to a reader that is out.
    pub(crate) fn take(&self, reader: &mut D) {
        self.state.lock().waiting.move_behind(reader.batch());
    }

    /// The supervisor's task waits, and anybody may read.
    ///
    /// # Errors
    ///
    /// Gives the reader back if there is something to be read.
    pub(crate) fn wait(&self, mut reader: D, cx: &Context<'_>) -> Result<(), D> {
        let mut state = self.state.lock();
        let batch = reader.batch();
        if !state.waiting.is_empty() {
            state.waiting.move_behind(batch);
            return Err(reader);
        }
        state.give_room_back(batch);
        state.keep_waker(cx);
        state.reader = Place::Here(reader);
        Ok(())
    }

    /// Somebody else than the supervisor's task has read. The task is woken if it is `needed`, or has
    /// looked for the reader, or something else has come in.
    pub(crate) fn leave(&self, mut reader: D, needed: bool) -> Left<D> {
        let mut state = self.state.lock();
        let Place::Out { missed } = state.reader else { return Left::Alone(reader) };
        if needed || missed || !state.waiting.is_empty() {
            state.reader = Place::Here(reader);
            wake(state);
            Left::Awake
        } else {
            state.give_room_back(reader.batch());
            state.reader = Place::Here(reader);
            // Without a waker it was woken before.
            if state.waker.is_none() { Left::Awake } else { Left::Asleep }
        }
    }

    /// The supervisor's task is over. Returns the reader if nobody reads; whoever does is told when he
    /// leaves it.
    pub(crate) fn dismiss(&self) -> Option<D> {
        match std::mem::replace(&mut self.state.lock().reader, Place::Gone) {
            Place::Here(reader) => Some(reader),
            Place::Out { .. } | Place::Gone => None,
        }
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

impl<R, D: Reader<R>> State<R, D> {
    /// The reader with all that has come in, if it lies here.
    fn take_reader(&mut self) -> Option<D> {
        let Place::Here(_) = self.reader else { return None };
        let out = Place::Out { missed: false };
        let Place::Here(mut reader) = std::mem::replace(&mut self.reader, out) else { return None };
        self.waiting.move_behind(reader.batch());
        Some(reader)
    }

    #[inline]
    fn put(&mut self, event: MachineEvent) {
        let events = &mut self.waiting.events;
        if events.capacity() == 0 {
            // Most often it stays alone: that a child is up, and that it has ended.
            events.reserve_exact(1);
        }
        events.push_back(event);
        self.events += 1;
    }

    fn keep_waker(&mut self, cx: &Context<'_>) {
        self.waker.get_or_insert_with(|| cx.waker().clone()).clone_from(cx.waker());
    }

    /// Room that was needed once is needed again, with the next child that ends. What a storm took
    /// stays where it is, and is given back when the next event is taken.
    fn give_room_back(&mut self, batch: &mut Batch<R>) {
        let room = batch.events.capacity();
        if self.waiting.events.capacity() == 0 && batch.events.is_empty() && room <= SMALL {
            std::mem::swap(&mut self.waiting.events, &mut batch.events);
        }
    }
}

/// There is something to be read. Whoever reads just now looks for himself before he leaves.
fn wake<R, D>(mut state: MutexGuard<'_, State<R, D>>) {
    let waker = match state.reader {
        Place::Here(_) => state.waker.take(),
        Place::Out { .. } | Place::Gone => None,
    };
    drop(state);
    // Outside of the lock: the woken may come at once, and a waker may do anything.
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(test)]
impl<R> Reader<R> for Batch<R> {
    fn batch(&mut self) -> &mut Self {
        self
    }
}

#[cfg(all(test, not(verger_loom)))]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};

    use super::*;

    type Inbox<R> = super::Inbox<R, Batch<R>>;

    fn cx() -> Context<'static> {
        Context::from_waker(Waker::noop())
    }

    /// One that nobody reads.
    fn unread<R>() -> Inbox<R> {
        let inbox = Inbox::new();
        assert!(inbox.wait(Batch::default(), &cx()).is_ok(), "nothing has come in");
        inbox
    }

    #[test]
    fn a_closed_inbox_gives_requests_back() {
        let inbox = unread();
        assert_eq!(inbox.request(1), Ok(()));
        assert_eq!(inbox.close().next_request(), Some(1));
        assert_eq!(inbox.request(2), Err(2));
        assert_eq!(inbox.request_in_person(3).unwrap_err(), 3);
    }

    #[test]
    fn of_two_stops_the_first_reason_and_the_nearest_deadline_count() {
        let (long, soon) = (Some(Duration::from_secs(9)), Some(Duration::from_secs(1)));
        for (first, second, both) in
            [(soon, None, soon), (None, soon, soon), (long, soon, soon), (None, None, None)]
        {
            let inbox = unread::<()>();
            inbox.stop(StopRequest { reason: "a".into(), within: first });
            inbox.stop(StopRequest { reason: "b".into(), within: second });

            let mut batch = inbox.take_reader(&cx()).unwrap();
            let both = StopRequest { reason: "a".into(), within: both };
            assert_eq!(batch.stop.take().as_deref(), Some(&both));
            assert!(inbox.wait(batch, &cx()).is_ok(), "that was all");
        }
    }

    #[test]
    fn what_comes_later_is_put_behind_what_is_left() {
        let inbox = unread();
        for requests in [[1, 2], [3, 4]] {
            for request in requests {
                inbox.request(request).unwrap();
            }
            let batch = inbox.take_reader(&cx()).unwrap();
            assert!(!matches!(inbox.leave(batch, false), Left::Alone(_)));
        }
        let mut batch = inbox.take_reader(&cx()).unwrap();
        let requests: Vec<_> = std::iter::from_fn(|| batch.next_request()).collect();
        assert_eq!(requests, [1, 2, 3, 4]);
    }

    #[test]
    fn a_request_comes_behind_the_events_that_came_before_it_and_ahead_of_those_after() {
        let inbox = unread();
        let mut batch = inbox.take_reader(&cx()).unwrap();
        // `e` is an event, `r` a request, `R` one whose caller may read, and at `|` what has come is
        // put into the batch.
        let (came, mut taken) = ("ee|rer|e|er|eR|R|", String::new());
        for what in came.chars() {
            match what {
                'e' => inbox.event(MachineEvent::AbortAll).unwrap(),
                'r' => inbox.request(()).unwrap(),
                'R' => {
                    assert!(!matches!(inbox.leave(batch, false), Left::Alone(_)));
                    batch = inbox.request_in_person(()).unwrap().expect("nobody reads");
                }
                _ => {
                    inbox.take(&mut batch);
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
        assert_eq!(taken, came.replace('|', "").to_lowercase());
    }

    #[test]
    fn the_room_that_a_storm_took_is_given_back() {
        let inbox = unread();
        for requests in [100_000, 1, 1] {
            for request in 0..requests {
                inbox.request(request).unwrap();
            }
            let mut batch = inbox.take_reader(&cx()).unwrap();
            batch.requests.clear();
            assert!(inbox.wait(batch, &cx()).is_ok());
        }
        let batch = inbox.take_reader(&cx()).unwrap();
        let room = inbox.state.lock().waiting.requests.capacity() + batch.requests.capacity();
        assert!(room <= 8 * SMALL, "{room}");
    }

    #[test]
    fn who_comes_while_another_reads_leaves_his_request_to_him() {
        let inbox = unread();
        let reader = inbox.request_in_person(1).unwrap().expect("nobody reads");
        assert!(inbox.request_in_person(2).unwrap().is_none());
        assert!(matches!(inbox.leave(reader, false), Left::Awake));

        let mut reader = inbox.take_reader(&cx()).expect("nobody reads");
        assert_eq!((reader.next_request(), reader.next_request()), (Some(1), Some(2)));
    }

    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_task_that_was_there_in_vain_is_woken_by_whoever_reads() {
        let inbox = unread();
        let woken = Arc::new(Woken(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&woken));
        let reader = inbox.request_in_person(1).unwrap().expect("nobody reads");
        assert!(inbox.take_reader(&Context::from_waker(&waker)).is_none());
        assert!(matches!(inbox.leave(reader, false), Left::Awake));
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);

        let reader = inbox.take_reader(&Context::from_waker(&waker)).unwrap();
        assert!(inbox.wait(reader, &Context::from_waker(&waker)).is_ok());
        let reader = inbox.request_in_person(2).unwrap().expect("nobody reads");
        assert!(matches!(inbox.leave(reader, false), Left::Asleep));
        assert_eq!(woken.0.load(Ordering::Relaxed), 1, "nobody needs it");

        // It is on its way already, so whoever reads makes way for it.
        inbox.event(MachineEvent::AbortAll).unwrap();
        let reader = inbox.request_in_person(3).unwrap().expect("nobody reads");
        assert!(matches!(inbox.leave(reader, false), Left::Awake));
        assert_eq!(woken.0.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_reader_that_is_out_when_the_task_ends_goes_with_whoever_has_it() {
        let inbox = unread();
        let reader = inbox.request_in_person(1).unwrap().expect("nobody reads");
        assert!(inbox.dismiss().is_none());
        let Left::Alone(mut reader) = inbox.leave(reader, true) else { panic!("it is gone") };
        assert_eq!(reader.next_request(), Some(1));

        let inbox = unread::<u8>();
        assert!(inbox.dismiss().is_some());
    }
}

#[cfg(all(test, verger_loom))]
mod loom_tests {
    use std::future::poll_fn;
    use std::task::Poll;

    use loom::thread;

    use super::*;
    use crate::sync::model::{Task, check};

    type Inbox = super::Inbox<u32, Batch<u32>>;

    /// One that this task waits at.
    fn waiting(task: &Arc<Task>) -> Arc<Inbox> {
        let inbox = Inbox::new();
        let waker = task.waker();
        assert!(inbox.wait(Batch::default(), &Context::from_waker(&waker)).is_ok());
        Arc::new(inbox)
    }

    fn requests(batch: &mut Batch<u32>) -> Vec<u32> {
        std::iter::from_fn(|| batch.next_request()).collect()
    }

    /// What the task reads in one poll.
    fn poll(inbox: &Inbox, cx: &Context<'_>, mut each: impl FnMut(&mut Batch<u32>)) {
        let Some(mut batch) = inbox.take_reader(cx) else { return };
        loop {
            each(&mut batch);
            match inbox.wait(batch, cx) {
                Ok(()) => return,
                Err(back) => batch = back,
            }
        }
    }

    #[test]
    fn loom_all_that_is_pushed_is_read_once_and_in_order_whoever_reads() {
        check(|| {
            let task = Task::new();
            let inbox = waiting(&task);
            let log = Arc::new(Mutex::new(Vec::new()));
            let pushing = {
                let inbox = Arc::clone(&inbox);
                thread::spawn(move || {
                    inbox.request(10).unwrap();
                    inbox.event(MachineEvent::AbortAll).unwrap();
                    inbox.request(11).unwrap();
                })
            };
            let asking = {
                let (inbox, log) = (Arc::clone(&inbox), Arc::clone(&log));
                thread::spawn(move || {
                    let Some(mut batch) = inbox.request_in_person(20).unwrap() else { return };
                    let all = read(&log, &mut batch);
                    // What it has read last, nobody else wakes the task for.
                    assert!(
                        !matches!(inbox.leave(batch, all), Left::Alone(_)),
                        "the task is there"
                    );
                })
            };

            task.run(poll_fn(|cx| {
                let mut all = false;
                poll(&inbox, cx, |batch| all = read(&log, batch));
                if all { Poll::Ready(()) } else { Poll::Pending }
            }));

            pushing.join().unwrap();
            asking.join().unwrap();
            let log: Vec<_> = log.lock().iter().copied().filter(|&it| it != 20).collect();
            assert_eq!(log, [10, 0, 11]);
        });
    }

    /// Reads in order, the event as 0. Whether that was all that will come.
    fn read(log: &Mutex<Vec<u32>>, batch: &mut Batch<u32>) -> bool {
        let mut log = log.lock();
        loop {
            if batch.next_event_in_order().is_some() {
                log.push(0);
            } else if let Some(request) = batch.next_request() {
                log.push(request);
            } else {
                return log.len() == 4;
            }
        }
    }

    #[test]
    fn loom_who_waits_is_woken_once_however_much_is_pushed() {
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
            let waker = task.waker();
            let cx = Context::from_waker(&waker);
            let waits = inbox.wait(Batch::default(), &cx).is_ok();
            pushing.join().unwrap();

            assert_eq!(task.times_woken(), usize::from(waits));
            if waits {
                let mut batch = inbox.take_reader(&cx).unwrap();
                assert_eq!(requests(&mut batch), [1]);
                assert!(batch.stop.is_some());
            }
        });
    }

    #[test]
    fn loom_the_task_that_polled_last_is_woken() {
        loom::model(|| {
            let (before, now) = (Task::new(), Task::new());
            let inbox = waiting(&before);
            let pushing = {
                let inbox = Arc::clone(&inbox);
                thread::spawn(move || inbox.request(1).unwrap())
            };

            let mut taken = Vec::new();
            let waker = now.waker();
            let cx = Context::from_waker(&waker);
            poll(&inbox, &cx, |batch| taken.extend(requests(batch)));
            pushing.join().unwrap();

            assert_eq!(now.times_woken(), usize::from(taken.is_empty()));
            assert!(before.times_woken() <= usize::from(!taken.is_empty()));
        });
    }

    #[test]
    fn loom_a_task_that_comes_while_another_reads_has_the_reader_afterwards() {
        loom::model(|| {
            let task = Task::new();
            let inbox = waiting(&task);
            let asking = {
                let inbox = Arc::clone(&inbox);
                thread::spawn(move || {
                    let Some(mut batch) = inbox.request_in_person(1).unwrap() else { return };
                    requests(&mut batch);
                    assert!(!matches!(inbox.leave(batch, false), Left::Alone(_)));
                })
            };

            // As if a deadline had come.
            task.run(poll_fn(|cx| match inbox.take_reader(cx) {
                Some(_reader) => Poll::Ready(()),
                None => Poll::Pending,
            }));
            asking.join().unwrap();
        });
    }

    #[test]
    fn loom_a_reader_that_is_out_when_the_task_ends_goes_with_one_of_both() {
        loom::model(|| {
            let inbox = waiting(&Task::new());
            let asking = {
                let inbox = Arc::clone(&inbox);
                thread::spawn(move || {
                    let reader = inbox.request_in_person(1).unwrap();
                    let left = reader.map(|reader| inbox.leave(reader, false));
                    matches!(left, Some(Left::Alone(_)))
                })
            };

            let dismissed = inbox.dismiss().is_some();

            assert_ne!(asking.join().unwrap(), dismissed);
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

            let mut seen = requests(&mut inbox.close());
            seen.extend(pushing.into_iter().filter_map(|it| it.join().unwrap().err()));
            seen.sort_unstable();

            assert_eq!(seen, [1, 2]);
            assert!(inbox.close().requests.is_empty(), "nothing is kept");
        });
    }
}
