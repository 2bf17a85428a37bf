//! Periodic children: a function that is called again and again.
//!
//! [`every`] calls it at a fixed rate, or a fixed delay after the end of the run before. `cron` (feature `cron`) calls
//! it at the times of a cron expression. Each call is a *run*, and gets a [`RunContext`]. The chapter *Periodic jobs*
//! of the book has the rules.
//!
//! ```
//! use std::time::Duration;
//!
//! use verger::periodic::RunContext;
//! use verger::{Exit, Supervisor, every};
//!
//! async fn remove_old_files(_run: RunContext) -> Exit {
//!     // Remove them.
//!     Ok(())
//! }
//!
//! let cleanup = every("cleanup", Duration::from_secs(60), remove_old_files);
//! let cleanup = cleanup.limit_run(Duration::from_secs(30)).unhealthy_after(5);
//! let app = Supervisor::builder("app").child(cleanup).build()?;
//! # drop(app);
//! # Ok::<_, verger::BuildError>(())
//! ```
//!
//! # With macros
//!
//! A function under `#[worker]` with the key `every` or `cron` is called periodically.
//!
//! ```
//! use std::path::PathBuf;
//! use std::time::Duration;
//!
//! use verger::periodic::RunContext;
//! use verger::{Exit, Supervisor, worker};
//!
//! #[worker(every = "1h", schedule = |it| it.jitter(Duration::from_secs(60)).unhealthy_after(1))]
//! async fn cleanup(run: RunContext, folder: PathBuf) -> Exit {
//!     println!("run {} in {}", run.number(), folder.display());
//!     Ok(())
//! }
//!
//! let app = Supervisor::builder("app").child(cleanup("/tmp/app".into())).build()?;
//! # drop(app);
//! # Ok::<_, verger::BuildError>(())
//! ```
//!
//! # Status
//!
//! The [`schedule`](crate::status::ChildInfo::schedule) of a child shows its plan and its runs.
//!
//! ```
//! use std::time::Duration;
//!
//! use verger::status::RunOutcome;
//! use verger::{Exit, Supervisor, every};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let sync = every("sync", Duration::from_secs(10), async |_run| -> Exit { Ok(()) });
//! let app = Supervisor::builder("app").child(sync).build()?.start().await?;
//! tokio::time::sleep(Duration::from_secs(15)).await;
//!
//! let schedule = app.which_child("sync").await?.schedule.unwrap();
//! assert_eq!(schedule.failed, 0);
//! assert_eq!(schedule.last.unwrap().outcome, RunOutcome::Done);
//! # app.stop("the example is over").await?;
//! # Ok(())
//! # }
//! ```

// | file | what it is |
// | --- | --- |
// | `every`, `cron` | the builders of specs |
// | `options` | what they have in common, and why a schedule is refused |
// | `calendar` | when the next run is due at points of the wall clock, without effects |
// | `plan` | the same by a rate; one of both, with its state |
// | `hand_over` | a calendar whose child has a lease: the last planned time is kept with it |
// | `record` | what is kept of a child over its incarnations, and shown in the status |
// | `life` | the future of one incarnation |
// | `run` | one run: its context, its limit, its outcome, its log lines, health and metrics |

mod calendar;
#[cfg(feature = "cron")]
mod cron;
mod every;
#[cfg(all(feature = "cron", feature = "lease"))]
mod hand_over;
mod life;
mod options;
mod plan;
mod record;
mod run;

#[cfg(feature = "cron")]
pub use self::cron::{Cron, cron};
pub use self::every::{Every, every};
pub use self::options::{Missed, Overrun, ScheduleProblem};
pub use self::run::RunContext;
