//! Supervision trees for tokio: supervisors start tasks in order, restart those that fail, and stop all in reverse order.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use verger::{Context, Exit, RunError, Supervisor, signals, worker};
//!
//! async fn ticker(ctx: Context) {
//!     while ctx.run_until_cancelled(tokio::time::sleep(Duration::from_secs(1))).await.is_some() {
//!         println!("tick");
//!     }
//! }
//!
//! async fn flaky(ctx: Context) -> Exit {
//!     ctx.run_until_cancelled(tokio::time::sleep(Duration::from_secs(3))).await;
//!     Err("connection refused".into())
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), RunError> {
//!     let tree = Supervisor::builder("app")
//!         .child(worker("ticker", ticker))
//!         .child(worker("flaky", flaky))
//!         .build()?;
//!     tree.with_graceful_shutdown(signals()).await
//! }
//! ```
//!
//! `app` restarts `flaky` after 200 ms, then after 400 ms and so on up to 30 s, at most 12 times in 5 minutes. `ticker` isn't
//! affected. Ctrl-C or SIGTERM stops `flaky` and then `ticker`, with up to 5 s for each. Set a subscriber of `tracing` to
//! see each decision as a [log line](#log).
//!
//! # Ten items to start with
//!
//! * [`worker`](fn@worker) describes a child that is an `async fn`.
//! * [`Context`] is the argument of that function: it is cancelled when the child has to stop, and reports to the supervisor.
//! * [`Exit`] is its result: `Ok(())`, or an [`ExitError`], into which `?` converts any error.
//! * [`Supervisor::builder`] describes a supervisor and its children, which can be supervisors again.
//! * [`ChildSpec`] has the options of one child: when it is restarted, what it requires, how long its stop may take.
//! * [`Backoff`] sets the delays before restarts.
//! * [`Application`] runs a tree as a whole program: signals, stages of the stop, hooks, an exit code.
//! * [`SupervisorHandle`] controls a running tree: it starts, stops and finds children, takes snapshots, and subscribes to events.
//! * [`DynamicSupervisor`] starts equal children while the program runs, such as one for each connection.
//! * [`TestTree`](testing::TestTree) runs a tree in a test, and makes its children fail (feature `testing`).
//!
//! Other functions describe children that are more than an `async fn`:
//!
//! * [`worker_with`] clones arguments of the function for each incarnation. [`once`] moves them, for a single incarnation.
//! * [`child`](fn@child) and [`component`] create or clone a value for each incarnation. Its type implements [`Child`].
//! * [`blocking`](blocking()) runs code that blocks, [`local`](local()) a future that isn't `Send`.
//! * [`adopt`](adopt()) supervises a task that already runs.
//!
//! The macros [`#[worker]`](macro@worker) and [`#[supervisor]`](macro@supervisor) generate such calls. A tree without an
//! application runs with [`Supervisor::run`], [`Supervisor::with_graceful_shutdown`] or [`Supervisor::start`].
//!
//! # Modules by task
//!
//! | to … | use |
//! | --- | --- |
//! | choose when and how often a child is restarted, and what happens at the limit | [`policy`] |
//! | stop a program in stages, with hooks, or before its memory is used up | [`app`] |
//! | see the state of a tree: snapshots, events, subscriptions | [`status`] |
//! | send messages that survive restarts: addresses, inboxes, requests | [`mailbox`](mod@mailbox) (feature `mailbox`) |
//! | send events and requests between children that don't know each other | [`bus`] (feature `bus`) |
//! | keep and replay messages that were not delivered | [`dead_letter`] |
//! | share values between children, and lock by name | [`service`] (feature `service`) |
//! | call a function periodically, by a period or a cron expression | [`periodic`] (features `periodic` and `cron`) |
//! | run tasks that return a value, streams of them, and supervisors in partitions | [`task`] (feature `task`) |
//! | run OS processes as children | [`process`] (feature `process`, Unix) |
//! | retry calls, and stop calling a service that fails | [`resilience`] (feature `resilience`) |
//! | set the values of a tree by path, from a file or a call, and reload them | [`config`] (feature `config`) |
//! | run a child on one machine at a time, or services in shards | [`lease`] (feature `lease`) |
//! | export counters, gauges and histograms | [`metrics`] (feature `metrics`) |
//! | keep the last log lines of each child | [`log_lines`] (feature `log-lines`) |
//! | show the tree on a web page, and change it there | [`console`] (feature `console`) |
//! | test a tree | [`testing`] (feature `testing`) |
//! | name a type that a call accepts or returns | [`context`], [`error`], [`exit`], [`spec`] |
//!
//! # Guarantees
//!
//! The rules are Erlang/OTP's, except for the deviations that the book lists with their reasons. Code that blocks its thread
//! can't be stopped in a tokio program. verger reports such a child as *leaked*, by name and within a bound, while one
//! worker thread is free. If all are blocked, nothing inside the runtime can act. A [`blocking`](blocking()) child has a
//! separate thread, so it occupies none of them.
//!
//! # Log
//!
//! Log lines are `tracing` events. The chapter *Log lines* of the book lists each line with its level and its fields.
//!
//! | target | lines about |
//! | --- | --- |
//! | `verger::lifecycle` | children that become active, unhealthy or healthy again, calls to a handle, a stalled runtime; each edge of a [`Lifecycle`] at `DEBUG` |
//! | `verger::restart` | restarts, and limits that refuse them |
//! | `verger::shutdown` | stops, their stages, and children that were killed or leaked |
//! | `verger::panic` | panics of children, with their location, after [`install_panic_hook`] |
//! | `verger::dead_letter` | messages that were not delivered, [throttled](dead_letter::DeadLetterLog) |
//! | `verger::memory` | a memory usage that can't be read |
//! | `verger::circuit` | circuit breakers (feature `resilience`) |
//! | `verger::config` | reloads, their changes and their mistakes (feature `config`) |
//! | `verger::console` | the URL of the console (feature `console`) |
//! | `verger::lease` | leases and shards (feature `lease`) |
//! | `verger::periodic` | runs that failed or were skipped (feature `periodic`) |
//! | `verger::process` | the output of processes (feature `process`) |
//! | `verger::systemd` | notifications that can't be sent (feature `systemd`) |
//!
//! The log lines of a child itself are in a span `child` with target `verger::child`, its path and its incarnation. A supervisor has no
//! span. With the level `DEBUG` of `verger::message`, each message has one: see `Inbox::span`.
//! Of each kind of line about a child, at most ten are logged within a minute, and then none for five minutes.
//!
//! # Crate features
//!
//! Without features, verger adds 29 other crates to a program; with all of them, 98. A row counts what its feature adds to the 29,
//! on Linux. Features add items and never change what an item does.
//!
//! | feature | what it gives | turns on | direct dependencies | crates |
//! | --- | --- | --- | --- | --- |
//! | `macros` (default) | [`#[supervisor]`](macro@supervisor), [`#[worker]`](macro@worker), [`#[derive(Supervisor)]`](derive@Supervisor) | | `verger-macros` | 2 |
//! | `signal` (default) | [`signals`], which resolves at the first SIGINT, SIGTERM or SIGHUP | | | 3 |
//! | `bus` | the module `bus`: events and requests, `Context::bus` | | | 0 |
//! | `config` | the module `config`: policies and settings by path, from any format that serde reads, and their reload | `serde` | `humantime-serde`, `serde` | 5 |
//! | `config-file` | configuration files in TOML: `Application::config_file` | `config`, `serde` | `humantime-serde`, `rustix`, `serde`, `toml` | 13 |
//! | `console` | the module `console`, `Application::console` | `config`, `json`, `log-lines`, `serde` | `axum`, `humantime-serde`, `rustix`, `serde`, `serde_json`, `tracing-subscriber` | 42 |
//! | `cron` | `cron`: children that run at the times of a cron expression | `periodic` | `croner`, `jiff` | 15 |
//! | `full` | all of these | `bus`, `config`, `config-file`, `console`, `cron`, `health`, `json`, `lease`, `log-lines`, `macros`, `mailbox`, `metrics`, `periodic`, `process`, `resilience`, `serde`, `service`, `signal`, `systemd`, `task`, `testing` | `axum`, `croner`, `humantime-serde`, `jiff`, `metrics`, `rustix`, `sd-notify`, `serde`, `serde_json`, `toml`, `tracing-subscriber`, `verger-macros` | 69 |
//! | `health` | HTTP probes of an [`Application`]: `Application::probes` | `serde` | `axum`, `humantime-serde`, `serde` | 33 |
//! | `json` | `Status::json` | `serde` | `humantime-serde`, `serde`, `serde_json` | 9 |
//! | `lease` | the module `lease`, `ChildSpec::lease`, and an engine that locks files on Unix | `mailbox` | `rustix` | 3 |
//! | `log-lines` | the module `log_lines`: a layer that keeps the last log lines of each child | | `tracing-subscriber` | 4 |
//! | `mailbox` | the module `mailbox`, `mailbox` and `worker_with_mailbox` | | | 0 |
//! | `metrics` | the module `metrics`: what supervisors do, through the facade `metrics` | | `metrics`, `rustix` | 6 |
//! | `periodic` | the module `periodic`: `every`, children that call a function periodically | | | 0 |
//! | `process` | the module `process` and `command`, on Unix | | `rustix` | 7 |
//! | `resilience` | the module `resilience`: `retry` and `CircuitBreaker` | | | 0 |
//! | `service` | the module `service`: values that children provide to each other, and locks by name | | | 0 |
//! | `serde` | `Serialize` and `Deserialize` of policies, `Serialize` of snapshots, events, exits and dead letters; `Shutdown` from text | | `humantime-serde`, `serde` | 5 |
//! | `systemd` | notifications to systemd, on Linux: `app::SYSTEMD_VARIABLES` | | `sd-notify` | 1 |
//! | `task` | the module `task`: `TaskSupervisor` and `PartitionedSupervisor` | | | 0 |
//! | `testing` | the module `testing`, for tests of trees | | | 0 |
//!
//! # Versions of Rust
//!
//! The library compiles with Rust 1.88, and so do its dependencies in the versions that cargo selects for that Rust. A release may
//! raise this with a new minor version, never with a patch, to a Rust that is at least six months old.
//!
//! # Platforms
//!
//! All tests run on Linux, on x86-64. The library is compiled for Windows; macOS is unchecked. `process`, the engine of `lease` that locks files, and `systemd`
//! compile to nothing where the system doesn't have what they need. `no_std`, WASM and other runtimes than tokio aren't planned.

// On docs.rs, each item says which feature it needs. It needs a nightly compiler.
#![cfg_attr(docsrs, feature(doc_cfg))]
// The front page links to items of features that may be off. On docs.rs, all are on.
#![cfg_attr(
    not(feature = "full"),
    allow(rustdoc::broken_intra_doc_links, reason = "for features that are off")
)]
// What supervision offers to a feature that is off. With all features, nothing unused is left.
#![cfg_attr(
    not(feature = "full"),
    allow(dead_code, unreachable_pub, unused_imports, reason = "for features that are off")
)]

