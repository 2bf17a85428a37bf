//! The memory limits of Linux, read from the files of the kernel.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::source::MemorySource;
use super::usage::{MemoryLimit, MemoryUsage};

/// Where the controller of cgroup v2 is mounted: alone, or beside those of v1.
const V2_MOUNTS: [&str; 2] = ["sys/fs/cgroup", "sys/fs/cgroup/unified"];
const V1_MOUNT: &str = "sys/fs/cgroup/memory";
/// More than any machine has. cgroup v1 writes a number above this one for "no limit".
const NO_LIMIT: u64 = 1 << 62;
const CGROUP: &str = "proc/self/cgroup";
const MEMINFO: &str = "proc/meminfo";

/// The source of a guard without a source of its own.
#[derive(Clone, Debug)]
pub(super) struct KernelFiles {
    /// What the paths above are relative to.
    pub(super) root: PathBuf,
}

/// The names of the files of a controller.
struct Controller {
    found: MemoryLimit,
    limit: &'static str,
    used: &'static str,
    /// The field of `memory.stat` that also counts the groups below, as `used` does.
    reclaimable: &'static str,
}

const V2: Controller = Controller {
    found: MemoryLimit::CgroupV2,
    limit: "memory.max",
    used: "memory.current",
    reclaimable: "inactive_file",
};
const V1: Controller = Controller {
    found: MemoryLimit::CgroupV1,
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    reclaimable: "total_inactive_file",
};

/// A file of the kernel's that doesn't contain what it should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum FileProblem {
    #[error("`{}` has no field `{field}`; set a `source`", .file.display())]
    MissingField { file: PathBuf, field: &'static str },
    #[error("`{}` has {text:?} where a number of bytes belongs; set a `source`", .file.display())]
    NoNumber { file: PathBuf, text: String },
}

impl From<FileProblem> for io::Error {
    fn from(problem: FileProblem) -> Self {
        Self::new(io::ErrorKind::InvalidData, problem)
    }
}

impl MemorySource for KernelFiles {
    fn usage(&self) -> io::Result<MemoryUsage> {
        let machine = self.machine();
        // Without `/proc/meminfo`, a limit of a group still counts.
        let total = machine.as_ref().map_or(NO_LIMIT, |machine| machine.limit);
        if let Some(groups) = read(&self.root.join(CGROUP))? {
            let groups = Groups::parse(&groups);
            let v2 = groups.v2.map(|group| V2_MOUNTS.map(|mount| (&V2, mount, group)));
            let v1 = groups.v1.map(|group| (&V1, V1_MOUNT, group));
            for (controller, mount, group) in v2.into_iter().flatten().chain(v1) {
                if let Some(usage) = self.fullest(controller, mount, group, total)? {
                    return Ok(usage);
                }
            }
        }
        machine
    }
}

impl KernelFiles {
    /// Returns the fullest of a group and the groups above it, of those with a limit below `total`.
    ///
    /// Inside of a container, the group may have its path on the host, which doesn't exist here. The
    /// mount then shows the container's own group at its root.
    fn fullest(
        &self,
        controller: &Controller,
        mount: &str,
        group: &Path,
        total: u64,
    ) -> io::Result<Option<MemoryUsage>> {
        let mount = self.root.join(mount);
        let below = |component| matches!(component, Component::Normal(_) | Component::RootDir);
        // Outside of the namespace of the process: only the mount itself is known.
        let group = if group.components().all(below) { group } else { Path::new("/") };
        let mut fullest = None::<MemoryUsage>;
        for group in group.ancestors() {
            let directory = mount.join(group.strip_prefix("/").unwrap_or(group));
            let Some(usage) = controller.usage(&directory, total)? else { continue };
            if fullest.is_none_or(|fullest| usage.ratio() > fullest.ratio()) {
                fullest = Some(usage);
            }
        }
        Ok(fullest)
    }

    fn machine(&self) -> io::Result<MemoryUsage> {
        let file = self.root.join(MEMINFO);
        let text = fs::read_to_string(&file).map_err(|error| in_file(&file, &error))?;
        let bytes = |name: &'static str| {
            let Some(value) = field(&text, &format!("{name}:")) else {
                return Err(FileProblem::MissingField { file: file.clone(), field: name }.into());
            };
            let kibibytes = number(&file, value.strip_suffix("kB").unwrap_or(value))?;
            Ok::<_, io::Error>(kibibytes.saturating_mul(1024))
        };
        let (total, available) = (bytes("MemTotal")?, bytes("MemAvailable")?);
        let used = total.saturating_sub(available);
        Ok(MemoryUsage { used, limit: total, found: MemoryLimit::Machine })
    }
}

impl Controller {
    /// Returns the usage of the group with this directory, or `None` if it has no limit below `total`.
    fn usage(&self, directory: &Path, total: u64) -> io::Result<Option<MemoryUsage>> {
        let file = directory.join(self.limit);
        let limit = match read(&file)?.as_deref().map(str::trim) {
            None | Some("max" | "0") => return Ok(None),
            Some(limit) => number(&file, limit)?,
        };
        let file = directory.join(self.used);
        let Some(used) = read(&file)?.filter(|_| limit <= total) else { return Ok(None) };
        let used = number(&file, &used)?;
        let file = directory.join("memory.stat");
        let reclaimable =
            match read(&file)?.as_deref().and_then(|stat| field(stat, self.reclaimable)) {
                Some(bytes) => number(&file, bytes)?,
                None => 0,
            };
        // The kernel drops page cache that is not in use before it kills a process.
        let used = used.saturating_sub(reclaimable);
        Ok(Some(MemoryUsage { used, limit, found: self.found }))
    }
}

/// The groups of the process in `/proc/self/cgroup`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Groups<'a> {
    v2: Option<&'a Path>,
    v1: Option<&'a Path>,
}

impl<'a> Groups<'a> {
    /// Each line is the number of a hierarchy, its controllers, and the path of the group.
    fn parse(text: &'a str) -> Self {
        let mut groups = Self::default();
        for line in text.lines() {
            let mut parts = line.splitn(3, ':');
            let (Some(hierarchy), Some(controllers), Some(group)) =
                (parts.next(), parts.next(), parts.next())
            else {
                continue;
            };
            if (hierarchy, controllers) == ("0", "") {
                groups.v2 = Some(Path::new(group));
            } else if controllers.split(',').any(|controller| controller == "memory") {
                groups.v1 = Some(Path::new(group));
            }
        }
        groups
    }
}

/// Returns the value of a field: the rest of the line that begins with its name.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let value = line.trim_start().strip_prefix(name)?;
        value.starts_with(char::is_whitespace).then(|| value.trim())
    })
}

fn number(file: &Path, text: &str) -> io::Result<u64> {
    let text = text.trim();
    text.parse()
        .map_err(|_| FileProblem::NoNumber { file: file.to_owned(), text: text.to_owned() }.into())
}

/// Reads a file, which may not exist.
fn read(file: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            Ok(None)
        }
        Err(error) => Err(in_file(file, &error)),
    }
}

fn in_file(file: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("can't read `{}`: {error}", file.display()))
}

#[cfg(test)]
mod tests;
