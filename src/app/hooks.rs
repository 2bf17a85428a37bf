//! Hooks of a termination: what an application does before its tree stops, and after.
//!
//! Hooks run in steps: those of one step at once, the steps in order. A hook that fails, panics or takes
//! too long is logged by its name, and the next step goes on. Each hook has a task of its own, so that one
//! that blocks its thread doesn't block the termination, if the runtime has another thread.
//!
//! # Invariants
//!
//! 1. A hook runs at most once.
//! 2. A step takes at most as long as the longest bound of its hooks.

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use crate::exit::{Exit, Outcome};
use crate::owned_task::OwnedTask;
use crate::panic::CatchPanic;
use crate::subscriber;

/// How long a hook may take, unless it sets a bound of its own.
const WITHIN: Duration = Duration::from_secs(5);

type Call = Box<dyn FnOnce(Arc<str>) -> Pin<Box<dyn Future<Output = Exit> + Send>> + Send>;

/// Something that an [`Application`](crate::Application) does before its tree stops, or after.
///
/// Made by [`hook`].
///
/// The example of [`hook`] makes one.
#[must_use = "a hook does nothing until it is passed to an application"]
pub struct Hook {
    name: String,
    within: Duration,
    call: Call,
}

/// Creates a hook. Its name is logged if it fails or takes too long.
///
/// The function gets the cause of the termination, such as `SIGTERM`. It returns `()`, or a `Result` whose
/// error is logged.
///
/// ```
/// use std::time::Duration;
///
/// use verger::app::hook;
/// use verger::{Application, Supervisor};
///
/// # async fn deregister() -> Result<(), std::io::Error> { Ok(()) }
/// # fn f(tree: Supervisor) -> Application {
/// Application::new(tree)
///     .before_stop(hook("deregister", async |_cause| deregister().await).within(Duration::from_secs(2)))
/// # }
/// ```
pub fn hook<F, Fut, O>(name: impl Into<String>, call: F) -> Hook
where
    F: FnOnce(Arc<str>) -> Fut + Send + 'static,
    Fut: Future<Output = O> + Send + 'static,
    O: Outcome,
{
    let call = |cause| {
        let future = call(cause);
        Box::pin(async { future.await.into_exit() }) as Pin<Box<dyn Future<Output = Exit> + Send>>
    };
    Hook { name: name.into(), within: WITHIN, call: Box::new(call) }
}

impl Hook {
    /// Sets how long the hook may take. Default: 5 s. After that its task is aborted, and the termination
    /// goes on.
    pub fn within(mut self, within: Duration) -> Self {
        self.within = within;
        self
    }

    async fn run(self, cause: Arc<str>) {
        let Self { name, within, call } = self;
        let future = CatchPanic(Box::pin(async move { call(cause).await }));
        let mut task = OwnedTask::spawn("verger hook", future);
        let result = tokio::time::timeout(within, task.join()).await;
        let hook = name.as_str();
        let cause = match result {
            Ok(Ok(Ok(Ok(())))) => return,
            Ok(Ok(Ok(Err(error)))) => error.to_string(),
            Ok(Ok(Err(panic))) => format!("panicked: {panic}"),
            Ok(Err(ended)) => ended.to_string(),
            Err(_) => format!("took longer than {within:?}"),
        };
        subscriber::error!(target: "verger::shutdown", hook, cause, "hook failed");
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook")
            .field("name", &self.name)
            .field("within", &self.within)
            .finish_non_exhaustive()
    }
}

/// Hooks that run at once.
///
/// ```
/// use verger::app::hook;
/// use verger::{Application, Supervisor};
///
/// # async fn close_spool() {}
/// # async fn deregister() {}
/// # fn f(tree: Supervisor) -> Application {
/// // The two run at once, and `flush` after both.
/// Application::new(tree)
///     .before_stop([
///         hook("close spool", async |_cause| close_spool().await),
///         hook("deregister", async |_cause| deregister().await),
///     ])
///     .before_stop(hook("flush", async |_cause| println!("flushed")))
/// # }
/// # drop(f);
/// ```
#[derive(Debug)]
pub struct HookStep(Vec<Hook>);

impl From<Hook> for HookStep {
    fn from(hook: Hook) -> Self {
        Self(vec![hook])
    }
}

impl<const N: usize> From<[Hook; N]> for HookStep {
    fn from(hooks: [Hook; N]) -> Self {
        Self(hooks.into())
    }
}

impl From<Vec<Hook>> for HookStep {
    fn from(hooks: Vec<Hook>) -> Self {
        Self(hooks)
    }
}

/// Returns how long all steps take at most.
pub(super) fn bound(steps: &[HookStep]) -> Duration {
    let longest = |step: &HookStep| step.0.iter().map(|hook| hook.within).max();
    steps.iter().filter_map(longest).fold(Duration::ZERO, Duration::saturating_add)
}

/// Runs all steps.
pub(super) async fn run(steps: Vec<HookStep>, cause: &Arc<str>) {
    for step in steps {
        let hooks = step.0.into_iter().map(|hook| Box::pin(hook.run(Arc::clone(cause))));
        all(hooks.collect()).await;
    }
}

/// Polls futures, all in one task, until each is ready.
async fn all<F: Future<Output = ()> + Unpin>(mut futures: Vec<F>) {
    std::future::poll_fn(|cx| {
        futures.retain_mut(|future| pin!(future).poll(cx).is_pending());
        if futures.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
