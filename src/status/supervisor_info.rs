//! What a snapshot shows of one supervisor.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::exit::ExitReason;
use crate::path::Path;
use crate::policy::Intensity;

/// What a running supervisor has in addition to [`ChildInfo`](crate::status::ChildInfo).
///
/// ```
/// use verger::{Context, Supervisor, worker};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
/// let app = Supervisor::builder("app").child(db).build()?.start().await?;
///
/// let supervisor = app.status().await?.root.supervisor.unwrap();
/// assert_eq!(supervisor.strategy, "one_for_one");
/// assert_eq!((supervisor.restarts_in_period, supervisor.counts.active), (0, 1));
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SupervisorInfo {
    /// The strategy: `one_for_one`, `one_for_all`, `rest_for_one`, or `dynamic`.
    pub strategy: &'static str,
    /// How many restarts the limit of all children together has granted within its period.
    ///
    /// For a [decaying](crate::policy::Intensity::decaying) intensity: `max_restarts`, less the restarts
    /// that its score still allows at once.
    pub restarts_in_period: usize,
    /// How many restarts it grants within the period. `None`, the default: there is no limit of all together.
    pub max_restarts: Option<u32>,
    /// The period of the intensity; the half-life of a decaying one.
    pub period: Duration,
    /// Whether the next restart that counts would exceed the intensity.
    pub limit_reached: bool,
    /// The limit over time on the restarts of each worker for which none is written, if there is one.
    ///
    /// It is the built-in limit, or the one of the [defaults](crate::SupervisorBuilder::defaults) or of a preset.
    pub child_limit: Option<Intensity>,
    /// How many children have to be active so that the supervisor is ready; see
    /// [`min_ready`](crate::DynamicSupervisorBuilder::min_ready). The serialised form leaves out zero.
    pub min_ready: u32,
    /// How many active children it lacks for that. The serialised form leaves out zero.
    pub lacks_active: u32,
    /// Whether the supervisor has a callback of its own, rather than one that it inherits; see
    /// [`on_child_failure`](crate::SupervisorBuilder::on_child_failure).
    pub on_child_failure: bool,
    /// The values that a configuration file has set, by name, and where: `feed.toml:12`. The line is that of the
    /// file with which the section has changed last.
    pub configured: BTreeMap<&'static str, Arc<str>>,
    /// How many children the supervisor has.
    pub counts: Counts,
    /// The children that were removed within the last minute, at most 32, the latest last.
    pub gone: Vec<GoneChild>,
}

/// How many children a supervisor has, not counting children of its children.
///
/// The example of [`count_children`](crate::SupervisorHandle::count_children) reads them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// All children, running or not.
    pub specs: u32,
    /// Children that have a task, in any state of their lifecycle.
    pub active: u32,
    /// Children that wait for a restart.
    pub restarting: u32,
    /// Children that are supervisors, running or not.
    pub supervisors: u32,
    /// Children that are workers, running or not.
    pub workers: u32,
}

/// A child that its supervisor has removed.
///
/// ```
/// use verger::{Exit, Supervisor};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = Supervisor::builder("app").build()?.start().await?;
/// app.start_once("import", async |_| -> Exit { Err("no such file".into()) }).await?;
/// # tokio::time::sleep(std::time::Duration::from_secs(1)).await;
///
/// let gone = app.status().await?.root.supervisor.unwrap().gone;
/// assert_eq!(gone[0].path.as_str(), "app/import");
/// assert_eq!(gone[0].reason.as_ref().unwrap().to_string(), "failed: no such file");
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GoneChild {
    /// The path that the child had.
    pub path: Path,
    /// The number of its last incarnation; 0 if it was never started.
    pub incarnation: u32,
    /// When it was removed.
    pub at: SystemTime,
    /// How long its last incarnation had been active, if the child was removed as it ended.
    pub lived: Option<Duration>,
    /// How its last incarnation ended, if the child was removed as it ended.
    pub reason: Option<Arc<ExitReason>>,
}
