//! Waiting until a process has ended, without reaping it.

use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;

#[cfg(target_os = "linux")]
use rustix::fd::OwnedFd;
#[cfg(target_os = "linux")]
use rustix::process::{PidfdFlags, pidfd_open};
#[cfg(target_os = "linux")]
use tokio::io::Interest;
#[cfg(target_os = "linux")]
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{SignalKind, signal};

use super::group::Group;

/// Resolves when the leader of the group has ended. It isn't reaped, so its number stays its own.
///
/// # Errors
///
/// If neither a descriptor of the process nor a handler of `SIGCHLD` can be had.
pub(super) async fn leader_ended(group: &Group) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if let Ok(process) = pidfd_open(group.leader(), PidfdFlags::empty()) {
        process_ended(process).await?;
        return Ok(());
    }
    // Linux before 5.3, a sandbox, or a different system.
    let mut any_child = signal(SignalKind::child())?;
    while !group.has_ended() {
        any_child.recv().await;
    }
    Ok(())
}

/// Resolves when a process has ended, whether or not it has been reaped.
#[cfg(target_os = "linux")]
pub(super) async fn process_ended(process: OwnedFd) -> io::Result<()> {
    let process = register(process, Interest::READABLE)?;
    process.readable().await?.retain_ready();
    Ok(())
}

/// Registers a file with the runtime.
#[cfg(target_os = "linux")]
pub(super) fn register<T: AsRawFd>(file: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    #[allow(
        deprecated,
        reason = "its successor is unsafe, for files that may be replaced; these aren't"
    )]
    AsyncFd::with_interest(file, interest)
}
