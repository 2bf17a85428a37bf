//! Children that have a separate thread: functions that block, and futures that aren't `Send`.
//!
//! # Invariants
//!
//! 1. The thread holds a guard of its incarnation until the child's code has ended, so the child has not ended
//!    before, and is reported as leaked if that takes too long.
//! 2. Nothing waits for the thread itself: neither the runtime nor the end of the process.
//! 3. The thread of an incarnation that has ended before it began calls no code of the child's.

use std::future::{Future, poll_fn};
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use std::{fmt, io};

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::LocalSet;

use super::clock_hold::{ClockHold, HeldWaits, HoldOnDrop};
use super::closures::ThreadCode;
use super::context::Context;
use super::incarnation::Signal;
use super::spec::{ChildMeta, ChildSpec, FactoryKind, IncarnationFactory, Phases};
use super::task::{ExitFuture, catch, drop_after, panicked, watched};
use super::workers::TypeMeta;
use crate::exit::{Exit, ExitError, ExitReason, Outcome};
use crate::panic::Foreign;
use crate::path::Path;

/// Describes a child that is a function which blocks, on a thread of its own.
///
/// Use it for code that isn't async: a loop around a synchronous client, a driver, a device, a long computation.
/// The function is called once for each incarnation, and is treated as an `async fn` is: what it returns, its
/// error or its panic is the exit of the child, and all options of a [`ChildSpec`] apply. The thread is
/// named after the child's path, or after the end of it on Linux, which keeps 15 bytes. The runtime and
/// the span of the child are entered.
///
/// The child is ready when its thread is started; one that signals readiness calls
/// [`ready`](Context::ready). If the thread can't be started, the activation has failed with the error of the
/// system.
///
/// # Cancellation
///
/// A thread can't be ended from outside. The function has to call [`check`](BlockingContext::check) again and
/// again, which fails once the child is cancelled:
///
/// ```
/// use std::time::Duration;
///
/// use verger::{BlockingContext, Exit, Supervisor, blocking};
///
/// fn poll(ctx: BlockingContext) -> Exit {
///     loop {
///         ctx.check()?;
///         // Read the device.
///         ctx.sleep(Duration::from_secs(1));
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = Supervisor::builder("app").child(blocking("device", poll)).build()?.start().await?;
/// app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
///
/// A function that still runs after its [`shutdown`](ChildSpec::shutdown) grace and the
/// [`leak_timeout`](crate::SupervisorBuilder::leak_timeout) of its supervisor is reported as leaked, by its path, and
/// its supervisor goes on. Its end is reported, too, when it comes. Neither the end of the runtime nor that of the
/// process waits for the thread. [`on_leak`](ChildSpec::on_leak) decides whether the next incarnation starts
/// beside it.
#[track_caller]
pub fn blocking<F, O>(name: impl Into<String>, run: F) -> ChildSpec
where
    F: Fn(BlockingContext) -> O + Send + Sync + 'static,
    O: Outcome + 'static,
{
    on_thread(name.into(), TypeMeta::of::<F>(), false, move |Inside { ctx, hold, .. }| {
        run(BlockingContext { ctx, hold }).into_exit()
    })
}

/// The [`Context`] of a child that blocks its thread, with the calls that such a child needs.
///
/// It dereferences to [`Context`]. See [`blocking`].
///
/// The example of [`blocking`] uses one.
pub struct BlockingContext {
    ctx: Context,
    hold: Option<ClockHold>,
}

impl BlockingContext {
    /// Fails once the child is cancelled, so that `ctx.check()?` ends the function.
    ///
    /// The error isn't a failure: a child that returns it has ended as cleanly as with `Ok`. Call it at least
    /// once in the time that a stop may take. It costs one load.
    ///
    /// # Errors
    ///
    /// If the child is cancelled. The error keeps its meaning as an [`ExitError`]; converted to the error of
    /// anyhow, for example, it is an error as any other.
    pub fn check(&self) -> Exit {
        if self.is_cancelled() {
            return Err(ExitError::from_reason(ExitReason::Shutdown));
        }
        Ok(())
    }

