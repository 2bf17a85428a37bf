//! Questions: messages whose sender waits for an answer.
//!
//! The asker and the [`Reply`] inside the message share one [`AnswerCell`]. It is settled once: by an
//! answer, by dropping the reply, or by the mailbox when the message becomes a dead letter. Later
//! attempts to settle it are ignored.
//!
//! # Invariants
//!
//! 1. The first outcome stored in the cell is the one that the asker receives.
//! 2. A pending asker is woken when the cell is settled.
//! 3. No waker and no answer is dropped or called while the lock is held.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use super::address::{Addressee, SendError};
use crate::child::awaiting::AwaitedAnswer;
use crate::child::note_question;
use crate::dead_letter::DeadLetterReason;
use crate::panic::wake;
use crate::path::Path;
use crate::sync::Mutex;

/// Sends the answer to a question that was sent with [`Address::ask`].
///
/// It is a part of the message. Dropping it without an answer fails the question with
/// [`AskError::NoReply`].
///
/// ```
/// use verger::mailbox::{Inbox, Reply};
/// use verger::{Context, Supervisor, worker_with_mailbox};
///
/// struct Square(u64, Reply<u64>);
///
/// async fn squares(_ctx: Context, mut inbox: Inbox<Square>) {
///     while let Some(Square(number, reply)) = inbox.recv().await {
///         reply.send(number * number);
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (address, mailbox) = verger::mailbox();
/// let squares = worker_with_mailbox("squares", mailbox, squares);
/// let app = Supervisor::builder("app").child(squares).build()?.start().await?;
///
/// assert_eq!(address.ask(|reply| Square(7, reply)).await?, 49);
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
///
/// [`Address::ask`]: crate::mailbox::Address::ask
/// [`AskError::NoReply`]: crate::mailbox::AskError::NoReply
pub struct Reply<R> {
    cell: Arc<AnswerCell<R>>,
    /// Saves `drop` the lock after an answer. Only `drop` reads it.
    is_sent: AtomicBool,
}

impl<R> Reply<R> {
    /// Sends the answer to the asker.
    ///
    /// The first answer counts. An answer is dropped if the asker has stopped waiting.
    pub fn send(&self, answer: R) {
        self.is_sent.store(true, Ordering::Relaxed);
        self.cell.settle(Ok(answer));
    }

    /// Returns `true` if the asker still waits for an answer.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        let state = self.cell.state.lock();
        state.settled.is_none() && !state.asker_gone
    }
}

impl<R> Drop for Reply<R> {
    fn drop(&mut self) {
        if !*self.is_sent.get_mut() {
            self.cell.settle(Err(UnansweredQuestion::NoReply));
        }
    }
}

impl<R> fmt::Debug for Reply<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").field("is_wanted", &self.is_wanted()).finish()
    }
}

/// The reason why a question has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnansweredQuestion {
    /// The reply was dropped without an answer.
    NoReply,
    /// The message became a dead letter.
    DeadLetter(DeadLetterReason),
}

/// A question, whatever the type of its answer.
pub(super) trait Refuse: Send + Sync {
    /// Fails the question.
    fn refuse(&self, reason: DeadLetterReason);

    /// Returns `true` if the child has answered, whether or not the asker still waits.
    fn is_answered(&self) -> bool;
}

/// A question, as its mailbox keeps it.
pub(super) type OpenQuestion = Arc<dyn Refuse>;

struct AnswerCell<R> {
    state: Mutex<AnswerState<R>>,
    /// The mailbox that the question was sent to.
    asked: Weak<dyn AskedMailbox>,
}

/// A mailbox, as a question sees it.
pub(super) trait AskedMailbox: Send + Sync {
    /// Returns the path of the child.
    fn path(&self) -> Option<Path>;
}

struct AnswerState<R> {
    settled: Option<Result<R, UnansweredQuestion>>,
    /// An answer was sent.
    answered: bool,
    /// The asker was dropped, or has received the outcome.
    asker_gone: bool,
    waker: Option<Waker>,
}

impl<R> AnswerCell<R> {
    fn settle(&self, outcome: Result<R, UnansweredQuestion>) {
        let (waker, ignored) = {
            let mut state = self.state.lock();
            state.answered |= outcome.is_ok();
            if state.settled.is_some() || state.asker_gone {
                (None, Some(outcome))
            } else {
                state.settled = Some(outcome);
                (state.waker.take(), None)
            }
        };
        drop(ignored);
        if let Some(waker) = waker {
            wake(waker);
        }
    }
}

impl<R: Send> Refuse for AnswerCell<R> {
    fn refuse(&self, reason: DeadLetterReason) {
        self.settle(Err(UnansweredQuestion::DeadLetter(reason)));
    }

    fn is_answered(&self) -> bool {
        self.state.lock().answered
    }
}

/// Resolves to the outcome of a question.
pub(super) struct PendingAnswer<R> {
    cell: Arc<AnswerCell<R>>,
    /// Set once the outcome was returned; then `drop` needs no lock.
    is_done: bool,
    /// Set once the question was noted as open.
    is_noted: bool,
}

/// Creates the three ends of a question: to answer it, to wait for the answer, and to refuse it.
pub(super) fn ask<R: Send + 'static>(
    asked: Weak<dyn AskedMailbox>,
) -> (Reply<R>, PendingAnswer<R>, Arc<dyn Refuse>) {
    let state = AnswerState { settled: None, answered: false, asker_gone: false, waker: None };
    let cell = Arc::new(AnswerCell { state: Mutex::new(state), asked });
    let refuse = Arc::clone(&cell);
    let reply = Reply { cell: Arc::clone(&cell), is_sent: AtomicBool::new(false) };
    (reply, PendingAnswer { cell, is_done: false, is_noted: false }, refuse)
}

