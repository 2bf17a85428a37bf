//! Trees: describing supervisors and children, checking the description once, and running it.
//!
//! Nesting happens here and only here: a builder becomes a child, and a [`Supervisor`] is one.
//!
//! A builder collects in any order and checks nothing; [`build`](SupervisorBuilder::build) looks at
//! the whole tree at once and gives a [`Supervisor`], which is valid, so that nothing later has to
//! check again.

mod builder;
mod check;
mod letters;
mod order;
mod run;

pub use self::builder::{DynamicSupervisor, DynamicSupervisorBuilder, SupervisorBuilder};
#[cfg(feature = "testing")]
pub(crate) use self::run::Root;
pub use self::run::{GracefulShutdown, Supervisor};
