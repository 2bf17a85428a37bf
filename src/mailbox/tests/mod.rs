//! Mailboxes without a tree: somebody who buries letters, somebody who reads, and a task that
//! counts how often it was woken.

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
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use super::batch::Batch;
use super::queue::{Envelope, Origin};
use super::shared::Shared;
use super::slot::{At, Borrower, Grace, Loan, Place, Spot, spot};
use super::state::{Next, Patience, Received};
use super::{Inbox, SendError};
use crate::core::{Key, Machine, MachineEvent};
use crate::dead_letter::{DeadLetterReason, Owner, Undelivered};
use crate::path::Path;
use crate::policy::Rules;

/// A supervisor that keeps all letters, and what it was told.
#[derive(Default)]
struct Office {
    letters: Mutex<Vec<(DeadLetterReason, Box<dyn Any + Send>)>>,
    told: Mutex<Vec<MachineEvent>>,
}

impl Office {
    /// What was buried since this was asked last.
    fn letters<M: 'static>(&self) -> Vec<(DeadLetterReason, M)> {
        let letters = std::mem::take(&mut *self.letters.lock().unwrap());
        letters.into_iter().map(|(why, what)| (why, *what.downcast().unwrap())).collect()
    }

    /// How often it heard that a message waits, since this was asked last.
    fn wanted(&self) -> usize {
        let told = std::mem::take(&mut *self.told.lock().unwrap());
        told.iter().filter(|it| matches!(it, MachineEvent::MessagePending { .. })).count()
    }
}

impl fmt::Debug for Office {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Office").finish_non_exhaustive()
    }
}

impl Owner for Office {
    fn path(&self) -> Path {
        Path::root("app")
    }

    fn bury(&self, undelivered: Undelivered) {
        self.letters.lock().unwrap().push((undelivered.reason, undelivered.payload));
    }

    fn tell(&self, event: MachineEvent) {
        self.told.lock().unwrap().push(event);
    }
}

/// Whoever has the mailbox.
#[derive(Default)]
struct Reader {
    is_stopping: AtomicBool,
    acked: AtomicUsize,
    ends: AtomicUsize,
}

impl Borrower for Reader {
    fn is_innocent(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst)
    }

    fn acked(&self) {
        self.acked.fetch_add(1, Ordering::SeqCst);
    }

    fn is_to_end(&self) {
        self.ends.fetch_add(1, Ordering::SeqCst);
    }
}

/// A mailbox that has its place in a tree.
struct Post<M> {
    shared: Arc<Shared<M>>,
    office: Arc<Office>,
    reader: Arc<Reader>,
    key: Key,
    /// What the reader of the last loan has taken over, and which that is.
    batch: Mutex<(u64, Option<Arc<Batch<M>>>)>,
}

impl<M: Send + 'static> Post<M> {
    fn new(capacity: usize) -> Self {
        Self::of(capacity, false)
    }

    /// Its child is started by messages.
    fn on_message(capacity: usize) -> Self {
        Self::of(capacity, true)
    }

    fn of(capacity: usize, starts_on_message: bool) -> Self {
        let now = Instant::now();
        let key = Machine::dynamic(Rules::default(), now, 0).add(Arc::default(), now);
        let office = Arc::<Office>::default();
        let shared = Arc::new(Shared::new(capacity));
        let this = Self { shared, office, reader: Arc::default(), key, batch: Mutex::default() };
        this.bind(starts_on_message);
        this
    }

    fn bind(&self, starts_on_message: bool) {
        self.shared.bind(Place::At(At {
            owner: Arc::<Office>::clone(&self.office),
            key: self.key,
            name: "child".into(),
            serial: None,
            grace: Grace::Micros(0),
            starts_on_message,
        }));
    }

    /// Lends it to somebody who is not stopping.
    fn lend(&mut self) -> Inbox<M> {
        let loan = self.loan();
        Inbox::new(Arc::clone(&self.shared), loan)
    }

    /// The same, for the number of the loan.
    fn loan(&mut self) -> u64 {
        self.reader = Arc::default();
        let borrower = Arc::<Reader>::clone(&self.reader);
        let loan = Loan { borrower, at: self.spot(), incarnation: 1 };
        let lent = self.shared.lend(loan);
        lent.unwrap_or_else(|_| panic!("it is its place"))
    }

    fn spot(&self) -> Spot {
        spot(&self.office, self.key)
    }

    fn try_send(&self, message: M) -> Result<(), SendError<M>> {
        self.shared.send(message, Origin::Sent, None, Patience::None)
    }

    /// Sends a message and waits, if there is no room, under this number.
    fn wait(&self, message: M, number: Option<u64>, waker: &Waker) -> Option<u64> {
        let sent = self.shared.poll_send(message, number, waker);
        sent.unwrap_or_else(|_| panic!("it is open")).map(|(_, number)| number)
    }

    fn next(&self, loan: u64, lends: bool, waker: &Waker) -> Poll<Option<Envelope<M>>> {
        let mut batch = self.batch.lock().unwrap();
        if batch.0 != loan {
            *batch = (loan, None);
        }
        let mut cx = Context::from_waker(waker);
        if !lends {
            if let Some(slip) = Batch::next(&mut batch.1) {
                return Poll::Ready(Some(slip.open()));
            }
            match self.shared.receive(loan, &mut batch.1, &mut cx) {
                Received::Message(slip) => return Poll::Ready(Some(slip.open())),
                Received::Nothing(_) => return Poll::Pending,
                Received::Unusual => {}
            }
        }
        match self.shared.poll_next(loan, lends, &mut cx).0 {
            Next::Message(envelope) => Poll::Ready(Some(envelope)),
            Next::End => Poll::Ready(None),
            Next::Nothing(..) => Poll::Pending,
        }
    }
}
