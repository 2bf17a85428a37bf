//! What a worker may return, and the message of a panic.
//!
//! A worker returns any [`Outcome`], which becomes an [`Exit`]. If it panics, the [`ExitReason`] that its supervisor
//! records contains a [`PanicMessage`]. Programs seldom name these two types. [`Exit`], [`ExitError`], [`ExitKind`] and
//! [`ExitReason`] are at the root of the crate.

pub(crate) mod reason;

pub use self::reason::Outcome;
pub(crate) use self::reason::{Exit, ExitError, ExitKind, ExitReason, with_causes};
pub use crate::panic::PanicMessage;
