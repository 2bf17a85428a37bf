//! Looks for processes in `/proc`: those of a group, and those with a mark in their environment. Linux only.

use std::fs;
use std::io;
use std::path::PathBuf;

use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

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

/// Returns the processes of a group that haven't ended. Blocks.
pub(super) fn of_group(leader: Pid) -> Vec<OwnedFd> {
    let in_group = |pid: Pid| {
        fs::read_to_string(in_proc(pid, "stat"))
            .is_ok_and(|stat| runs_in_group(&stat, leader.as_raw_pid()))
    };
    processes().filter_map(|pid| open_if(pid, in_group)).collect()
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

/// Returns whether a line of `/proc/PID/stat` is that of a process of this group which hasn't ended.
fn runs_in_group(stat: &str, group: i32) -> bool {
    // The name before it may contain blanks and brackets.
    let Some((_, rest)) = stat.rsplit_once(") ") else { return false };
    let mut fields = rest.split(' ');
    let state = fields.next();
    let in_group = fields.nth(1).and_then(|it| it.parse().ok()) == Some(group);
    in_group && !matches!(state, Some("Z" | "X"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_stat_says_the_group_and_whether_the_process_has_ended() {
        let stat = |state| format!("42 (a) b) {state} 7 40 39 0 -1 4194304 1 2 3");
        assert!(runs_in_group(&stat("S"), 40));
        assert!(runs_in_group(&stat("R"), 40));
        assert!(!runs_in_group(&stat("Z"), 40));
        assert!(!runs_in_group(&stat("S"), 7));
        assert!(!runs_in_group(&stat("S"), 39));
        assert!(!runs_in_group("", 40));
    }

    #[test]
    fn marks_differ() {
        assert_ne!(Mark::new().variable, Mark::new().variable);
    }
}
