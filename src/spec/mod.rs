//! Describes trees: supervisors and children, checked once.
//!
//! A builder collects settings in any order and checks nothing.
//! [`build`](SupervisorBuilder::build) checks the whole tree at once and returns a [`Supervisor`].
//!
//! # Invariants
//!
//! 1. A [`Supervisor`] is valid: no later code checks it again.
//! 2. Trees are nested only here: a builder becomes a child or is started by a worker, and a [`Supervisor`] is a child.

mod builder;
mod check;
mod dead_letters;
mod description;
mod order;
mod own_children;
mod supervisor;

#[cfg(feature = "testing")]
pub(crate) use self::builder::build;
pub use self::builder::{
    DynamicSupervisor, DynamicSupervisorBuilder, SupervisorBuilder, TreeBuilder,
};
pub use self::supervisor::Supervisor;
