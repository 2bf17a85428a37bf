//! Values that the methods of a [`Context`](crate::Context) return: futures, guards and helper tasks.
//!
//! [`cancelled`](crate::Context::cancelled) returns a [`Cancelled`], [`waiting`](crate::Context::waiting) a [`Waiting`],
//! [`spawn`](crate::Context::spawn) a [`Helper`], [`spawn_blocking`](crate::Context::spawn_blocking) a
//! [`BlockingHelper`], and [`detached_errors`](crate::Context::detached_errors) a [`DetachedErrors`]. Name these types to
//! keep such a value in a struct.

pub use crate::child::{BlockingHelper, Cancelled, DetachedErrors, Helper, Waiting};
