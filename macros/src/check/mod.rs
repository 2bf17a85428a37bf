//! Rules about an item as a whole. Each mistake is reported once, at the token that has to change.

mod block;
mod function;
mod node;
mod options;
mod signature;

pub(crate) use block::block;
pub(crate) use function::function;
pub(crate) use node::node;
