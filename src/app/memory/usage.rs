//! How much memory is used, of which limit: given by the user, or read from the files of the Linux kernel.

use std::path::{Component, Path, PathBuf};
use std::{fmt, fs, io};

/// How much memory is used, and the limit that applies.
///
/// `Display` writes the percentage, rounded down, the limit, and where it was found:
/// `92 % of 512 MiB (cgroup v2)`.
///
/// The example of [`MemorySource`](crate::app::memory::MemorySource) makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUsage {
    /// The bytes that are used.
    pub used: u64,
    /// The bytes that may be used. Zero means that there is no limit.
    pub limit: u64,
    /// Where the limit was found.
    pub found: MemoryLimit,
}

/// Where a memory limit was found.
///
/// ```
/// use verger::app::memory::{MemoryLimit, MemoryUsage};
///
/// let usage = MemoryUsage::new(300 << 20, 512 << 20);
/// assert_eq!(usage.found, MemoryLimit::Custom);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemoryLimit {
    /// `memory.max` of a cgroup v2.
    CgroupV2,
    /// `memory.limit_in_bytes` of a cgroup v1.
    CgroupV1,
    /// The memory of the machine.
    Machine,
    /// A [`MemorySource`](super::MemorySource) of the program's own.
    Custom,
}

impl MemoryUsage {
    /// Returns a usage for a [`MemorySource`](super::MemorySource) of the program's own.
    #[must_use]
    pub const fn new(used: u64, limit: u64) -> Self {
        Self { used, limit, found: MemoryLimit::Custom }
    }

    /// Returns the part of the limit that is used, such as 0.92, or zero if there is no limit.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "sizes of memory are below 2^53 bytes")]
    pub fn ratio(&self) -> f64 {
        if self.limit == 0 { 0.0 } else { self.used as f64 / self.limit as f64 }
    }
}

impl fmt::Display for MemoryUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = u128::from(self.used) * 100 / u128::from(self.limit.max(1));
        write!(f, "{percent} % of {}", Bytes(self.limit))?;
        match self.found {
            MemoryLimit::Custom => Ok(()),
            found => write!(f, " ({found})"),
        }
    }
}

impl fmt::Display for MemoryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::CgroupV2 => "cgroup v2",
            Self::CgroupV1 => "cgroup v1",
            Self::Machine => "machine",
            Self::Custom => "custom",
        })
    }
}

/// A size in the largest unit of which it is at least one, with one decimal where that isn't zero.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let Some(power) = self.0.checked_ilog(1024).filter(|power| *power > 0) else {
            return write!(f, "{} B", self.0);
        };
        let (unit, name) = (1_u128 << (10 * power), UNITS[power as usize - 1]);
        let tenths = u128::from(self.0) * 10 / unit;
        match tenths % 10 {
            0 => write!(f, "{} {name}", tenths / 10),
            tenth => write!(f, "{}.{tenth} {name}", tenths / 10),
        }
    }
}

/// Where a [`MemoryGuard`](super::MemoryGuard) gets the memory usage from.
///
/// Implement it where the limit isn't a cgroup's or the machine's: for an allocator that counts, for another
/// operating system, or for a test. Closures implement it.
///
/// ```
/// use std::io;
///
/// use verger::app::memory::{MemoryGuard, MemorySource, MemoryUsage};
///
/// /// A budget for the cache.
/// struct CacheBudget;
///
/// impl MemorySource for CacheBudget {
///     fn usage(&self) -> io::Result<MemoryUsage> {
///         Ok(MemoryUsage::new(300 << 20, 512 << 20))
///     }
/// }
///
/// let guard = MemoryGuard::new().source(CacheBudget).restart("cache");
/// # guard.check().unwrap();
/// ```
pub trait MemorySource: Send + Sync {
    /// Returns the current usage. Called in a task, so it must not block for long.
    ///
    /// # Errors
    ///
    /// The first error is logged. The guard calls the source again after its period.
    fn usage(&self) -> io::Result<MemoryUsage>;
}

impl<F: Fn() -> io::Result<MemoryUsage> + Send + Sync> MemorySource for F {
    fn usage(&self) -> io::Result<MemoryUsage> {
        self()
    }
}

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
    /// The fields of `memory.stat` with memory that the kernel takes back before it kills a process: page cache, and
    /// kernel objects such as cached directory entries. They also count the groups below, as `used` does.
    reclaimable: &'static [&'static str],
}

const V2: Controller = Controller {
    found: MemoryLimit::CgroupV2,
    limit: "memory.max",
    used: "memory.current",
    reclaimable: &["inactive_file", "active_file", "slab_reclaimable"],
};
const V1: Controller = Controller {
    found: MemoryLimit::CgroupV1,
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    // Its file doesn't say how much of the kernel's memory is reclaimable.
    reclaimable: &["total_inactive_file", "total_active_file"],
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
        let stat = read(&file)?.unwrap_or_default();
        let mut reclaimable: u64 = 0;
        for bytes in self.reclaimable.iter().filter_map(|name| field(&stat, name)) {
            reclaimable = reclaimable.saturating_add(number(&file, bytes)?);
        }
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
