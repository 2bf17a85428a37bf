//! The process group of a child: the signals to it, the end of its leader, and the table of all groups.
//!
//! A process leads a separate group, so a signal of the terminal doesn't reach it, and it would outlive the program.
//! The table is for an end of this program that waits for nothing.
//!
//! # Invariants
//!
//! 1. A signal is sent only before the leader is reaped. Until then its number belongs to no other process or group.
//! 2. No signal is sent to 0 or 1, which would be this program's own group, or every process.

use std::collections::HashMap;
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

#[cfg(target_os = "linux")]
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpgid, kill_process, kill_process_group,
    test_kill_process_group, waitid,
};
#[cfg(target_os = "linux")]
use rustix::process::{PidfdFlags, pidfd_open};
#[cfg(target_os = "linux")]
use tokio::io::Interest;
#[cfg(target_os = "linux")]
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{SignalKind, signal};

use super::spec::KillMode;
use crate::sync::Mutex;

/// See the [module](self).
pub(super) struct Group {
    pub(super) leader: Pid,
    is_reaped: Mutex<bool>,
    /// Whether all of its processes have got the stop signal, and have the grace to end.
    stops: AtomicBool,
}

impl Group {
    /// Returns the group of a process that leads one. `None` if no process can have this number.
    pub(super) fn led_by(pid: u32) -> Option<Self> {
        let raw = i32::try_from(pid).ok().filter(|&raw| raw > 1)?;
        Some(Self {
            leader: Pid::from_raw(raw)?,
            is_reaped: Mutex::new(false),
            stops: AtomicBool::new(false),
        })
    }

    /// Sends the stop signal. A process that is suspended gets it once it continues, so it is woken.
    pub(super) fn stop(&self, signal: Signal, kill_mode: KillMode) -> Result<(), Errno> {
        let to_all = kill_mode == KillMode::ControlGroup;
        self.stops.store(to_all, Ordering::Release);
        self.send(signal, to_all)?;
        self.send(Signal::CONT, to_all)
    }

    /// Whether its processes have got the stop signal, so that the end of the leader isn't the end of their grace.
    pub(super) fn stops(&self) -> bool {
        self.stops.load(Ordering::Acquire)
    }

    /// Sends a signal to every process of the group, unless the leader has been reaped.
    pub(super) fn signal(&self, signal: Signal) -> Result<(), Errno> {
        self.send(signal, true)
    }

    fn send(&self, signal: Signal, to_all: bool) -> Result<(), Errno> {
        let is_reaped = self.is_reaped.lock();
        if *is_reaped {
            return Ok(());
        }
        let sent = if to_all { kill_process_group(self.leader, signal) } else { Ok(()) };
        // Once only: to some programs, a second signal means that they should stop at once.
        let leads = getpgid(Some(self.leader)).is_ok_and(|group| group == self.leader);
        let sent = if to_all && leads { sent } else { kill_process(self.leader, signal) };
        match sent {
            Err(Errno::SRCH) => Ok(()),
            // The answer of other systems than Linux for a group whose processes have all ended.
            Err(Errno::PERM) if !cfg!(target_os = "linux") && self.has_ended() => Ok(()),
            sent => sent,
        }
    }

    /// Calls what reaps the leader. From then on, no signal is sent.
    pub(super) fn reap<T>(&self, reap: impl FnOnce() -> T) -> T {
        let mut is_reaped = self.is_reaped.lock();
        *is_reaped = true;
        reap()
    }

    /// Returns whether the leader has ended, reaped or not.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::Pid(self.leader), options) {
            Ok(ended) => ended.is_some(),
            Err(error) => error == Errno::CHILD,
        }
    }

    /// Resolves when no process of the group runs any more.
    #[cfg(not(target_os = "linux"))]
    pub(super) async fn ended(&self) {
        // Of a group with processes that aren't reaped, but no other ones, these systems answer that it can't be
        // signalled.
        while test_kill_process_group(self.leader).is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }

    /// Returns whether no process of the group is left, once the leader has been reaped.
    #[cfg(target_os = "linux")]
    pub(super) fn is_empty(&self) -> bool {
        test_kill_process_group(self.leader) == Err(Errno::SRCH)
    }
}

/// Resolves when the leader of the group has ended. It isn't reaped, so its number stays its own.
///
/// # Errors
///
/// If neither a descriptor of the process nor a handler of `SIGCHLD` can be had.
pub(super) async fn leader_ended(group: &Group) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if let Ok(process) = pidfd_open(group.leader, PidfdFlags::empty()) {
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

/// Handles `SIGCHLD` from now on. Call it before a process is started.
///
/// A program inherits from its parent that the signal is ignored. The system then discards how its processes have ended.
pub(super) fn handle_ends() {
    // tokio's handler stays installed. Without it, the exit of the process is an error that names it.
    let _ = signal(SignalKind::child());
}

static LIVE: LazyLock<Mutex<HashMap<Pid, Arc<Group>>>> = LazyLock::new(Mutex::default);

/// Until this is dropped, the group is killed if the program ends at once.
pub(super) struct Live(Arc<Group>);

impl Live {
    pub(super) fn new(group: &Arc<Group>) -> Self {
        LIVE.lock().insert(group.leader, Arc::clone(group));
        Self(Arc::clone(group))
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let (mut live, leader) = (LIVE.lock(), self.0.leader);
        // Once the leader is reaped, its number may be that of the next process.
        if live.get(&leader).is_some_and(|group| Arc::ptr_eq(group, &self.0)) {
            live.remove(&leader);
        }
    }
}

/// Kills all groups. The program ends now.
pub(crate) fn kill_all() {
    for group in LIVE.lock().values() {
        // A group that can't be signalled is left as it is: there is no time to say so.
        let _ = group.signal(Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_number_that_means_more_than_one_process_is_refused() {
        for pid in [0, 1, u32::MAX, 1 << 31] {
            assert!(Group::led_by(pid).is_none(), "{pid}");
        }
        assert_eq!(Group::led_by(2).map(|it| it.leader.as_raw_pid()), Some(2));
    }

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
