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
    any_child_ended(group).await
}

async fn any_child_ended(group: &Group) -> io::Result<()> {
    // First the handler, so that no end is missed.
    let mut any_child = signal(SignalKind::child())?;
    while !group.has_ended() {
        any_child.recv().await;
    }
    Ok(())
}

/// Resolves to the descriptor when a process has ended, whether or not it has been reaped.
#[cfg(target_os = "linux")]
pub(super) async fn process_ended(process: OwnedFd) -> io::Result<OwnedFd> {
    let process = register(process, Interest::READABLE)?;
    process.readable().await?.retain_ready();
    Ok(process.into_inner())
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

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[tokio::test]
    async fn an_end_is_noticed_without_a_descriptor_and_the_process_is_not_reaped() {
        let mut process = Command::new("sleep").arg("1000").spawn().unwrap();
        let group = Group::led_by(process.id()).unwrap();
        assert!(!group.has_ended());
        let ((), ended) = tokio::join!(
            async {
                tokio::task::yield_now().await;
                process.kill().unwrap();
            },
            any_child_ended(&group),
        );
        ended.unwrap();
        assert!(group.has_ended());
        leader_ended(&group).await.unwrap();
        assert!(!process.wait().unwrap().success());
    }
}
