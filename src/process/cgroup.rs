//! The processes that belong to a child besides the leader of its group: the members of a cgroup v2, and processes that
//! `/proc` shows to be in the group or to have the child's mark. Linux only.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, io, process};

use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
};
use tokio::io::Interest;

use super::error::CommandError;
use super::group::register;

/// Returns the directory of the cgroup v2 in which this program runs, for
/// [`CommandSpec::cgroup`](super::CommandSpec::cgroup).
///
/// systemd lets a service create cgroups there if its unit has `Delegate=yes`. It also needs
/// `DelegateSubgroup=main`, or an equivalent, if controllers such as `memory` are enabled below.
///
/// ```
/// use std::process::Command;
///
/// use verger::command;
/// use verger::process::own_cgroup;
///
/// # fn f() -> std::io::Result<()> {
/// let import = command("import", || Command::new("import")).cgroup(own_cgroup()?.join("children"));
/// # drop(import);
/// # Ok(())
/// # }
/// # drop(f);
/// ```
///
/// # Errors
///
/// If no cgroup v2 is mounted, or `/proc` can't be read.
pub fn own_cgroup() -> io::Result<PathBuf> {
    let (groups, mounts) =
        (fs::read_to_string("/proc/self/cgroup")?, fs::read_to_string("/proc/self/mountinfo")?);
    place_of(&groups, &mounts).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::NotFound,
            "no cgroup v2 is mounted that contains this program",
        )
    })
}

/// Returns the directory of a cgroup, from `/proc/self/cgroup` and `/proc/self/mountinfo`.
fn place_of(groups: &str, mounts: &str) -> Option<PathBuf> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let (root, mounted_at) = mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let fields: Vec<_> = before.split(' ').collect();
        (after.starts_with("cgroup2 ")).then_some((*fields.get(3)?, *fields.get(4)?))
    })?;
    let below = Path::new(path).strip_prefix(root).ok()?;
    Some(Path::new(mounted_at).join(below))
}

/// A cgroup of one incarnation. It has to be [removed](Self::remove).
#[derive(Debug)]
pub(super) struct Cgroup {
    path: PathBuf,
}

impl Cgroup {
    /// Creates a cgroup in the directory of a cgroup.
    pub(super) fn create(parent: &Path) -> Result<Self, CommandError> {
        static SERIAL: AtomicU64 = AtomicU64::new(1);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("verger-{}-{serial}", process::id()));
        let failed = |source| CommandError::Cgroup { path: path.clone(), source };
        fs::create_dir(&path).map_err(failed)?;
        let cgroup = Self { path: path.clone() };
        if !path.join("cgroup.kill").exists() {
            cgroup.remove();
            let needs = "it has no `cgroup.kill`: it has to be a cgroup v2 below the root, on Linux 5.14 or newer";
            return Err(failed(io::Error::new(io::ErrorKind::Unsupported, needs)));
        }
        Ok(cgroup)
    }

    /// Moves a process into it. Processes that it has started before stay where they are.
    pub(super) fn adopt(&self, process: Pid) -> Result<(), CommandError> {
        let path = self.path.join("cgroup.procs");
        let number = process.as_raw_pid().to_string();
        match fs::write(&path, number) {
            // It has ended already.
            Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => Ok(()),
            adopted => adopted.map_err(|source| CommandError::Cgroup { path, source }),
        }
    }

    /// Returns the processes in it, but not those in cgroups below.
    pub(super) fn processes(&self) -> Vec<OwnedFd> {
        let numbers = fs::read_to_string(self.path.join("cgroup.procs"));
        listed(&numbers.unwrap_or_default())
    }

    /// Kills all processes in it, and in cgroups below it.
    pub(super) fn kill(&self) -> io::Result<()> {
        fs::write(self.path.join("cgroup.kill"), "1")
    }

    /// Waits until no process is left in it.
    pub(super) async fn emptied(&self) -> io::Result<()> {
        let path = self.path.join("cgroup.events");
        // The kernel reports a change of the file as a condition of priority, once it was read as it is now.
        let events = register(fs::File::open(&path)?, Interest::PRIORITY)?;
        let mut text = [0; 256];
        loop {
            let length = events.get_ref().read_at(&mut text, 0)?;
            if !text[..length].starts_with(b"populated 1") {
                return Ok(());
            }
            events.ready(Interest::PRIORITY).await?.clear_ready();
        }
    }

    /// Removes it, with the cgroups below that its processes have made.
    pub(super) fn remove(&self) {
        remove_below(&self.path);
    }
}

fn remove_below(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|it| it.is_dir()) {
            remove_below(&entry.path());
        }
    }
    // One that isn't empty stays. It has no effect.
    let _ = fs::remove_dir(path);
}

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
    those_of(leader, |_| true)
}

/// Returns the processes of a group that run. Blocks.
pub(super) fn running_of_group(leader: Pid) -> Vec<OwnedFd> {
    those_of(leader, |state| !matches!(state, "Z" | "X"))
}

fn those_of(leader: Pid, is_in: impl Fn(&str) -> bool) -> Vec<OwnedFd> {
    let in_group = |pid: Pid| {
        let stat = fs::read_to_string(in_proc(pid, "stat")).unwrap_or_default();
        state_and_group(&stat)
            .is_some_and(|(state, group)| group == leader.as_raw_pid() && is_in(state))
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

/// Returns the state and the group of a process, from its `/proc/PID/stat`.
fn state_and_group(stat: &str) -> Option<(&str, i32)> {
    // The name before it may contain blanks and brackets. Then come the state, the parent and the group.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    Some((fields.next()?, fields.nth(1)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_cgroup_is_below_its_mount() {
        let hybrid = "35 24 0:30 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw\n\
                      36 24 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory";
        let groups = "5:memory:/a\n0::/system.slice/app.service\n";
        let place = place_of(groups, hybrid);
        assert_eq!(place, Some("/sys/fs/cgroup/unified/system.slice/app.service".into()));

        let contained = "35 24 0:30 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
        assert_eq!(place_of("0::/docker/1/a", contained), Some("/sys/fs/cgroup/a".into()));
        assert_eq!(place_of("0::/elsewhere", contained), None);
        assert_eq!(place_of("5:memory:/a", hybrid), None);
        assert_eq!(place_of(groups, ""), None);
    }

    #[test]
    fn a_line_of_stat_says_the_group() {
        assert_eq!(state_and_group("42 (a) b) S 7 40 39 0 -1 4194304 1 2 3"), Some(("S", 40)));
        assert_eq!(state_and_group("42 (a) S"), None);
        assert_eq!(state_and_group(""), None);
    }

    #[test]
    fn marks_differ() {
        assert_ne!(Mark::new().variable, Mark::new().variable);
    }
}