    /// Blocks the thread for this time, or until the child is cancelled. Returns whether the time has passed.
    ///
    /// It uses the clock of the runtime, which a test can pause. Unlike `std::thread::sleep`, it delays no
    /// stop:
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use verger::BlockingContext;
    ///
    /// fn poll(ctx: BlockingContext) {
    ///     while ctx.sleep(Duration::from_secs(60)) {
    ///         // Read the device.
    ///     }
    /// }
    /// # drop(poll);
    /// ```
    ///
    /// # Panics
    ///
    /// As for [`block_on`](Self::block_on).
    pub fn sleep(&self, duration: Duration) -> bool {
        // Also where the runtime has no timers any more: it ends after its children.
        !self.is_cancelled()
            && self.block_on(self.run_until_cancelled(tokio::time::sleep(duration))).is_some()
    }

    /// Blocks the thread until the future is ready, for what only async code has: a message of an
    /// `Inbox`, a lock, a service.
    ///
    /// Call it instead of [`Handle::block_on`]: while it waits, a clock that a test has paused can advance. A
    /// cancellation doesn't end it. Wrap the future in [`run_until_cancelled`](Context::run_until_cancelled) for
    /// that.
    ///
    /// # Panics
    ///
    /// If the future panics, if the runtime has ended and the future uses its timers or its sockets, or if it is
    /// called inside an async block, as from another `block_on`.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        Handle::current().block_on(HeldWaits::new(future, self.hold.clone()))
    }
}

impl Deref for BlockingContext {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.ctx
    }
}

/// A clone is for a thread that the child starts itself. There, a paused clock takes no notice of it.
impl Clone for BlockingContext {
    fn clone(&self) -> Self {
        Self { ctx: self.ctx.clone(), hold: None }
    }
}

impl fmt::Debug for BlockingContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.ctx, f)
    }
}

/// Describes a child whose future isn't `Send`, on a thread of its own.
///
/// Use it for code that keeps an `Rc`, a `RefCell` borrow or a handle of a C library across an `await`. The
/// function is called once for each incarnation, on the new thread, and its future is polled and dropped there. The
/// thread is named after the child's path, as for [`blocking`](crate::blocking()). Everything else is
/// as for [`worker`](fn@crate::worker): what it returns, its cancellation, and the abort after its grace, which drops
/// the future at its next await point.
///
/// `tokio::task::spawn_local` spawns tasks on the same thread; they end with the incarnation. Timers, sockets
/// and `tokio::spawn` are those of the runtime that runs the tree.
///
/// The child is ready when its thread is started. If the thread can't be started, the activation has failed with the
/// error of the system.
///
/// ```
/// use std::cell::RefCell;
/// use std::rc::Rc;
/// use std::time::Duration;
///
/// use verger::{Context, Exit, Supervisor, local};
///
/// async fn script(ctx: Context) -> Exit {
///     let calls = Rc::new(RefCell::new(0));
///     let sleep = || tokio::time::sleep(Duration::from_secs(1));
///     while ctx.run_until_cancelled(sleep()).await.is_some() {
///         *calls.borrow_mut() += 1;
///     }
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = Supervisor::builder("app").child(local("script", script)).build()?.start().await?;
/// app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn local<F, Fut, O>(name: impl Into<String>, run: F) -> ChildSpec
where
    F: Fn(Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = O> + 'static,
    O: Outcome + 'static,
{
    on_thread(name.into(), TypeMeta::of::<F>(), true, move |inside| run_local(inside, &run))
}

/// Polls the future that `make` returns until it ends or is aborted, and drops it.
fn run_local<Fut: Future<Output: Outcome>>(
    inside: Inside,
    make: impl FnOnce(Context) -> Fut,
) -> Exit {
    let Inside { ctx, hold, mut abandoned } = inside;
    let incarnation = Arc::clone(&ctx.incarnation);
    let mut make = Some(move || Box::pin(make(ctx)));
    let mut future = None;
    let ended = poll_fn(|cx| {
        // A child that has to end isn't polled again.
        if Pin::new(&mut abandoned).poll(cx).is_ready() {
            return Poll::Ready(Err(ExitError::from_reason(ExitReason::Aborted)));
        }
        let poll = || {
            if let Some(make) = make.take() {
                future = Some(make());
            }
            let Some(future) = &mut future else { return Poll::Pending };
            future.as_mut().poll(cx).map(Outcome::into_exit)
        };
        watched(&incarnation, || catch(poll))
    });
    let tasks = LocalSet::new();
    let exit = Handle::current().block_on(HeldWaits::new(tasks.run_until(ended), hold));
    // The tasks that the child has spawned are dropped last.
    drop_after(exit, || drop((future, tasks)))
}

/// A thread could not be started.
#[derive(Debug, thiserror::Error)]
#[error("can't start a thread for `{path}`")]
struct ThreadError {
    path: Path,
    source: io::Error,
}

/// What the code of a child gets on its thread.
struct Inside {
    ctx: Context,
    hold: Option<ClockHold>,
    /// Resolves when the child's task has ended, and nothing waits for the result any more.
    abandoned: oneshot::Receiver<()>,
}

#[track_caller]
fn on_thread<W>(name: String, meta: TypeMeta, polls: bool, work: W) -> ChildSpec
where
    W: Fn(Inside) -> Exit + Send + Sync + 'static,
{
    let factory = ThreadFactory { meta, polls, work };
    // As for a value: ready is what the child says, and not the spawn of its task.
    ChildSpec::new(name, FactoryKind::Value(Foreign::new(Arc::new(factory))))
}

/// Each incarnation runs `work` on a new thread.
struct ThreadFactory<W> {
    meta: TypeMeta,
    /// Whether the work consists of polls.
    polls: bool,
    work: W,
}

impl<W: Fn(Inside) -> Exit + Send + Sync + 'static> IncarnationFactory for ThreadFactory<W> {
    fn life(self: Arc<Self>, ctx: Context, phases: Phases) -> ExitFuture {
        let (polls, factory) = (self.polls, Foreign::new(self));
        Box::pin(live(ctx, phases, polls, move |inside| (factory.work)(inside)))
    }

    fn meta(&self) -> &dyn ChildMeta {
        &self.meta
    }
}

