//! The traits of values that describe children and trees.
//!
//! [`child`](fn@crate::child) accepts a [`ChildConstructor`], [`component`](fn@crate::component) accepts a [`Component`],
//! and [`Context::children_with`](crate::Context::children_with) accepts a [`TreeBuilder`]. Programs seldom name these
//! traits. Use them as bounds of a generic function that describes children.

// Describes trees: supervisors and children, checked once.
//
// A builder collects settings in any order and checks nothing. `build` checks the whole tree once and returns a
// `Supervisor`.
//
// Invariants:
//
// 1. A `Supervisor` is valid: no later code checks it again.
// 2. Trees are nested only here: a builder becomes a child or is started by a worker, and a `Supervisor` is a child.

pub(crate) mod builder;
mod check;
mod dead_letters;
mod description;
mod order;
mod own_children;
pub(crate) mod supervisor;

pub use self::builder::TreeBuilder;
#[cfg(feature = "testing")]
pub(crate) use self::builder::build;
pub(crate) use self::builder::{DynamicSupervisor, DynamicSupervisorBuilder, SupervisorBuilder};
pub(crate) use self::supervisor::Supervisor;
pub use crate::child::{ChildConstructor, Component};
