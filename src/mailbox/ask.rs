//! Questions: a message that somebody waits for the answer of.
//!
//! The asker and the [`Reply`] within the message share a cell, which is settled once: by an
//! answer, by the end of the reply without one, or by the mailbox, when it knows that the message
//! will not be read. What comes later vanishes.
//!
//! # Invariants
//!
//! 1. What the cell was settled with first stays.
//! 2. Who was told `Pending` is woken when it is settled.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as TaskContext, Poll, Waker};

use crate::dead_letter::DeadLetterReason;
use crate::sync::Mutex;

/// Where the answer to a message goes; a part of the message. See [`Address::ask`].
///
/// Dropped without an answer, it tells the asker so.
///
/// [`Address::ask`]: crate::Address::ask
pub struct Reply<R> {
    cell: Arc<Cell<R>>,
    /// So that its end needs no look at the cell. Nobody reads it but that.
    is_sent: AtomicBool,
}

impl<R> Reply<R> {
    /// Gives the answer. The first one counts; one that comes too late vanishes.
    pub fn send(&self, answer: R) {
        self.is_sent.store(true, Ordering::Relaxed);
        self.cell.settle(Ok(answer));
    }

    /// Whether anybody still waits for the answer.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        let cell = self.cell.state.lock();
        cell.settled.is_none() && !cell.deserted
    }
}

impl<R> Drop for Reply<R> {
    fn drop(&mut self) {
        if !*self.is_sent.get_mut() {
            self.cell.settle(Err(Unanswered::NoReply));
        }
    }
}

impl<R> fmt::Debug for Reply<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").field("is_wanted", &self.is_wanted()).finish()
    }
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unanswered {
    /// Whoever had the message did not answer it.
    NoReply,
    /// The message was not delivered.
    Dead(DeadLetterReason),
}

/// Tells an asker that there will be no answer.
pub(super) trait Refuse: Send + Sync {
    fn refuse(&self, reason: DeadLetterReason);
}

struct Cell<R> {
    state: Mutex<State<R>>,
}

struct State<R> {
    settled: Option<Result<R, Unanswered>>,
    /// The asker is gone, or has the answer.
    deserted: bool,
    waker: Option<Waker>,
}

impl<R> Cell<R> {
    fn settle(&self, with: Result<R, Unanswered>) {
        let (waker, late) = {
            let mut state = self.state.lock();
            if state.settled.is_some() || state.deserted {
                (None, Some(with))
            } else {
                state.settled = Some(with);
                (state.waker.take(), None)
            }
        };
        // Outside of the lock: a waker and a value may do anything.
        drop(late);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<R: Send> Refuse for Cell<R> {
    fn refuse(&self, reason: DeadLetterReason) {
        self.settle(Err(Unanswered::Dead(reason)));
    }
}

/// Waits for the answer.
pub(super) struct Answer<R> {
    cell: Arc<Cell<R>>,
    /// It has come: the cell is of no interest any more.
    is_here: bool,
}

/// A reply, the answer to which can be waited for, and who can refuse one.
pub(super) fn ask<R: Send + 'static>() -> (Reply<R>, Answer<R>, Arc<dyn Refuse>) {
    let state = State { settled: None, deserted: false, waker: None };
    let cell = Arc::new(Cell { state: Mutex::new(state) });
    let refuse = Arc::clone(&cell);
    let reply = Reply { cell: Arc::clone(&cell), is_sent: AtomicBool::new(false) };
    (reply, Answer { cell, is_here: false }, refuse)
}

impl<R> Future for Answer<R> {
    type Output = Result<R, Unanswered>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let stale = {
            let mut state = this.cell.state.lock();
            if let Some(settled) = state.settled.take() {
                state.deserted = true;
                this.is_here = true;
                return Poll::Ready(settled);
            }
            match &state.waker {
                Some(waker) if waker.will_wake(cx.waker()) => None,
                _ => state.waker.replace(cx.waker().clone()),
            }
        };
        drop(stale);
        Poll::Pending
    }
}

impl<R> Drop for Answer<R> {
    fn drop(&mut self) {
        if self.is_here {
            return;
        }
        let rest = {
            let mut state = self.cell.state.lock();
            state.deserted = true;
            (state.settled.take(), state.waker.take())
        };
        drop(rest);
    }
}

#[cfg(all(test, verger_loom))]
mod loom_tests {
    use loom::thread;

    use super::*;
    use crate::sync::model::{Task, check};

    #[test]
    fn loom_of_an_answer_and_a_refusal_the_first_reaches_the_asker() {
        check(|| {
            let (reply, answer, refuse) = ask::<u32>();
            let answering = thread::spawn(move || reply.send(1));
            let refusing = thread::spawn(move || refuse.refuse(DeadLetterReason::Poison));

            let settled = Task::new().run(answer);

            answering.join().unwrap();
            refusing.join().unwrap();
            let dead = Err(Unanswered::Dead(DeadLetterReason::Poison));
            assert!(settled == Ok(1) || settled == dead, "{settled:?}");
        });
    }

    #[test]
    fn loom_a_reply_that_is_dropped_wakes_the_asker() {
        check(|| {
            let (reply, answer, _) = ask::<u32>();
            let dropping = thread::spawn(move || drop(reply));

            assert_eq!(Task::new().run(answer), Err(Unanswered::NoReply));

            dropping.join().unwrap();
        });
    }
}
