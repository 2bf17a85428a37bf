//! Samples the resident memory while the tree is at rest, and checks whether it grows.

/// The unit of statm, in KiB. With larger pages, all samples are too small by the same factor.
const PAGE: u64 = 4;
/// With fewer samples there is no verdict, because allocators take time to settle.
const FEWEST: usize = 6;
/// How much the memory may grow after the warm-up, in KiB, in addition to a tenth.
const ALLOWANCE: u64 = 16 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Memory {
    samples: Vec<u64>,
}

/// The verdict, in KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Growth {
    /// The maximum of the warm-up, the first third.
    pub(crate) warm: u64,
    /// The median of the last third.
    pub(crate) end: u64,
    /// The limit for the median of the last third.
    pub(crate) limit: u64,
}

impl Memory {
    /// Takes a sample, if the system supports it.
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

/// Returns the resident memory of the process, in KiB.
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
    fn a_few_samples_give_no_verdict() {
        assert_eq!(growth(&[1, 2, 3, 4, 5]), None);
    }

    #[test]
    fn the_end_is_compared_with_the_maximum_of_the_warm_up() {
        let growth = growth(&[50, 100, 90, 80, 500, 70, 200, 300, 100]).unwrap();

        assert_eq!((growth.warm, growth.end), (100, 200));
        assert_eq!(growth.limit, 110 + ALLOWANCE);
    }
}
