//! Handles: how the rest of a program inspects and controls a running tree.

#[cfg(feature = "config")]
mod configure;
pub(crate) mod control;
pub(crate) mod observe;
mod otp;
mod route;
mod snapshot;

pub use self::control::{ChildRef, KillOutcome};
pub(crate) use self::observe::{request_stop, supervisor_below, supervisor_of, until_up};
pub use self::otp::OtpCalls;
pub use self::route::SupervisorHandle;
