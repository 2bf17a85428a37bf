//! Runs a tree as a whole program, with signals and exit codes.

mod root;
mod run;
#[cfg(feature = "signal")]
mod signals;
mod stop_cause;

#[cfg(feature = "testing")]
pub(crate) use self::root::Root;
pub use self::run::GracefulShutdown;
#[cfg(feature = "signal")]
pub use self::signals::{OsSignal, Signals, signals};
pub use self::stop_cause::StopCause;
