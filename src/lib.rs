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
//! * Describe a tree with [`Supervisor::builder`], [`DynamicSupervisor::builder`],
//!   [`worker`](fn@worker), [`worker_with`], [`child`] and [`component`]. Code that blocks is a [`blocking`](blocking())
//!   child, a future that isn't `Send` a [`local`](local()) one, and a task that runs already is [adopted](adopt()).
//!   [`build`](SupervisorBuilder::build) checks the whole tree once.
//! * Run it as a whole program with [`Application`], which adds signals, stages of the stop, hooks and
//!   an exit code. Or run it with [`Supervisor::run`], [`Supervisor::with_graceful_shutdown`] or
//!   [`Supervisor::start`].
//! * A child gets a [`Context`], which is cancelled when the child has to stop, and through which the
//!   child sends signals to its supervisor.
//! * A [`SupervisorHandle`] starts, stops and [holds](SupervisorHandle::hold) children of a running tree, and finds
//!   them by name ([`child`](SupervisorHandle::child); `address`, feature `mailbox`). It takes snapshots
//!   ([`status`](SupervisorHandle::status)) and subscribes to events ([`events`](SupervisorHandle::events)).
//! * With the feature `task`, a `TaskSupervisor` runs tasks whose value is awaited, as children.
//! * With the feature `config`, a configuration replaces values of the code by path, also while the tree
//!   runs: `Application::config_file`, `SupervisorHandle::plan` and `apply`.
//!
//! | module | what you find there |
//! | --- | --- |
//! | [`policy`] | restart policies, limits, presets, failure callbacks |
//! | `mailbox` | messages that survive restarts: addresses, inboxes, requests (feature `mailbox`) |
//! | `bus` | events and requests between children that don't know each other (feature `bus`) |
//! | [`dead_letter`] | messages that were not delivered, and stores that keep and replay them |
//! | `service` | values that children provide to each other, and locks by name (feature `service`) |
//! | [`status`] | snapshots of a tree, events, subscriptions |
//! | `periodic` | children that call a function periodically, by a period or a cron expression (features `periodic` and `cron`) |
//! | `task` | tasks that return a value, streams of them, and supervisors in partitions (feature `task`) |
//! | `process` | OS processes as children (feature `process`, Unix) |
//! | `resilience` | retries and circuit breakers for calls (feature `resilience`) |
//! | `config` | the values of a tree by path, from files or calls, and their reload (feature `config`) |
//! | `lease` | children that run on one machine at a time, services in shards, and the engines for both (feature `lease`) |
//! | `metrics` | counters, gauges and histograms, with the facade `metrics` (feature `metrics`) |
//! | `log_lines` | the last log lines of each child, from this incarnation and the one before (feature `log-lines`) |
//! | `console` | a web page that shows the tree, and changes it if actions are allowed (feature `console`) |
//! | `testing` | a kit for tests of trees (feature `testing`) |
//!
//! # Guarantees
//!
//! The rules are Erlang/OTP's, except for the deviations that the book lists with their reasons. Code
//! that blocks its thread can't be stopped in a tokio program. It is reported as *leaked*, by name and
//! within a bound, while one worker thread is free. Where all are blocked, nothing inside the runtime
//! can act. A [`blocking`](blocking()) child has a thread of its own, so it occupies none of them.
//!
//! # Log
//!
//! Log lines are `tracing` events, so they are visible once the program sets a subscriber.
//!
//! | target | lines |
//! | --- | --- |
//! | `verger::lifecycle` | a child or supervisor is up, a child ends its supervisor or is healthy again, a call has stopped, restarted, deleted or woken a child (`INFO`), a child is [unhealthy](HealthCheck), a start has waited for it for 10 s, the runtime was [late](ChildSpec::watchdog), or a value of `task` is used in two places (`WARN`), no loop turns (`ERROR`), each edge of a [`Lifecycle`] (`DEBUG`) |
//! | `verger::restart` | a child will or won't be restarted (`WARN`), a supervisor gives up or fails (`ERROR`) |
//! | `verger::dead_letter` | a message was not delivered (`WARN`, [throttled](dead_letter::DeadLetterLog)), or its loss was configured (`DEBUG`); a handler of dead letters (feature `bus`) has failed (`DEBUG`), or is so slow that it has missed letters (`WARN`) |
//! | `verger::circuit` | a circuit breaker opens, admits a probe, or closes (`INFO`); feature `resilience` |
//! | `verger::config` | a reload begins or is over, each change of an applied plan (`INFO`), the check of a new value takes 5 s, the configuration isn't changed (`WARN`), each mistake or refusal (`ERROR`); feature `config` |
//! | `verger::console` | the URL of the console, with the token if actions are allowed (`INFO`); feature `console` |
//! | `verger::lease` | a child is on standby, its lease is granted or renewed again (`INFO`); it is lost, can't be asked for, renewed or released, the preparation of a standby has failed, or a shard can't be started (`WARN`); feature `lease` |
//! | `verger::memory` | the memory usage can't be read (`WARN`, once) |
//! | `verger::periodic` | a run of a periodic child has failed and its child goes on, or planned runs were skipped (`WARN`); feature `periodic` |
//! | `verger::panic` | a child panicked, with its location (`ERROR`, after [`install_panic_hook`]) |
//! | `verger::process` | a line of a process (`INFO`), lines were dropped because the log was too slow, or a process can't be signalled (`WARN`), a process was started (`DEBUG`); feature `process` |
//! | `verger::shutdown` | a supervisor shuts down, a stage begins (`INFO`), a stage has expired, a stop has waited for a child for 10 s, a child was killed (`WARN`) or leaked (`ERROR`) |
//! | `verger::systemd` | systemd can't be notified, or its environment variables can't be read (`WARN`, once) |
//!
//! Starts that a handle requests, and the edges that any call leads to, are logged at `DEBUG`. The log lines of a child itself are
//! in a span `child` with target `verger::child`, its path and its incarnation. A supervisor has no
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
//! | `console` | the module `console`, `Application::console` | `config`, `json`, `log-lines`, `serde` | `axum`, `humantime-serde`, `serde`, `serde_json`, `tracing-subscriber` | 39 |
//! | `cron` | `cron`: children that run at the times of a cron expression | `periodic` | `croner`, `jiff` | 15 |
//! | `full` | all of these | `bus`, `config`, `config-file`, `console`, `cron`, `health`, `json`, `lease`, `log-lines`, `macros`, `mailbox`, `metrics`, `periodic`, `process`, `resilience`, `serde`, `service`, `signal`, `systemd`, `task`, `testing` | `axum`, `croner`, `humantime-serde`, `jiff`, `metrics`, `rustix`, `sd-notify`, `serde`, `serde_json`, `toml`, `tracing-subscriber`, `verger-macros` | 69 |
//! | `health` | HTTP probes of an [`Application`]: `Application::probes` | `serde` | `axum`, `humantime-serde`, `serde` | 33 |
//! | `json` | `Status::json` | `serde` | `humantime-serde`, `serde`, `serde_json` | 9 |
//! | `lease` | the module `lease`, `ChildSpec::lease`, and an engine that locks files on Unix | `mailbox` | `rustix` | 3 |
//! | `log-lines` | the module `log_lines`: a layer that keeps the last log lines of each child | | `tracing-subscriber` | 4 |
//! | `mailbox` | the module `mailbox`, `mailbox` and `worker_with_mailbox` | | | 0 |
//! | `metrics` | the module `metrics`: what supervisors do, through the facade `metrics` | | `metrics` | 3 |
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
