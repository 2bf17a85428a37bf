//! Tasks that return a value, and supervisors in partitions.
//!
//! A [`TaskSupervisor`] runs futures and closures as its children, and each call returns a [`Task`], which is
//! awaited for the value. [`TaskSupervisor::map`] runs one task for each item of an iterator, a few at a time.
//! A [`PartitionedSupervisor`] divides children among several supervisors by a key. The module is modelled on
//! Elixir's `Task.Supervisor` and `PartitionSupervisor`.
//!
//! ```
//! use verger::Supervisor;
//! use verger::task::{TaskError, TaskSupervisor};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let tasks = TaskSupervisor::new("tasks");
//! let app = Supervisor::builder("app").child(tasks.spec()).build()?.start().await?;
//!
//! assert_eq!(tasks.spawn("sum", async { 1 + 2 }).await?, 3);
//!
//! let parsed = tasks.spawn("parse", async { "x".parse::<u32>().unwrap() });
//! let error = parsed.await.unwrap_err();
//! assert!(matches!(error, TaskError::Failed { .. }));
//! assert!(error.to_string().starts_with("`app/tasks/parse#2` panicked: "));
//! # app.stop("the example is over").await?;
//! # Ok(())
//! # }
//! ```

mod blocking;
mod body;
mod error;
mod find;
mod join;
mod map;
mod partition_key;
mod partitions;
mod pending_start;
mod place;
mod ready;
mod report;
mod stream;
mod supervisor;

pub use self::error::TaskError;
pub use self::join::Task;
pub use self::map::TaskMap;
pub use self::partition_key::{ByHash, PartitionKey};
pub use self::partitions::PartitionedSupervisor;
pub use self::stream::TaskStream;
pub use self::supervisor::TaskSupervisor;
