//! Closures on tokio's blocking pool, each tied to an incarnation.
//!
//! # Invariants
//!
//! 1. A closure that has begun holds a guard of its child, so the child ends only once the closure has.
//! 2. A closure that is cancelled before it has begun is dropped then, also if the pool has no thread for it.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{self, Poll};

use tokio::task::JoinHandle;
use tracing::Span;

use super::busy::BusyClosure;
use super::context::Context;
use super::helpers::HelperGuard;
use super::incarnation::Incarnation;
use super::task::log_panics;
use crate::panic::{PanicMessage, catch_panic_message};
use crate::sync::Mutex;
use crate::{named_task, subscriber};

/// Runs `closure` to its end. Returns `None` if `aborted` has resolved, or if the child was cancelled before the
/// closure has begun.
pub(crate) async fn run_closure<T, F>(
    ctx: &Context,
    aborted: impl Future<Output = ()>,
    closure: F,
) -> Option<Result<T, PanicMessage>>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    let guard = ctx.incarnation.admit_helper()?;
    let incarnation = Arc::clone(&ctx.incarnation);
    let span = subscriber::call(Span::current).unwrap_or_else(Span::none);
    let waiting = Arc::new(Mutex::new(Some(Closure { closure, span, incarnation, guard })));
    let taken = Arc::clone(&waiting);
    let inside = move || {
        let closure = taken.lock().take();
        closure.map(Closure::call)
    };
    let mut running =
        Running { outcome: named_task::spawn_blocking(|| ctx.path().to_string(), inside), waiting };
    let mut aborted = pin!(aborted);
    let mut cancelled = pin!(ctx.cancelled());
    let mut is_cancelled = false;
    poll_fn(|cx: &mut task::Context<'_>| {
        if aborted.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        if !is_cancelled && cancelled.as_mut().poll(cx).is_ready() {
            is_cancelled = true;
            if running.forget() {
                return Poll::Ready(None);
            }
        }
        // An error means that the runtime shuts down.
        Pin::new(&mut running.outcome).poll(cx).map(|ended| ended.ok().flatten())
    })
    .await
}

/// A closure that hasn't begun. Fields are dropped in order: the guard is the last.
struct Closure<F> {
    closure: F,
    span: Span,
    incarnation: Arc<Incarnation>,
    guard: HelperGuard,
}

impl<T, F: FnOnce() -> T> Closure<F> {
    fn call(self) -> Result<T, PanicMessage> {
        let Self { closure, span, incarnation, guard } = self;
        let busy = BusyClosure::new(&incarnation, None);
        let ended = log_panics(&incarnation, || {
            subscriber::in_span(&span, || catch_panic_message(closure))
        });
        subscriber::close(span);
        // They hold the tree.
        drop((busy, incarnation));
        // From here on the child may have ended.
        drop(guard);
        ended
    }
}

/// A closure on the pool. Dropping this drops a closure that hasn't begun.
struct Running<T, F> {
    outcome: JoinHandle<Option<Result<T, PanicMessage>>>,
    waiting: Arc<Mutex<Option<Closure<F>>>>,
}

impl<T, F> Running<T, F> {
    /// Drops the closure if it hasn't begun. Returns whether it hadn't.
    fn forget(&self) -> bool {
        // The lock isn't held while it is dropped.
        let waiting = self.waiting.lock().take();
        waiting.is_some()
    }
}

impl<T, F> Drop for Running<T, F> {
    fn drop(&mut self) {
        self.forget();
    }
}
