//! Running a tree as a whole program: what stops it, in which stages, what happens before and after.
//!
//! An [`Application`](crate::Application) is a tree with all that `main` needs.
//!
//! | file | what |
//! | --- | --- |
//! | `application` | the options of an application, and its exit code |
//! | `companion` | what accompanies the run of an application, and in which order |
//! | `launch` | runs an application with its companions |
//! | `program` | runs a tree until something asks for a stop |
//! | `termination` | the stop, in stages |
//! | `stages`, `hooks`, `stop_bounds` | what a stop does, and how long it may take |
//! | `reload` | reads the configuration again when that is requested (feature `config`) |
//! | `reload_signals` | requests it at a signal (features `config` and `signal`) |
//! | `listen` | where an application listens (features `health` and `console`) |
//! | `probes` | answers over HTTP whether the tree is alive and ready (feature `health`) |
//! | `self_check` | a thread that finds out that the tree's loop doesn't turn |
//! | `exit_thread` | ends the process if the program doesn't |
//! | `memory` | guards that act before the kernel kills the process |
//! | `panic_hook` | panics of children in the log |
//! | `systemd` | notifications to systemd (feature `systemd`) |
//! | `signals`, `stop_cause` | what asks for a stop |
//! | `root`, `run` | the task of a tree, and the ways to run one |

pub(crate) mod application;
pub(crate) mod companion;
mod exit;
mod exit_thread;
mod hooks;
mod launch;
#[cfg(any(feature = "health", feature = "console"))]
pub(crate) mod listen;
pub mod memory;
pub(crate) mod panic_hook;
#[cfg(feature = "health")]
mod probes;
mod program;
#[cfg(feature = "config")]
mod reload;
#[cfg(all(unix, feature = "config", feature = "signal"))]
mod reload_signals;
pub(crate) mod root;
pub(crate) mod run;
mod self_check;
#[cfg(feature = "signal")]
pub(crate) mod signals;
mod stages;
mod stop_bounds;
pub(crate) mod stop_cause;
#[cfg(feature = "systemd")]
mod systemd;
mod termination;

pub use self::application::IntoTree;
pub use self::hooks::{Hook, HookStep, hook};
#[cfg(feature = "health")]
pub use self::probes::probes;
#[cfg(feature = "config")]
pub use self::reload::Reloader;
pub use self::stages::{Stage, StopStages};
#[cfg(feature = "systemd")]
pub use self::systemd::SYSTEMD_VARIABLES;
