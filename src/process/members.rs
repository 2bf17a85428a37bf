//! Looks for processes in `/proc`: those of a group, and those with a mark in their environment. Linux only.

use std::fs;
use std::io;
use std::path::PathBuf;

use rustix::fd::{AsFd, OwnedFd};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
};

/// The variable that marks the processes of one incarnation. Its name is unique, so that a program which has
/// children of its own adds its mark and doesn't replace this one.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    pub(super) variable: String,
}

impl Mark {
    pub(super) fn new() -> Self {
        Self { variable: format!("VERGER_CHILD_{:032x}", fastrand::u128(..)) }
    }
}

/// Returns the processes of a group, also those that have ended and aren't reaped. Blocks.
pub(super) fn of_group(leader: Pid) -> Vec<OwnedFd> {
    let in_group = |pid: Pid| {
        fs::read_to_string(in_proc(pid, "stat"))
            .is_ok_and(|stat| group_of(&stat) == Some(leader.as_raw_pid()))
    };
    processes().filter_map(|pid| open_if(pid, in_group)).collect()
}

/// Reaps a process that has ended, if it is a child of this program. It is if its parent has ended before, and this
/// program is the first process of a container.
pub(super) fn reap_if_adopted(process: &OwnedFd) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    let _ = waitid(WaitId::PidFd(process.as_fd()), options);
}

/// Kills the processes with this mark, and returns them. Blocks.
pub(super) fn kill_marked(mark: &Mark) -> Vec<OwnedFd> {
    let variable = format!("{}=", mark.variable);
    let is_marked = |pid: Pid| {
        fs::read(in_proc(pid, "environ")).is_ok_and(|environment| {
            environment.split(|&byte| byte == 0).any(|it| it.starts_with(variable.as_bytes()))
        })
    };
    let marked = processes().filter_map(|pid| open_if(pid, is_marked));
    marked.filter(|process| pidfd_send_signal(process, Signal::KILL).is_ok()).collect()
}

/// Opens the processes with these numbers, one in each line.
pub(super) fn listed(numbers: &str) -> Vec<OwnedFd> {
    let pids = numbers.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?));
    pids.filter_map(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()).collect()
}

fn processes() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        Pid::from_raw(entry.file_name().to_str()?.parse().ok().filter(|&raw: &i32| raw > 1)?)
    })
}

fn in_proc(pid: Pid, file: &str) -> PathBuf {
    format!("/proc/{}/{file}", pid.as_raw_pid()).into()
}

/// Opens a process if it is one of those that are looked for.
///
/// It is opened before it is looked at. If its number belongs to a new process by then, the descriptor is that of one
/// that has ended, to which no signal can be sent.
fn open_if(pid: Pid, is_one: impl Fn(Pid) -> bool) -> Option<OwnedFd> {
    // Most processes are others, and cost no descriptor.
    if !is_one(pid) {
        return None;
    }
    let process: io::Result<OwnedFd> = pidfd_open(pid, PidfdFlags::empty()).map_err(Into::into);
    process.ok().filter(|_| is_one(pid))
}

/// Returns the group of a process, from its `/proc/PID/stat`.
fn group_of(stat: &str) -> Option<i32> {
    // The name before it may contain blanks and brackets. Then come the state, the parent and the group.
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_stat_says_the_group() {
        assert_eq!(group_of("42 (a) b) S 7 40 39 0 -1 4194304 1 2 3"), Some(40));
        assert_eq!(group_of("42 (a) S"), None);
        assert_eq!(group_of(""), None);
    }

    #[test]
    fn marks_differ() {
        assert_ne!(Mark::new().variable, Mark::new().variable);
    }
}
