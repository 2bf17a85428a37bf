//! How much memory is used, of which limit.

use std::fmt;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usage_is_shown_with_its_percentage_and_its_limit() {
        const MIB: u64 = 1 << 20;
        let found = MemoryLimit::CgroupV2;
        for (used, limit, text) in [
            (471 * MIB, 512 * MIB, "91 % of 512 MiB (cgroup v2)"),
            (512 * MIB, 512 * MIB, "100 % of 512 MiB (cgroup v2)"),
            (0, 1536 * MIB, "0 % of 1.5 GiB (cgroup v2)"),
            (899, 1000, "89 % of 1000 B (cgroup v2)"),
            (1, 1024, "0 % of 1 KiB (cgroup v2)"),
            (u64::MAX, u64::MAX, "100 % of 15.9 EiB (cgroup v2)"),
            (1, 0, "100 % of 0 B (cgroup v2)"),
        ] {
            assert_eq!(MemoryUsage { used, limit, found }.to_string(), text);
        }
        assert_eq!(MemoryUsage::new(1, 2).to_string(), "50 % of 2 B");
        assert_eq!(MemoryUsage::new(1, 0).ratio(), 0.0, "no limit is never reached");
    }
}
