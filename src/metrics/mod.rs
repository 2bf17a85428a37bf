//! Counters, gauges and histograms through the facade [`metrics`](https://docs.rs/metrics) (feature `metrics`).
//!
//! A tree records what its supervisors do with the recorder that the program has installed, for example that of
//! `metrics-exporter-prometheus`. The tree needs no option. Without a recorder,
//! nothing is recorded and an event costs a few loads.
//!
//! | metric | type | unit | labels | when |
//! | --- | --- | --- | --- | --- |
//! | `verger_starts_total` | counter | count | `path` | an incarnation is started |
//! | `verger_restarts_total` | counter | count | `path` | an incarnation is started after an exit: its own, or that of a sibling which restarts it too |
//! | `verger_exits_total` | counter | count | `path`, `reason` | an incarnation has ended or leaked, or has failed while its task still runs |
//! | `verger_restart_delay_seconds` | histogram | seconds | `path` | a restart is decided: the delay of the backoff |
//! | `verger_stop_seconds` | histogram | seconds | `path` | a child that was cancelled has ended or leaked, or a root has stopped: the time since the cancellation |
//! | `verger_info` | gauge | count | `version` | [`Gauges`] records: always 1 |
//! | `verger_child_state` | gauge | count | `path`, `state` | [`Gauges`] records: 1 for the state of a declared child, 0 for the other seven |
//! | `verger_children` | gauge | count | `supervisor`, `state` | [`Gauges`] records: the children in this state that were added while the tree runs |
//! | `verger_problems` | gauge | count | `kind` | [`Gauges`] records: the [problems](crate::status::Status::problems) of this kind in the tree |
//! | `verger_limit_used_ratio` | gauge | ratio | `path` | [`Gauges`] records: the used share of a restart limit: the child's own, or the one that all its children share |
//! | `verger_mailbox_depth` | gauge | count | `path` | [`Gauges`] records: the messages in the mailboxes |
//! | `verger_mailbox_capacity` | gauge | count | `path` | [`Gauges`] records: the messages that the mailboxes can hold |
//! | `verger_dead_letters_total` | counter | count | `path`, `reason` | a message wasn't delivered, or a child was given up; without suppressed letters |
//! | `verger_failed_runs_total` | counter | count | `path` | a run of a periodic child (feature `periodic`) has failed |
//! | `verger_long_polls_total` | counter | count | `path` | a poll of a child has lasted 5 s |
//! | `verger_busy_seconds_total` | counter | seconds | `path` | polls of a child have kept threads busy for another whole second, or the child exits |
//! | `verger_reloads_total` | counter | count | `path`, `result` | a configuration was applied, or wasn't |
//!
//! # Labels
//!
//! * `path`: the path of a child that the code declares, such as `app/ingest/mqtt`. A child that is added while the
//!   tree runs is counted under the path of its supervisor, and so is everything below it. The number of paths
//!   is therefore that of the declared children, however many connections a dynamic supervisor has. For
//!   `verger_reloads_total`, it is the path of the root.
//! * `kind`: the name of a [`ProblemKind`](crate::status::ProblemKind), such as `down` or `failed`.
//! * `state`: a [`Lifecycle`](crate::Lifecycle) in lower case, such as `active`. `supervisor`: a path as above.
//! * `reason` of an exit: the name of an [`ExitKind`](crate::ExitKind), such as `panicked`, or `ignored` for a child
//!   that declined to start.
//! * `reason` of a dead letter: the name of a [`DeadLetterReason`](crate::dead_letter::DeadLetterReason).
//! * `result` of a reload: `applied`, `invalid`, `refused`, `rolled_back`, or `failed` if the file can't be read or
//!   the tree can't be changed.
//!
//! # Recorders
//!
//! Install the recorder before the tree starts: what happens before isn't counted. Each handle is requested once
//! for its label and kept, so a tree keeps the recorder that it has started with. A recorder that panics is
//! not called again. A recorder whose type has no size is taken for the facade's no-op recorder; put it into a
//! `Box`.
//!
//! # Example
//!
//! A child that sets the gauges every 15 s, as part of the tree itself:
//!
//! ```
//! use std::time::Duration;
//!
//! use verger::metrics::Gauges;
//! use verger::{Context, Exit, Supervisor, worker};
//!
//! async fn gauges(ctx: Context) -> Exit {
//!     let mut gauges = Gauges::new();
//!     let mut interval = tokio::time::interval(Duration::from_secs(15));
//!     loop {
//!         tokio::select! {
//!             () = ctx.cancelled() => return Ok(()),
//!             _ = interval.tick() => gauges.record(&ctx.parent().status().await?),
//!         }
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Install a recorder here.
//! verger::metrics::describe();
//! let app = Supervisor::builder("app").child(worker("gauges", gauges)).build()?;
//! let tree = app.start().await?;
//! # tokio::time::sleep(Duration::from_secs(60)).await;
//! # assert_eq!(tree.which_child("gauges").await?.incarnation, 1);
//! tree.stop("the example is over").await?;
//! # Ok(())
//! # }
//! ```

// Knows names and labels, and calls the recorder. It doesn't know why something happens: the runtime decides what
// to record.
//
// | file | what it is |
// | --- | --- |
// | `list` | which metrics exist |
// | `recorder` | calls of the recorder, which may panic; configurations that were applied or not |
// | `children` | the metrics of one supervisor's children, and under which path a child is counted |
// | `sample` | gauges, from a snapshot |

mod children;
mod list;
mod recorder;
mod sample;

pub(crate) use self::children::{ChildMetrics, Scope};
pub use self::list::{ALL, Metric, MetricKind};
pub(crate) use self::recorder::{is_installed, reloaded};
pub use self::sample::Gauges;

/// Describes all metrics to the recorder: kinds, units and help texts.
///
/// Call it once, after the recorder is installed. Metrics are recorded without it as well, and recorders then have
/// no help texts for them.
///
/// The example of the [module](self) calls it.
pub fn describe() {
    recorder::with(|recorder| ALL.iter().for_each(|metric| recorder::describe(recorder, *metric)));
}
