//! The lock under all shared state, and the one place that replaces it by loom's.
//!
//! A lock is held for a few instructions, and never while foreign code runs. So a poisoned lock can
//! only be a bug of this crate. The value in it is still whole, and is used.
//!
//! Under `--cfg verger_loom` the lock is loom's, which tries every interleaving, and the tests whose
//! names begin with `loom_` can be run. The flag isn't `--cfg loom`, because that one reaches tokio
//! too, which then leaves out signals, files and the network.

use std::sync::PoisonError;

#[cfg(verger_loom)]
use loom::sync as imp;
#[cfg(not(verger_loom))]
use std::sync as imp;

pub(crate) use self::imp::MutexGuard;
pub(crate) use self::imp::atomic::{AtomicU8, AtomicU16, Ordering};

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

/// A minimal runtime for loom tests.
#[cfg(all(test, verger_loom))]
pub(crate) mod model {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Wake, Waker};

    use loom::sync::{Condvar, Mutex};

    /// Tries every interleaving with at most three preemptions. All interleavings would be too many.
    pub(crate) fn check(model: impl Fn() + Send + Sync + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(model);
    }

    /// A task without an executor, which counts its wakes and can wait for one.
    pub(crate) struct Task {
        woken: Mutex<Woken>,
        changed: Condvar,
    }

    #[derive(Default)]
    struct Woken {
        times: usize,
        /// How many of them were followed by a poll.
        polled: usize,
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

        /// Polls until the future is ready, each time after a wake. Without one, loom reports a deadlock.
        pub(crate) fn run<F: Future>(self: &Arc<Self>, future: F) -> F::Output {
            let waker = self.waker();
            let mut future = pin!(future);
            loop {
                if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker))
                {
                    return output;
                }
                let mut woken = self.woken.lock().unwrap();
                while woken.polled == woken.times {
                    woken = self.changed.wait(woken).unwrap();
                }
                woken.polled = woken.times;
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
