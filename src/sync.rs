//! The lock under everything that is shared, and the one place that exchanges it for loom's.
//!
//! A lock here is held for a few instructions and never while foreign code runs, so that a poisoned
//! one can only mean a bug of ours; the value in it is still whole, and is used.
//!
//! Under `--cfg verger_loom` the lock is loom's, which tries every interleaving, and the tests
//! whose name begins with `loom_` can be run. It is a flag of our own, because `--cfg loom` reaches
//! tokio too, which then leaves out signals, files and the network.

use std::sync::PoisonError;

#[cfg(verger_loom)]
use loom::sync as imp;
#[cfg(not(verger_loom))]
use std::sync as imp;

pub(crate) use self::imp::MutexGuard;
pub(crate) use self::imp::atomic::{AtomicU8, Ordering};

#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(imp::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(imp::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a loom test needs of a runtime.
#[cfg(all(test, verger_loom))]
pub(crate) mod model {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Wake, Waker};

    use loom::sync::{Condvar, Mutex};

    /// Tries every interleaving in which threads are preempted at most three times, which is where
    /// bugs are; all of them would be too many.
    pub(crate) fn check(model: impl Fn() + Send + Sync + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(model);
    }

    /// A task without an executor: it knows how often it was woken, and can wait for that.
    pub(crate) struct Task {
        woken: Mutex<Woken>,
        changed: Condvar,
    }

    #[derive(Default)]
    struct Woken {
        times: usize,
        /// How many of them were answered by another poll.
        heard: usize,
    }

    impl Task {
        pub(crate) fn new() -> Arc<Self> {
            Arc::new(Self { woken: Mutex::default(), changed: Condvar::new() })
        }

        pub(crate) fn waker(self: &Arc<Self>) -> Waker {
            Waker::from(Arc::clone(self))
        }

        pub(crate) fn times_woken(&self) -> usize {
            self.woken.lock().unwrap().times
        }

        /// Polls until the future is ready, again only after the task was woken. If it never is,
        /// loom reports a deadlock.
        pub(crate) fn run<F: Future>(self: &Arc<Self>, future: F) -> F::Output {
            let waker = self.waker();
            let mut future = pin!(future);
            loop {
                if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker))
                {
                    return output;
                }
                let mut woken = self.woken.lock().unwrap();
                while woken.heard == woken.times {
                    woken = self.changed.wait(woken).unwrap();
                }
                woken.heard = woken.times;
            }
        }
    }

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.woken.lock().unwrap().times += 1;
            self.changed.notify_all();
        }
    }
}
