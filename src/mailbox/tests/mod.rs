//! Mailboxes without a tree: an owner that keeps dead letters, a loan holder, and a counting waker.

#[cfg(not(verger_loom))]
mod errors;
#[cfg(not(verger_loom))]
mod foreign;
#[cfg(verger_loom)]
mod interleavings;
#[cfg(not(verger_loom))]
mod queue;
#[cfg(not(verger_loom))]
mod state;
#[cfg(not(verger_loom))]
mod wakes;

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Instant;

use super::address::SendError;
use super::inbox::Inbox;
use super::queue::Envelope;
use super::shared::MailboxShared;
use super::state::{NextMessage, Sent, Take, WhenFull};
use crate::child::{
    ChildBinding, ChildId, DefaultDrain, LoanHolder, MailboxControl, MailboxLoan, MailboxOwner,
};
use crate::core::{ConditionEvent, Key, MachineEvent};
use crate::dead_letter::{DeadLetterReason, Undelivered};
use crate::path::Path;

/// A supervisor that keeps all dead letters and events.
#[derive(Default)]
struct TestOwner {
    letters: Mutex<Vec<(DeadLetterReason, Box<dyn Any + Send>)>>,
    /// How many messages were lost themselves.
    lost: AtomicUsize,
    events: Mutex<Vec<MachineEvent>>,
}

impl TestOwner {
    /// Takes the dead letters since the last call.
    fn letters<M: 'static>(&self) -> Vec<(DeadLetterReason, M)> {
        let letters = std::mem::take(&mut *self.letters.lock().unwrap());
        letters.into_iter().map(|(why, what)| (why, *what.downcast().unwrap())).collect()
    }

    /// Returns how many messages were lost since the last call.
    #[cfg(not(verger_loom))]
    fn lost(&self) -> usize {
        self.lost.swap(0, Ordering::SeqCst)
    }

    /// Returns how often it was notified of a pending message since the last call.
    fn notifications(&self) -> usize {
        let events = std::mem::take(&mut *self.events.lock().unwrap());
        events
            .iter()
            .filter(|it| {
                matches!(it, MachineEvent::Condition(ConditionEvent::MessagePending { .. }))
            })
            .count()
    }
}

impl MailboxOwner for TestOwner {
    fn path(&self) -> Path {
        Path::root("app")
    }