impl<R: Send> AwaitedAnswer for AnswerCell<R> {
    fn is_open(&self) -> bool {
        let state = self.state.lock();
        state.settled.is_none() && !state.asker_gone
    }

    fn of(&self) -> Option<Path> {
        self.asked.upgrade()?.path()
    }
}

impl<R: Send + 'static> Future for PendingAnswer<R> {
    type Output = Result<R, UnansweredQuestion>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let stale = {
            let mut state = this.cell.state.lock();
            if let Some(settled) = state.settled.take() {
                state.asker_gone = true;
                this.is_done = true;
                return Poll::Ready(settled);
            }
            match &state.waker {
                Some(waker) if waker.will_wake(cx.waker()) => None,
                _ => state.waker.replace(cx.waker().clone()),
            }
        };
        drop(stale);
        if !std::mem::replace(&mut this.is_noted, true) {
            let question: Weak<AnswerCell<R>> = Arc::downgrade(&this.cell);
            note_question(question);
        }
        Poll::Pending
    }
}

impl<R> Drop for PendingAnswer<R> {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let unused = {
            let mut state = self.cell.state.lock();
            state.asker_gone = true;
            (state.settled.take(), state.waker.take())
        };
        drop(unused);
    }
}

/// Error returned by [`Address::ask`] and [`Address::ask_within`].
///
/// `Debug` prints the same text as `Display`.
///
/// ```
/// use verger::mailbox::{Address, AskError, Reply};
///
/// /// Asks once more if the child has failed while it handled the question.
/// async fn total(cart: &Address<Reply<u64>>) -> Result<u64, AskError> {
///     match cart.ask(|reply| reply).await {
///         Err(AskError::NoReply { .. }) => cart.ask(|reply| reply).await,
///         answer => answer,
///     }
/// }
/// # drop(total);
/// ```
///
/// [`Address::ask`]: crate::mailbox::Address::ask
/// [`Address::ask_within`]: crate::mailbox::Address::ask_within
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The mailbox has no room, and its [overflow policy](crate::mailbox::Mailbox::overflow) is to reject.
    #[error(
        "the mailbox of {} is full (capacity {capacity}); wait for room with `send`, or raise the \
         capacity",
        Addressee(.child)
    )]
    Full {
        /// The child that the mailbox belongs to. `None` until its tree is started.
        child: Option<Path>,
        /// The capacity of the mailbox, in messages.
        capacity: usize,
    },
    /// The child is stopping, or is down and will not be restarted.
    #[error(
        "the mailbox of {} is closed: the child is stopping, or is down and will not be restarted",
        Addressee(.child)
    )]
    Closed {
        /// The child that the mailbox belongs to. `None` if its tree was never started.
        child: Option<Path>,
    },
    /// The question became a [dead letter](crate::dead_letter::DeadLetter) before the child received it.
    #[error("the question to {} was not delivered: {reason}", Addressee(.child))]
    Undelivered {
        /// The child that the mailbox belongs to.
        child: Option<Path>,
        /// The reason of the dead letter.
        reason: DeadLetterReason,
    },
    /// The question was received, and its [`Reply`](crate::mailbox::Reply) was dropped without an answer.
    ///
    /// That happens if the child fails while it handles the question, and if a
    /// [`WhileDown::reply`](crate::mailbox::WhileDown::reply) handler drops the reply. The question may have
    /// had an effect.
    #[error("{} has read the question and dropped its `Reply` without an answer", Addressee(.child))]
    NoReply {
        /// The child that the mailbox belongs to.
        child: Option<Path>,
    },
    /// The time limit of [`ask_within`](crate::mailbox::Address::ask_within) has passed.
    ///
    /// The child may still receive the question. A later answer is dropped.
    #[error("{} did not answer within {:?}", Addressee(.child), .within)]
    TimedOut {
        /// The child that the mailbox belongs to.
        child: Option<Path>,
        /// The time limit.
        within: Duration,
    },
}

impl<M> From<SendError<M>> for AskError {
    fn from(error: SendError<M>) -> Self {
        match error {
            SendError::Full { child, capacity, .. } => Self::Full { child, capacity },
            SendError::Closed { child, .. } => Self::Closed { child },
        }
    }
}

impl fmt::Debug for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(all(test, verger_loom))]
mod loom_tests {
    use loom::thread;

    use super::*;
    use crate::sync::model::{Task, check};

    /// A mailbox that is gone.
    struct Nobody;

    impl AskedMailbox for Nobody {
        fn path(&self) -> Option<Path> {
            None
        }
    }

    fn nobody() -> Weak<dyn AskedMailbox> {
        Weak::<Nobody>::new()
    }

    #[test]
    fn loom_the_first_of_an_answer_and_a_refusal_reaches_the_asker() {
        check(|| {
            let (reply, answer, refuse) = ask::<u32>(nobody());
            let answering = thread::spawn(move || reply.send(1));
            let refusing = thread::spawn(move || refuse.refuse(DeadLetterReason::Poison));

            let settled = Task::new().run(answer);

            answering.join().unwrap();
            refusing.join().unwrap();
            let refused = Err(UnansweredQuestion::DeadLetter(DeadLetterReason::Poison));
            assert!(settled == Ok(1) || settled == refused, "{settled:?}");
        });
    }

    #[test]
    fn loom_dropping_a_reply_wakes_the_asker() {
        check(|| {
            let (reply, answer, _) = ask::<u32>(nobody());
            let dropping = thread::spawn(move || drop(reply));

            assert_eq!(Task::new().run(answer), Err(UnansweredQuestion::NoReply));

            dropping.join().unwrap();
        });
    }
}
