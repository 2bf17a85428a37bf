//! What a snapshot shows of the whole tree.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use crate::lifecycle::Lifecycle;

/// The program that a tree runs in.
///
/// ```
/// use verger::{Context, Supervisor, worker};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
/// let app = Supervisor::builder("app").child(db).build()?.start().await?;
///
/// let program = app.status().await?.program;
/// assert_eq!(program.pid, std::process::id());
/// println!("up for {:?}", program.uptime);
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProgramInfo {
    /// The version of this crate.
    pub verger: &'static str,
    /// The number of the process.
    pub pid: u32,
    /// When the tree was started.
    pub started_at: SystemTime,
    /// How long ago the tree was started.
    pub uptime: Duration,
}

/// Numbers about a tree.
///
/// The counters never decrease while the tree runs, and count the whole tree, whatever part of it the
/// snapshot is of. A rate, such as restarts a minute, is the difference of two snapshots.
///
/// ```
/// use verger::{Context, Supervisor, worker};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
/// let app = Supervisor::builder("app").child(db).build()?.start().await?;
///
/// let totals = app.status().await?.totals;
/// assert_eq!((totals.children, totals.failures), (1, 0));
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Totals {
    /// How many children are in the snapshot, at all levels, without its root.
    pub children: u32,
    /// How many of those are in each state. States without children are left out.
    pub lifecycle: BTreeMap<Lifecycle, u32>,
    /// How many incarnations were started.
    pub starts: u64,
    /// How many of those were not the first of their child.
    pub restarts: u64,
    /// How many incarnations failed.
    pub failures: u64,
    /// How many [dead letters](crate::dead_letter) there were, suppressed ones included.
    pub dead_letters: u64,
}
