//! Paths: the positions of children in a tree, and the rules for names.
//!
//! A [`Path`] is text. It doesn't know whether a child exists at this position.
//!
//! # Invariants
//!
//! 1. A path has at least one name, and no name in it is empty or contains `/`.
//! 2. The name of a declared child has passed [`check_name`]. Only children of a dynamic supervisor
//!    have a `#` in their last name, before the serial number, so the two are never equal.

mod name;
#[cfg(feature = "serde")]
mod serde;
mod serial_name;
#[cfg(test)]
mod tests;
mod tree_path;

pub use self::name::NameProblem;
pub(crate) use self::name::check_name;
pub(crate) use self::serial_name::SerialName;
pub use self::tree_path::Path;
