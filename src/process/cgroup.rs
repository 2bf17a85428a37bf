//! A cgroup for each incarnation, which contains all of its processes. Linux only, cgroup v2.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::Pid;
use tokio::io::Interest;

use super::ended::register;
use super::error::CommandError;
use super::members;

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
        members::listed(&numbers.unwrap_or_default())
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
}
