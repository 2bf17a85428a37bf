//! Children whose future isn't `Send`, each on a thread of its own.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use tokio::runtime::Handle;
use tokio::task::LocalSet;

use super::clock_hold::Waits;
use super::context::Context;
use super::own_thread::{self, Inside};
use super::polls::watched;
use super::spec::{ChildMeta, ChildSpec, FactoryKind, IncarnationFactory, Phases};
use super::task::{ExitFuture, catch, drop_after};
use super::workers::TypeMeta;
use crate::exit::{Exit, ExitError, ExitReason, Outcome};
use crate::panic::Foreign;

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
    let factory = LocalFactory { meta: TypeMeta::of::<F>(), run };
    // As for a value: ready is what the child says, and not the spawn of its task.
    ChildSpec::new(name.into(), FactoryKind::Value(Foreign::new(Arc::new(factory))))
}

struct LocalFactory<F> {
    meta: TypeMeta,
    run: F,
}

impl<F, Fut, O> IncarnationFactory for LocalFactory<F>
where
    F: Fn(Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = O> + 'static,
    O: Outcome + 'static,
{
    fn life(self: Arc<Self>, ctx: Context, phases: Phases) -> ExitFuture {
        let factory = Foreign::new(self);
        Box::pin(own_thread::live(ctx, phases, move |inside| {
            run_local(inside, |ctx| (factory.run)(ctx))
        }))
    }

    fn meta(&self) -> &dyn ChildMeta {
        &self.meta
    }
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
    let exit = Handle::current().block_on(Waits::new(tasks.run_until(ended), hold));
    // The tasks that the child has spawned are dropped last.
    drop_after(exit, || drop((future, tasks)))
}
