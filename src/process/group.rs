//! The process group of a child, and the signals to it.
//!
//! # Invariants
//!
//! 1. A signal is sent only before the leader is reaped. Until then its number belongs to no other process or group.
//! 2. No signal is sent to 0 or 1, which would be this program's own group, or every process.

use rustix::io::Errno;
#[cfg(target_os = "linux")]
use rustix::process::test_kill_process_group;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpgid, kill_process, kill_process_group, waitid,
};

use crate::sync::Mutex;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Group {
    leader: Pid,
    is_reaped: Mutex<bool>,
}

impl Group {
    /// Returns the group of a process that leads one. `None` if no process can have this number.
    pub(super) fn led_by(pid: u32) -> Option<Self> {
        let raw = i32::try_from(pid).ok().filter(|&raw| raw > 1)?;
        Some(Self { leader: Pid::from_raw(raw)?, is_reaped: Mutex::new(false) })
    }

    pub(super) fn leader(&self) -> Pid {
        self.leader
    }

    /// Sends a signal to every process of the group, unless the leader has been reaped.
    pub(super) fn signal(&self, signal: Signal) -> Result<(), Errno> {
        let is_reaped = self.is_reaped.lock();
        if *is_reaped {
            return Ok(());
        }
        let sent = kill_process_group(self.leader, signal);
        // Once only: to some programs, a second signal means that they should stop at once.
        let leads = getpgid(Some(self.leader)).is_ok_and(|group| group == self.leader);
        let sent = if leads { sent } else { kill_process(self.leader, signal) };
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
    pub(super) fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::Pid(self.leader), options) {
            Ok(ended) => ended.is_some(),
            Err(error) => error == Errno::CHILD,
        }
    }

    /// Returns whether no process of the group is left, once the leader has been reaped.
    #[cfg(target_os = "linux")]
    pub(super) fn is_empty(&self) -> bool {
        test_kill_process_group(self.leader) == Err(Errno::SRCH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_means_more_than_one_process_is_refused() {
        for pid in [0, 1, u32::MAX, 1 << 31] {
            assert!(Group::led_by(pid).is_none(), "{pid}");
        }
        assert_eq!(Group::led_by(2).map(|it| it.leader().as_raw_pid()), Some(2));
    }
}
