//! Running a tree as a whole program: what stops it, in which stages, what happens before and after.
//!
//! An [`Application`](crate::Application) is a tree with all that `main` needs. This module has the parts of its
//! options, such as a [`Stage`] of the stop or a [`Hook`], and what [`signals`](crate::signals()) and
//! [`Supervisor::with_graceful_shutdown`](crate::Supervisor::with_graceful_shutdown) return.

// | file | what |
// | --- | --- |
// | `application` | an application: its options, its exit code, and its run with companions |
// | `companion` | what accompanies the run of an application, and in which order |
// | `program` | runs a tree until something asks for a stop, and stops it in stages |
// | `stop` | what a stop does, and how long it may take: stages and hooks |
// | `reload` | reads the configuration again when that is requested (feature `config`) |
// | `reload_signals` | requests it at a signal (features `config` and `signal`) |
// | `listen` | where an application listens (features `health` and `console`) |
// | `connections` | the connections there, which a client can't exhaust (the same) |
// | `probes` | answers over HTTP whether the tree is alive and ready (feature `health`) |
// | `exit_thread` | ends the process if the program doesn't |
// | `memory` | guards that act before the kernel kills the process |
// | `systemd` | notifications to systemd (feature `systemd`) |
// | `signals` | the signals that ask for a stop |
// | `run` | the task of a tree, and the ways to run one |

pub(crate) mod application;
pub(crate) mod companion;
#[cfg(any(feature = "health", feature = "console"))]
pub(crate) mod connections;
mod exit_thread;
#[cfg(any(feature = "health", feature = "console"))]
pub(crate) mod listen;
pub mod memory;
#[cfg(feature = "health")]
mod probes;
mod program;
#[cfg(feature = "config")]
mod reload;
#[cfg(all(unix, feature = "config", feature = "signal"))]
mod reload_signals;
pub(crate) mod run;
#[cfg(feature = "signal")]
pub(crate) mod signals;
mod stop;
#[cfg(feature = "systemd")]
mod systemd;

pub use self::application::IntoTree;
#[cfg(feature = "health")]
pub use self::probes::probes;
#[cfg(feature = "config")]
pub use self::reload::Reloader;
pub use self::run::{GracefulShutdown, StopCause};
#[cfg(feature = "signal")]
pub use self::signals::{OsSignal, Signals};
pub use self::stop::{Hook, HookStep, Stage, StopStages, hook};
#[cfg(feature = "systemd")]
pub use self::systemd::SYSTEMD_VARIABLES;
