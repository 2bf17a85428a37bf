//! Children that block a thread of their own.

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use super::clock_hold::{ClockHold, Waits};
use super::context::Context;
use super::own_thread::{self, Inside};
use super::spec::{ChildMeta, ChildSpec, FactoryKind, IncarnationFactory, Phases};
use super::task::ExitFuture;
use super::workers::TypeMeta;
use crate::exit::{Exit, ExitError, ExitReason, Outcome};
use crate::panic::Foreign;

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
    let factory = BlockingFactory { meta: TypeMeta::of::<F>(), run };
    // As for a value: ready is what the child says, and not the spawn of its task.
    ChildSpec::new(name.into(), FactoryKind::Value(Foreign::new(Arc::new(factory))))
}

struct BlockingFactory<F> {
    meta: TypeMeta,
    run: F,
}

impl<F, O> IncarnationFactory for BlockingFactory<F>
where
    F: Fn(BlockingContext) -> O + Send + Sync + 'static,
    O: Outcome + 'static,
{
    fn life(self: Arc<Self>, ctx: Context, phases: Phases) -> ExitFuture {
        let factory = Foreign::new(self);
        Box::pin(own_thread::live(ctx, phases, move |Inside { ctx, hold, .. }| {
            (factory.run)(BlockingContext { ctx, hold }).into_exit()
        }))
    }

    fn meta(&self) -> &dyn ChildMeta {
        &self.meta
    }
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
        Handle::current().block_on(Waits::new(future, self.hold.clone()))
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