pub mod app;
mod base;
#[cfg(all(doctest, feature = "full"))]
mod book;
#[cfg(feature = "bus")]
pub mod bus;
mod child;
#[cfg(feature = "config")]
pub mod config;
#[cfg(feature = "console")]
pub mod console;
pub mod context;
mod core;
pub mod dead_letter;
pub mod error;
pub mod exit;
mod handle;
#[cfg(feature = "lease")]
pub mod lease;
mod lifecycle;
#[cfg(feature = "log-lines")]
pub mod log_lines;
#[cfg(feature = "macros")]
mod macros;
#[cfg(feature = "mailbox")]
pub mod mailbox;
#[cfg(feature = "metrics")]
pub mod metrics;
mod panic;
mod path;
#[cfg(feature = "periodic")]
pub mod periodic;
pub mod policy;
#[cfg(all(feature = "process", unix))]
pub mod process;
#[cfg(feature = "resilience")]
pub mod resilience;
mod runtime;
#[cfg(feature = "serde")]
mod serde;
#[cfg(feature = "service")]
pub mod service;
pub mod spec;
pub mod status;
mod subscriber;
#[cfg(feature = "task")]
pub mod task;
#[cfg(feature = "testing")]
pub mod testing;

#[cfg(test)]
use self::base::random_cases;
use self::base::{
    clock, deferred_drop, human_duration, invisible, named_task, properties, start_of, string_enum,
    suggest, sync,
};

