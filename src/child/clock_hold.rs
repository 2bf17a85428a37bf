//! Keeps a paused clock from advancing while a thread outside of the runtime works.
//!
//! A clock that a test has paused advances to the next timer when the runtime is idle. tokio knows of its own
//! threads only, so the clock would run ahead of a child that has a thread of its own. As long as a closure is
//! on the blocking pool, it doesn't advance: so one waits there while the child's thread works.
//!
//! # Invariants
//!
//! 1. Outside of tests there is no hold, and a wait costs nothing more.
//! 2. Between a wake of what the thread waits for and the thread's next step, the clock stands still.
//! 3. A child that is aborted keeps the clock for a second of real time at most, so that its thread can end before the
//!    leak timeout has passed, and the end of the runtime waits no longer.
//! 4. A hold that is closed never keeps the clock again.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::clock::is_paused;
use crate::sync::Mutex;

/// How long a child that was aborted keeps the clock, in real time.
const ABORTED: Duration = Duration::from_secs(1);

/// See the [module](self). A clone is the same hold.
#[derive(Clone, Debug)]
pub(super) struct ClockHold(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    runtime: Handle,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Ends the closure on the pool when it is dropped, or soon after a message.
    held: Option<mpsc::Sender<()>>,
    /// Whether the future was woken since its last poll has begun.
    woken: bool,
    aborted: bool,
    closed: bool,
}

impl ClockHold {
    /// Keeps the clock from advancing, if it is paused. Called inside a runtime.
    pub(super) fn new() -> Option<Self> {
        let runtime = Handle::current();
        // Only a runtime with one thread can pause its clock.
        if runtime.runtime_flavor() != RuntimeFlavor::CurrentThread || !is_paused() {
            return None;
        }
        let hold = Self(Arc::new(Shared { runtime, state: Mutex::default() }));
        hold.hold(false);
        Some(hold)
    }

    pub(super) fn is_held(&self) -> bool {
        self.0.state.lock().held.is_some()
    }

    /// Lets the clock advance for good.
    pub(super) fn close(&self) {
        let mut state = self.0.state.lock();
        state.closed = true;
        state.held = None;
    }

    /// Lets the clock advance soon, also if the thread doesn't end.
    fn abort(&self) {
        let mut state = self.0.state.lock();
        state.aborted = true;
        if let Some(held) = &state.held {
            let _ = held.send(());
        }
    }

    fn hold(&self, woken: bool) {
        let mut state = self.0.state.lock();
        state.woken = woken;
        if state.closed || state.held.is_some() {
            return;
        }
        let (release, released) = mpsc::channel();
        if state.aborted {
            let _ = release.send(());
        }
        state.held = Some(release);
        drop(self.0.runtime.spawn_blocking(move || {
            if released.recv().is_ok() {
                let _ = released.recv_timeout(ABORTED);
            }
        }));
    }

    /// Lets the clock advance until the future is woken, unless it was.
    fn release(&self) {
        let mut state = self.0.state.lock();
        if !state.woken {
            state.held = None;
        }
    }
}

/// Aborts the hold when it is dropped.
pub(super) struct AbortOnDrop(pub(super) Option<ClockHold>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        if let Some(hold) = &self.0 {
            hold.abort();
        }
    }
}

/// Closes the hold when it is dropped.
pub(super) struct CloseOnDrop(pub(super) Option<ClockHold>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        if let Some(hold) = &self.0 {
            hold.close();
        }
    }
}

pin_project! {
    /// A future that lets the clock advance while it is pending.
    pub(super) struct Waits<F> {
        #[pin]
        future: F,
        hold: Option<ClockHold>,
    }
}

impl<F> Waits<F> {
    pub(super) fn new(future: F, hold: Option<ClockHold>) -> Self {
        Self { future, hold }
    }
}

impl<F: Future> Future for Waits<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let Some(hold) = this.hold else { return this.future.poll(cx) };
        hold.hold(false);
        let waker = HoldWaker { hold: hold.clone(), waker: cx.waker().clone() };
        let polled = this.future.poll(&mut Context::from_waker(&Waker::from(Arc::new(waker))));
        if polled.is_pending() {
            hold.release();
        }
        polled
    }
}

/// Keeps the clock before it wakes the thread. A timer wakes it in the runtime's own thread, before the clock
/// can advance again.
struct HoldWaker {
    hold: ClockHold,
    waker: Waker,
}

impl Wake for HoldWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.hold.hold(true);
        self.waker.wake_by_ref();
    }
}
