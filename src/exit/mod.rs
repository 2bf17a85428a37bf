//! Exits: what a child returns, and what its supervisor records.
//!
//! A child returns an [`Exit`], which is `Ok` or an [`ExitError`]. Its supervisor records an
//! [`ExitReason`], which also covers exits that a child can't return, such as a panic or an abort.
//!
//! # Invariants
//!
//! 1. An error keeps all of its causes, and an escalation keeps the reason that it started with.
//! 2. Every exit is either clean or a failure.

pub(crate) mod causes;
mod kind;
mod outcome;
mod reason;
#[cfg(feature = "serde")]
mod serde;
#[cfg(test)]
mod tests;

pub(crate) use self::causes::with_causes;
pub use self::kind::ExitKind;
pub use self::outcome::Outcome;
pub use self::reason::{Exit, ExitError, ExitReason};
