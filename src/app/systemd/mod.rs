//! Notifications to systemd, for units with `Type=notify` or `Type=notify-reload`.
//!
//! | when | what is sent |
//! | --- | --- |
//! | the tree is ready, also again after a reload | `READY=1` |
//! | a reload begins | `RELOADING=1`, `MONOTONIC_USEC` |
//! | a stop begins | `STOPPING=1` |
//! | during a stop, every 5 s | `EXTEND_TIMEOUT_USEC`, for at most 15 s and 5 s more than the stop may take |
//! | every half of `WATCHDOG_USEC`, while the loops turn | `WATCHDOG=1` |
//! | the tree has been ready for 30 s | `RESTART_RESET=1`, so that systemd's own backoff begins again |
//! | with each of these, and whenever it changes | `STATUS` |
//!
//! # Invariants
//!
//! 1. Without `NOTIFY_SOCKET` there is no notifier, no task and no socket.
//! 2. Nothing but states of stopping, status and watchdog follows `STOPPING=1`, which is final.
//! 3. A status is one line of at most 1 KiB: it can't add an assignment, and systemd accepts its datagram.
//! 4. No send blocks the thread. What systemd doesn't receive yet is sent later, in order.
//! 5. The environment of the process is only read.

#[cfg(target_os = "linux")]
mod notifier;
#[cfg(target_os = "linux")]
mod reporter;

#[cfg(target_os = "linux")]
use self::notifier::systemd;
#[cfg(not(target_os = "linux"))]
use super::companion::MaybeCompanion;
use crate::Application;

impl Application {
    /// Notifies systemd, if it runs the process as a unit with `Type=notify` or `Type=notify-reload`.
    ///
    /// `READY=1` is sent when the first start is complete, `STATUS` when that changes, `STOPPING=1` when
    /// something asks for a stop, then `EXTEND_TIMEOUT_USEC` while the stages last, and `WATCHDOG=1` while the
    /// supervisors' loops turn. Without `NOTIFY_SOCKET` in the environment it has no effect.
    pub fn systemd(mut self) -> Self {
        self.companions.systemd = systemd();
        self
    }
}

/// Only Linux has systemd.
#[cfg(not(target_os = "linux"))]
fn systemd() -> MaybeCompanion {
    None
}

/// The environment variables through which systemd and a service talk about the service.
///
/// An OS process that a child starts inherits them, and could then report itself ready, or keep the watchdog
/// quiet, in the name of the service. Remove them:
///
/// ```
/// use std::process::Command;
///
/// use verger::app::SYSTEMD_VARIABLES;
///
/// let mut command = Command::new("convert");
/// for variable in SYSTEMD_VARIABLES {
///     command.env_remove(variable);
/// }
/// ```
pub const SYSTEMD_VARIABLES: [&str; 3] = ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"];
