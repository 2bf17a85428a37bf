//! Supervision trees for tokio.
//!
//! A *supervisor* starts children, watches them, and starts them again when they fail. Supervisors
//! supervise other supervisors, so that a failure is handled by the smallest part of the program
//! that can handle it, and a program stops in the reverse of the order in which it started.
//!
//! # Example
//!
//! ```
//! use std::sync::atomic::{AtomicU32, Ordering};
//! use std::time::Duration;
//!
//! use verger::{Context, Exit, Supervisor, worker};
//!
//! static ATTEMPTS: AtomicU32 = AtomicU32::new(0);
//!
//! async fn flaky(ctx: Context) -> Exit {
//!     if ATTEMPTS.fetch_add(1, Ordering::Relaxed) < 2 {
//!         return Err("not yet".into());
//!     }
//!     ctx.cancelled().await;
//!     Ok(())
//! }
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let tree = Supervisor::builder("app").child(worker("flaky", flaky)).build()?.start().await?;
//!
//! tokio::time::sleep(Duration::from_secs(2)).await;
//! assert_eq!(ATTEMPTS.load(Ordering::Relaxed), 3, "two failures, then it works");
//!
//! tree.stop("the example is over").await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Overview
//!
//! * Describe: [`Supervisor::builder`], [`DynamicSupervisor::builder`], [`worker`](fn@worker),
//!   [`worker_with`], [`child`], [`component`]; what is legal is checked once, by
//!   [`build`](SupervisorBuilder::build).
//! * Run: [`Supervisor::run`], [`Supervisor::with_graceful_shutdown`], [`Supervisor::start`].
//! * In a child: [`Context`] says when to stop, and tells the supervisor what it should know.
//! * Messages: [`mailbox`](fn@mailbox) makes a queue that outlives each incarnation of a child
//!   ([`worker_with_mailbox`]), and the [`Address`] that sends to it.
//! * From outside: [`SupervisorHandle`] starts and stops children, shows the tree
//!   ([`status`](SupervisorHandle::status)), and tells what happens
//!   ([`events`](SupervisorHandle::events), [`dead_letters`](SupervisorHandle::dead_letters)).
//! * What can't be delivered is a [`DeadLetter`], and a [`DeadLetterStore`] keeps and replays it.
//!
//! # What it promises
//!
//! The rules are Erlang/OTP's unless the book says otherwise, each deviation with its reason. Code
//! that blocks its thread cannot be killed by anybody in a tokio program; it is reported as *leaked*
//! instead, by name and within a bound.
//!
//! # The log
//!
//! It is written with `tracing`, so a program that sets up no subscriber doesn't see it.
//!
//! | target | what |
//! | --- | --- |
//! | `verger::lifecycle` | a child or a supervisor is up, a child ends its supervisor or is healthy again (`INFO`), is [unhealthy](HealthCheck) (`WARN`); every step of a [`Lifecycle`] (`DEBUG`) |
//! | `verger::restart` | a child will be started again, or won't (`WARN`); its supervisor gave up, or fails with it (`ERROR`) |
//! | `verger::dead_letter` | a message was not delivered (`WARN`, [some of them](DeadLetterLog)), or was not to be (`DEBUG`) |
//! | `verger::circuit` | a [`CircuitBreaker`] opens, lets a probe through, or closes (`INFO`) |
//! | `verger::shutdown` | a supervisor stops (`INFO`), a child was killed (`WARN`) or leaked (`ERROR`) |
//!
//! What is started or stopped by hand, through a handle, is at `DEBUG`. What a child logs itself
//! comes in a span `child`, target `verger::child`, with its path and incarnation. A supervisor has
//! no span.
//!
//! # Crate features
//!
//! * `macros` (default): [`#[supervisor]`](macro@supervisor), [`#[worker]`](macro@worker) and
//!   [`#[derive(Supervisor)]`](derive@Supervisor).
//! * `signal` (default): [`signals`], which resolves at SIGINT and SIGTERM.
//! * `json`: [`Status::json`].
//! * `testing`: [`testing`], a kit for testing trees.

mod app;
mod child;
mod clock;
mod core;
pub mod dead_letter;
mod error;
mod exit;
mod handle;
mod lifecycle;
#[cfg(feature = "macros")]
mod macros;
pub mod mailbox;
mod millis;
mod panic;
mod path;
pub mod policy;
mod properties;
pub mod resilience;
mod runtime;
mod spec;
pub mod status;
mod sync;
#[cfg(feature = "testing")]
pub mod testing;

pub use async_trait::async_trait;
pub use tokio_util::sync::CancellationToken;

pub use crate::app::{GracefulShutdown, StopCause};
#[cfg(feature = "signal")]
pub use crate::app::{OsSignal, Signals, signals};
pub use crate::child::{
    Cancelled, Child, ChildDefaults, ChildSpec, Component, Context, HealthCheck, child,
    child_with_mailbox, component, worker, worker_with, worker_with_mailbox,
};
pub use crate::error::{BuildError, BuildWarning, ControlError, RunError, StartError};
pub use crate::exit::{Exit, ExitError, ExitKind, ExitReason, Outcome};
pub use crate::handle::{ChildRef, SupervisorHandle};
pub use crate::lifecycle::Lifecycle;
#[cfg(feature = "macros")]
pub use crate::macros::{Supervisor, supervisor, worker};
pub use crate::mailbox::constructor::mailbox;
pub use crate::path::{NameProblem, Path};
pub use crate::policy::backoff::Backoff;
pub use crate::policy::restart::RestartType;
pub use crate::policy::shutdown::Shutdown;
pub use crate::policy::start::Readiness;
pub use crate::policy::strategy::Strategy;
pub use crate::spec::{DynamicSupervisor, DynamicSupervisorBuilder, Supervisor, SupervisorBuilder};

/// Compiles and runs the listings of the book and the README.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../README.md")]
    mod readme {}
    #[doc = include_str!("../book/src/introduction.md")]
    mod introduction {}
    #[doc = include_str!("../book/src/first-tree.md")]
    mod first_tree {}
    #[doc = include_str!("../book/src/components.md")]
    mod components {}
    #[doc = include_str!("../book/src/limits.md")]
    mod limits {}
    #[doc = include_str!("../book/src/waits.md")]
    mod waits {}
    #[doc = include_str!("../book/src/triggers.md")]
    mod triggers {}
    #[doc = include_str!("../book/src/when-not.md")]
    mod when_not {}
    #[doc = include_str!("../book/src/messages.md")]
    mod messages {}
    #[doc = include_str!("../book/src/delivery.md")]
    mod delivery {}
    #[doc = include_str!("../book/src/dead-letters.md")]
    mod dead_letters {}
    #[doc = include_str!("../book/src/costs.md")]
    mod costs {}
}
