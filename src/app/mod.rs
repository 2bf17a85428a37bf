//! What a tree that is a whole program needs of its surroundings.

#[cfg(feature = "signal")]
mod signals;

#[cfg(feature = "signal")]
pub use self::signals::{Signals, signals};
