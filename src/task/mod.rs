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

mod body;
mod join;
mod partitions;
mod place;
mod report;
mod stream;
mod supervisor;

pub use self::join::Task;
pub use self::partitions::{ByHash, PartitionKey, PartitionedSupervisor};
pub use self::report::TaskError;
pub use self::stream::{TaskMap, TaskStream};
pub use self::supervisor::TaskSupervisor;