    fn dead_letter(&self, undelivered: Undelivered, _: Instant) {
        let Undelivered { reason, payload, error, .. } = undelivered;
        if let Some(payload) = payload {
            self.letters.lock().unwrap().push((reason, payload));
        } else {
            assert_eq!(reason, DeadLetterReason::LostInFailure);
            assert!(error.is_some(), "it names the exit");
            self.lost.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn notify(&self, event: MachineEvent) {
        self.events.lock().unwrap().push(event);
    }
}

#[derive(Default)]
struct TestHolder {
    is_cancelled: AtomicBool,
    acks: AtomicUsize,
    final_messages: AtomicUsize,
}

impl LoanHolder for TestHolder {
    fn message_span(&self, _: &'static str) -> tracing::Span {
        tracing::Span::none()
    }

    fn is_cancelled_without_failure(&self) -> bool {
        self.is_cancelled.load(Ordering::SeqCst)
    }

    fn on_ack(&self) {
        self.acks.fetch_add(1, Ordering::SeqCst);
    }

    fn on_final_message(&self) {
        self.final_messages.fetch_add(1, Ordering::SeqCst);
    }
}

/// The number of each incarnation that borrows a mailbox.
const INCARNATION: u32 = 1;

/// A mailbox that is bound to a child.
struct BoundMailbox<M> {
    shared: Arc<MailboxShared<M>>,
    owner: Arc<TestOwner>,
    holder: Arc<TestHolder>,
    key: Key,
    now: Instant,
}

impl<M: Send + 'static> BoundMailbox<M> {
    fn new(capacity: usize) -> Self {
        Self::with(capacity, false)
    }

    /// Returns a mailbox whose child is started by messages.
    fn start_on_message(capacity: usize) -> Self {
        Self::with(capacity, true)
    }

    fn with(capacity: usize, start_on_message: bool) -> Self {
        let now = Instant::now();
        let key = Key::of_number(0);
        let owner = Arc::<TestOwner>::default();
        let shared = Arc::new(MailboxShared::new(capacity));
        let this = Self { shared, owner, holder: Arc::default(), key, now };
        this.bind(start_on_message);
        this
    }

    fn bind(&self, start_on_message: bool) {
        self.shared.bind(ChildBinding {
            owner: Arc::<TestOwner>::clone(&self.owner),
            key: self.key,
            name: "child".into(),
            serial: None,
            drain: DefaultDrain::AfterMicros(0),
            start_on_message,
        });
    }

    /// Lends it to a holder that is not cancelled.
    fn lend(&mut self) -> Inbox<M> {
        let (loan, held_until) = self.loan();
        let holder = Arc::<TestHolder>::clone(&self.holder);
        Inbox::new(Arc::clone(&self.shared), holder, loan, held_until)
    }

    /// Lends it without an inbox. Returns the number of the loan and the deadline of its hold.
    fn loan(&mut self) -> (u64, Option<Instant>) {
        self.holder = Arc::default();
        let holder = Arc::<TestHolder>::clone(&self.holder);
        let loan = MailboxLoan { holder, child: self.child(), incarnation: INCARNATION };
        self.shared.lend(&loan, self.now).unwrap()
    }

    fn child(&self) -> ChildId {
        ChildId::new(&self.owner, self.key)
    }

    fn try_send(&self, message: M) -> Result<(), SendError<M>> {
        match self.shared.send(Envelope::new(message), WhenFull::Overflow)? {
            Sent::Queued => {}
            Sent::Undeliverable(it) => self.shared.dispose(it, self.now),
            Sent::Waiting(..) => unreachable!("it does not wait"),
        }
        Ok(())
    }

    /// Sends a message when there is room. Returns the message and its sender's number if it waits.
    fn poll_send(
        &self,
        message: M,
        number: Option<u64>,
        waker: &Waker,
    ) -> Result<Option<(M, u64)>, SendError<M>> {
        match self.shared.send(Envelope::new(message), WhenFull::Wait { number, waker })? {
            Sent::Queued => Ok(None),
            Sent::Undeliverable(it) => {
                self.shared.dispose(it, self.now);
                Ok(None)
            }
            Sent::Waiting(message, number) => Ok(Some((message, number))),
        }
    }

    /// Sends a message to a mailbox that is open. Returns its sender's number if it waits.
    fn wait(&self, message: M, number: Option<u64>, waker: &Waker) -> Option<u64> {
        let sent = self.poll_send(message, number, waker);
        sent.unwrap_or_else(|_| panic!("it is open")).map(|(_, number)| number)
    }

    fn next(&self, loan: u64, take: Take, waker: &Waker) -> Poll<Option<Envelope<M>>> {
        match self.shared.next(loan, take, false, waker) {
            NextMessage::Message(envelope, _) => Poll::Ready(Some(envelope)),
            NextMessage::End => Poll::Ready(None),
            NextMessage::None => Poll::Pending,
            NextMessage::Stopping => unreachable!("it awaits messages only"),
        }
    }

    #[cfg(not(verger_loom))]
    fn leave(&self, number: u64) {
        self.shared.step(|state, fx| state.leave(number, fx));
    }

    fn close(&self, reason: DeadLetterReason) {
        drop(Arc::clone(&self.shared).close(reason));
    }

    fn mark_idle(&self) {
        drop(Arc::clone(&self.shared).mark_idle());
    }

    #[cfg(not(verger_loom))]
    fn put_back(&self, envelope: Envelope<M>, loan: u64, holder: &TestHolder) {
        self.shared.put_back(envelope, loan, holder, self.now);
    }
}
