//! Which of many futures are ready to be polled again.
//!
//! Without it each wake would poll all of them.

use std::sync::Arc;
use std::task::{Wake, Waker};

use crate::panic::wake;
use crate::sync::Mutex;

/// The futures that were woken since the queue was taken.
#[derive(Debug, Default)]
pub(super) struct ReadyQueue(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    ready: Vec<u64>,
    /// The waker of the task that polls the futures.
    waker: Option<Waker>,
}

impl ReadyQueue {
    /// Sets what is woken by the next wake of a future.
    pub(super) fn wake_by(&self, waker: &Waker) {
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
    pub(super) fn take(&self) -> Vec<u64> {
        std::mem::take(&mut self.0.lock().ready)
    }
}

/// Wakes one of the futures.
pub(super) struct Ready {
    queue: Arc<ReadyQueue>,
    number: u64,
}

impl Ready {
    pub(super) fn waker(queue: &Arc<ReadyQueue>, number: u64) -> Waker {
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
