//! Children that are tasks which were spawned elsewhere.

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinHandle};

use super::context::Context;
use super::spec::{ChildMeta, ChildSpec, FactoryKind, IncarnationFactory, Phases};
use super::task::{ExitFuture, panicked};
use super::workers::TypeMeta;
use crate::exit::{Exit, ExitError, ExitReason, Outcome};
use crate::panic::{Foreign, panic_message};
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
    let meta = TypeMeta::of::<JoinHandle<O>>();
    let factory = AdoptFactory { meta, task: Mutex::new(Some(Adopted(task))) };
    let kind = FactoryKind::Function(Foreign::new(Arc::new(factory)));
    let mut spec = ChildSpec::new(name.into(), kind);
    let options = spec.edit();
    (options.facts.once, options.values.policy.restart) =
        (true, Some(RestartType::Temporary.into()));
    options.values.shutdown = Some(Shutdown::BrutalKill);
    spec
}

struct AdoptFactory<O> {
    meta: TypeMeta,
    task: Mutex<Option<Adopted<O>>>,
}

impl<O: Outcome + Send + 'static> IncarnationFactory for AdoptFactory<O> {
    fn life(self: Arc<Self>, ctx: Context, _phases: Phases) -> ExitFuture {
        // Not in the first poll: a child that is aborted before still has to end after its task.
        let task = self.task.lock().take();
        let reported = task.map(|task| watch(&ctx, task));
        Box::pin(async move {
            let Some(reported) = reported else {
                let path = ctx.path();
                let text = format!("`{path}` is made by `adopt`, and its task was watched before");
                return Err(text.into());
            };
            let aborted = |_| Err(ExitError::from_reason(ExitReason::Aborted));
            reported.await.unwrap_or_else(aborted)
        })
    }

    fn meta(&self) -> &dyn ChildMeta {
        &self.meta
    }
}

/// A task that is aborted when this is dropped.
struct Adopted<O>(JoinHandle<O>);

impl<O> Drop for Adopted<O> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Reports the end of the task, for which the child waits. The task is aborted when the child's own task ends.
fn watch<O: Outcome + Send + 'static>(
    ctx: &Context,
    mut task: Adopted<O>,
) -> oneshot::Receiver<Exit> {
    let (report, reported) = oneshot::channel();
    if let Some(guard) = ctx.incarnation.admit_helper() {
        let handle = task.0.abort_handle();
        guard.aborted_by(move || handle.abort());
        let reporting = async move {
            let ended = (&mut task.0).await;
            let _ = report.send(ended.map_or_else(|error| Err(exit_of(error)), Outcome::into_exit));
        };
        ctx.spawn_guarded(guard, reporting, false, "adopted");
    }
    reported
}

fn exit_of(error: JoinError) -> ExitError {
    match error.try_into_panic() {
        Ok(payload) => panicked(panic_message(payload)),
        Err(_) => ExitError::from_reason(ExitReason::Aborted),
    }
}
