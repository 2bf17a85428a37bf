//! Handles: how the rest of a program inspects and controls a running tree.

mod child_ref;
#[cfg(feature = "config")]
mod configure;
#[cfg(feature = "console")]
mod console;
pub(crate) mod control;
mod find;
mod hold;
pub(crate) mod observe;
mod root;
mod route;
mod similar;
mod snapshot;

pub use self::child_ref::ChildRef;
pub(crate) use self::root::{request_stop, root, supervisor_below, supervisor_of, until_up};
pub use self::route::SupervisorHandle;
