//! The futures of senders, which the script polls.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as TaskContext, Poll, Wake, Waker};

use verger::mailbox::{AskError, SendError};

use super::ledger::Message;

/// Records that it was woken.
#[derive(Debug, Default)]
pub(super) struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The outcome of a sender's future.
pub(super) enum Sent {
    Message(Result<(), SendError<Message>>),
    Answer(Result<u32, AskError>),
}

/// A future that the script polls.
pub(super) struct Pending {
    pub(super) number: u32,
    pub(super) future: Pin<Box<dyn Future<Output = Sent> + Send>>,
    pub(super) flag: Arc<Flag>,
    /// It waits for room, and not for an answer.
    pub(super) waits_for_room: bool,
}

impl Pending {
    /// Polls the future. It was woken if it has anything to say, except for the first poll.
    pub(super) fn poll(&mut self) -> (Poll<Sent>, bool) {
        let woken = self.flag.0.swap(false, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&self.flag));
        (self.future.as_mut().poll(&mut TaskContext::from_waker(&waker)), woken)
    }

    pub(super) fn is_woken(&self) -> bool {
        self.flag.0.load(Ordering::Relaxed)
    }
}
