//! Defaults for the children of a supervisor.

use crate::policy::{ChildOptions, child_setters, policy_setters};

/// Defaults for the children of a supervisor.
///
/// Set with [`SupervisorBuilder::defaults`](crate::SupervisorBuilder::defaults). The options of a
/// spec take precedence over the defaults, and the defaults over a
/// [preset](crate::SupervisorBuilder::preset). The limits on restarts count for each child
/// separately.
///
/// ```
/// use std::time::Duration;
///
/// use verger::{Context, RestartType, Supervisor, worker};
///
/// async fn idle(ctx: Context) {
///     ctx.cancelled().await;
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = Supervisor::builder("app")
///     .defaults(|child| child.restart(RestartType::Transient).shutdown(Duration::from_secs(20)))
///     .child(worker("db", idle))
///     .child(worker("cache", idle).restart(RestartType::Permanent))
///     .build()?
///     .start()
///     .await?;
///
/// assert_eq!(app.child_spec("db").await?.restart, RestartType::Transient);
/// assert_eq!(app.child_spec("cache").await?.restart, RestartType::Permanent);
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct ChildDefaults {
    pub(crate) options: ChildOptions,
}

impl ChildDefaults {
    policy_setters!(self => self.options.values.policy);

    child_setters!(self => self.options);
}
