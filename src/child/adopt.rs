//! Children that are tasks which were spawned elsewhere.

use std::marker::PhantomData;

use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinHandle};

use super::context::Context;
use super::helpers::HelperAbort;
use super::spec::ChildSpec;
use super::task::panicked;
use super::workers::{TypeMeta, function_kind};
use crate::exit::{Exit, ExitError, ExitReason, Outcome};
use crate::panic::panic_message;
use crate::policy::{RestartType, Shutdown};
use crate::sync::Mutex;

/// Describes a child that is a task which was spawned already.
///
/// The child watches the task: its return value, its error, its panic or its cancellation is the exit of the child.
/// When the child is stopped, the task is aborted, and the child ends once the task has. A task that blocks is
/// reported as leaked, as any child is.
///
/// ```
/// use verger::{Supervisor, adopt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // A library that spawns its own task.
/// let connection = tokio::spawn(async { std::future::pending::<()>().await });
///
/// let app = Supervisor::builder("app").child(adopt("connection", connection)).build()?;
/// let app = app.start().await?;
/// app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
///
/// The task knows nothing of its child, so a stop aborts it at once: its [`shutdown`](ChildSpec::shutdown) is
/// [`BrutalKill`](Shutdown::BrutalKill) by default. Set a grace for a task that learns of the stop otherwise, for
/// example from a [`CancellationToken`](crate::CancellationToken).
///
/// A task can't be spawned again, so the child is [temporary](RestartType::Temporary) and can't be anything
/// else, as for [`once`](crate::once). A second start, by a clone or after a restart of the supervisor, fails with
/// an error that says so. Prefer [`worker`](fn@crate::worker) wherever you can spawn the task yourself.
///
/// The task belongs to the spec: it is aborted if the last clone of the spec is dropped before the child was started.
/// A panic of the task is printed by the panic hook, and not logged with the child's path, because the task isn't
/// polled by its child.
#[track_caller]
pub fn adopt<O: Outcome + Send + 'static>(
    name: impl Into<String>,
    task: JoinHandle<O>,
) -> ChildSpec {
    let task = Mutex::new(Some(Adopted(task)));
    let begin = move |_: &_, ctx: Context| {
        let task = task.lock().take();
        task.map(|task| watch(ctx.clone(), task)).ok_or_else(|| {
            let path = ctx.path();
            format!("`{path}` is made by `adopt`, and its task was watched before").into()
        })
    };
    let kind = function_kind(TypeMeta::<JoinHandle<O>>(PhantomData), begin);
    let mut spec = ChildSpec::new(name.into(), kind);
    let options = spec.edit();
    (options.once, options.restart) = (true, Some(RestartType::Temporary.into()));
    options.shutdown = Some(Shutdown::BrutalKill);
    spec
}

/// A task that is aborted when this is dropped.
struct Adopted<O>(JoinHandle<O>);

impl<O> Drop for Adopted<O> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Waits until the task has ended. If that is given up, the task is aborted, and the child waits for its end.
async fn watch<O: Outcome + Send + 'static>(ctx: Context, mut task: Adopted<O>) -> Exit {
    let Some(guard) = ctx.incarnation.admit_helper() else { return Ok(()) };
    guard.aborted_by(HelperAbort::Task(task.0.abort_handle()));
    let (report, reported) = oneshot::channel();
    // Beside the child's own task, which is dropped when it is aborted.
    ctx.spawn_beside(guard, "adopted", async move {
        let ended = (&mut task.0).await;
        let _ = report.send(ended.map_or_else(|error| Err(exit_of(error)), Outcome::into_exit));
    });
    let aborted = |_| Err(ExitError::from_reason(ExitReason::Aborted));
    reported.await.unwrap_or_else(aborted)
}

fn exit_of(error: JoinError) -> ExitError {
    match error.try_into_panic() {
        Ok(payload) => panicked(panic_message(payload)),
        Err(_) => ExitError::from_reason(ExitReason::Aborted),
    }
}