/// Runs `work` on a new thread, and waits until it has ended. This is the life of one incarnation.
async fn live<W>(ctx: Context, phases: Phases, polls: bool, work: W) -> Exit
where
    W: FnOnce(Inside) -> Exit + Send + 'static,
{
    let hold = ClockHold::new();
    let _abort = HoldOnDrop(hold.clone(), ClockHold::abort);
    let close = HoldOnDrop(hold.clone(), ClockHold::close);
    let (report, reported) = oneshot::channel();
    let (_abandon, abandoned) = oneshot::channel();
    let (path, incarnation) = (ctx.path(), Arc::clone(&ctx.incarnation));
    let inside = Inside { ctx, hold, abandoned };
    let begin = move || {
        if inside.ctx.incarnation.has_ended() {
            // Dropped here, where a panic is caught.
            drop((work, inside));
            return Ok(());
        }
        work(inside)
    };
    let Some(code) = ThreadCode::new(&incarnation, polls, begin) else { return Ok(()) };
    let runtime = Handle::current();
    let run = move || {
        let _entered = runtime.enter();
        let ended = code.call(close.0.as_ref());
        let _ = report.send(ended.unwrap_or_else(|panic| Err(panicked(panic))));
        drop(close);
    };
    let builder = std::thread::Builder::new().name(end_of(path.as_str(), MAX_NAME).to_owned());
    // Dropping the handle detaches the thread: what waits for it is the guard.
    builder.spawn(run).map_err(|source| ThreadError { path, source })?;
    if phases.signals_ready {
        incarnation.notify(Signal::Ready);
    }
    let aborted = |_| Err(ExitError::from_reason(ExitReason::Aborted));
    reported.await.unwrap_or_else(aborted)
}

/// The most bytes of a thread's name that the system keeps.
const MAX_NAME: usize =
    if cfg!(any(target_os = "linux", target_os = "android")) { 15 } else { usize::MAX };

/// Returns the end of a path that a thread can be named after: whole names if the last one fits.
fn end_of(path: &str, max: usize) -> &str {
    let Some(mut from) = path.len().checked_sub(max) else { return path };
    while !path.is_char_boundary(from) {
        from += 1;
    }
    let end = &path[from..];
    if from == 0 || path[..from].ends_with('/') {
        return end;
    }
    match end.split_once('/') {
        Some((_, names)) => names,
        None => end,
    }
}

#[cfg(test)]
mod tests {
    use super::end_of;

    #[test]
    fn a_thread_is_named_after_the_end_of_its_path() {
        let name = |path| end_of(path, 15);
        assert_eq!(name("app/hash"), "app/hash");
        assert_eq!(name("app/ingest/hash"), "app/ingest/hash");
        assert_eq!(name("app/ingest/parse"), "ingest/parse");
        assert_eq!(name("application/hash"), "hash");
        assert_eq!(name("a/fifteen/letters"), "fifteen/letters");
        assert_eq!(name("app/thumbnail-resizer#12"), "nail-resizer#12");
        assert_eq!(name("app/größenänderung"), "ößenänderung");
    }
}
