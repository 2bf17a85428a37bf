//! Expansion: a checked item becomes calls of the public builder. It can't fail.
//!
//! An item with a mistake keeps its signatures, so that the code that uses it has no further errors.

mod block;
mod calls;
mod function;
mod node;
mod worker_call;

pub(crate) use block::{block, foreign_trait};
pub(crate) use function::function;
pub(crate) use node::node;
