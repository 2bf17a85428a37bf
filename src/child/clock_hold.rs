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
//!
//! Which incarnations have a closure that occupies a thread is known only while a [`BusyWatch`] exists: without one,
//! a closure costs one load more.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Weak, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::runtime::{Handle, RuntimeFlavor};

use super::incarnation::Incarnation;
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
    pub(super) fn abort(&self) {
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

/// Calls a method of the hold, if there is one, when it is dropped.
pub(super) struct HoldOnDrop(pub(super) Option<ClockHold>, pub(super) fn(&ClockHold));

impl Drop for HoldOnDrop {
    fn drop(&mut self) {
        if let Some(hold) = &self.0 {
            (self.1)(hold);
        }
    }
}

pin_project! {
    /// A future that lets the clock advance while it is pending.
    pub(super) struct HeldWaits<F> {
        #[pin]
        future: F,
        hold: Option<ClockHold>,
    }
}

impl<F> HeldWaits<F> {
    pub(super) fn new(future: F, hold: Option<ClockHold>) -> Self {
        Self { future, hold }
    }
}

impl<F: Future> Future for HeldWaits<F> {
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

/// How many [`BusyWatch`]es exist.
static WATCHES: AtomicUsize = AtomicUsize::new(0);

/// The closures that have begun while they were watched.
static CLOSURES: LazyLock<Mutex<Vec<Weak<BusyClosure>>>> = LazyLock::new(Mutex::default);

/// A closure that has begun, and has not returned as long as this exists.
pub(crate) struct BusyClosure {
    pub(crate) incarnation: Arc<Incarnation>,
    /// How a closure on a thread of its own keeps the paused clock. tokio itself keeps it for its own pool.
    hold: Option<ClockHold>,
}

impl BusyClosure {
    /// Notes a closure that begins, if that is watched.
    pub(super) fn new(
        incarnation: &Arc<Incarnation>,
        hold: Option<&ClockHold>,
    ) -> Option<Arc<Self>> {
        if WATCHES.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let closure = Arc::new(Self { incarnation: Arc::clone(incarnation), hold: hold.cloned() });
        let mut closures = CLOSURES.lock();
        closures.retain(|closure| closure.strong_count() > 0);
        closures.push(Arc::downgrade(&closure));
        Some(closure)
    }
}

/// While it exists, it is known which closures occupy a thread.
#[derive(Debug)]
pub(crate) struct BusyWatch(());

impl BusyWatch {
    pub(crate) fn new() -> Self {
        WATCHES.fetch_add(1, Ordering::Relaxed);
        Self(())
    }

    /// Returns the closures that keep a paused clock from advancing, the one that began first first.
    pub(crate) fn closures(&self) -> Vec<Arc<BusyClosure>> {
        let closures: Vec<_> = CLOSURES.lock().iter().filter_map(Weak::upgrade).collect();
        let keeps_clock =
            |closure: &Arc<BusyClosure>| closure.hold.as_ref().is_none_or(ClockHold::is_held);
        closures.into_iter().filter(keeps_clock).collect()
    }
}

impl Drop for BusyWatch {
    fn drop(&mut self) {
        WATCHES.fetch_sub(1, Ordering::Relaxed);
    }
}