pub use async_trait::async_trait;
pub use tokio_util::sync::CancellationToken;

pub use crate::app::application::{Application, install_panic_hook};
#[cfg(feature = "signal")]
pub use crate::app::signals::{HangupClaim, signals};
pub use crate::child::{
    BlockingContext, Child, ChildDefaults, ChildSpec, Context, HealthCheck, adopt, blocking, child,
    component, local, once, worker, worker_with,
};
pub use crate::core::RULES;
pub use crate::error::build::BuildError;
pub use crate::error::control::ControlError;
pub use crate::error::run::{RunError, StartError};
pub use crate::exit::reason::{Exit, ExitError, ExitKind, ExitReason};
pub use crate::handle::{ChildRef, KillOutcome, OtpCalls, SupervisorHandle};
pub use crate::lifecycle::Lifecycle;
#[cfg(feature = "macros")]
pub use crate::macros::{Supervisor, supervisor, worker};
#[cfg(feature = "mailbox")]
pub use crate::mailbox::workers::{
    child_with_mailbox, mailbox, mailbox_with_capacity, worker_with_mailbox,
};
pub use crate::path::Path;
#[cfg(feature = "cron")]
pub use crate::periodic::cron;
#[cfg(feature = "periodic")]
pub use crate::periodic::every;
pub use crate::policy::backoff::Backoff;
pub use crate::policy::shutdown::Shutdown;
pub use crate::policy::start::Readiness;
pub use crate::policy::strategy::Strategy;
pub use crate::policy::trigger::RestartType;
#[cfg(all(feature = "process", unix))]
pub use crate::process::spec::command;
pub use crate::spec::builder::{DynamicSupervisor, DynamicSupervisorBuilder, SupervisorBuilder};
pub use crate::spec::supervisor::Supervisor;
