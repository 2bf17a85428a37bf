//! What the process keeps in memory, sampled when all is quiet, and whether that grows.

/// What statm counts in, in KiB. Where pages are larger, all samples are too small alike.
const PAGE: u64 = 4;
/// Fewer samples say nothing: allocators take their time to settle.
const FEWEST: usize = 6;
/// What an allocator may come to need after the warm-up, in KiB, besides a tenth.
const ALLOWANCE: u64 = 16 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Memory {
    samples: Vec<u64>,
}

/// What there is to say at the end, in KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Growth {
    /// The most during the warm-up, the first third.
    pub(crate) warm: u64,
    /// The median of the last third.
    pub(crate) end: u64,
    /// The most that the end may be.
    pub(crate) limit: u64,
}

impl Memory {
    /// Takes a sample, where the system tells.
    pub(crate) fn sample(&mut self) {
        self.samples.extend(resident());
    }

    pub(crate) fn samples(&self) -> &[u64] {
        &self.samples
    }

    /// `None` if there are too few samples.
    pub(crate) fn growth(&self) -> Option<Growth> {
        let third = self.samples.len() / 3;
        if self.samples.len() < FEWEST {
            return None;
        }
        let (warm, rest) = self.samples.split_at(third);
        let warm = warm.iter().copied().max()?;
        let mut last = rest[rest.len() - third..].to_vec();
        last.sort_unstable();
        let end = last[third / 2];
        Some(Growth { warm, end, limit: warm + warm / 10 + ALLOWANCE })
    }
}

/// Memory of the process that is resident, in KiB.
pub(crate) fn resident() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn growth(samples: &[u64]) -> Option<Growth> {
        Memory { samples: samples.to_vec() }.growth()
    }

    #[test]
    fn a_few_samples_say_nothing() {
        assert_eq!(growth(&[1, 2, 3, 4, 5]), None);
    }

    #[test]
    fn the_end_is_compared_with_the_most_of_the_warm_up() {
        let growth = growth(&[50, 100, 90, 80, 500, 70, 200, 300, 100]).unwrap();

        assert_eq!((growth.warm, growth.end), (100, 200));
        assert_eq!(growth.limit, 110 + ALLOWANCE);
    }
}
