//! The schedule of failures, as a function of a seed and of the lines stored.
//!
//! Each [`Site`] has an endless list of [`Strike`]s that only depends on the seed. The first ones
//! are spread over the first 1,000 lines, one of each kind of the site, in an order drawn from the
//! seed. After that, every gap is at least a third longer than the one before it.
//!
//! The schedule has no clock and counts nothing: the caller compares `after` with the number of
//! stored lines.

/// A place in the service where failures are injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Site {
    /// The child that owns SQLite, between a commit and its receipt.
    Database,
    /// The writer, between a commit and its receipts.
    Writer,
    /// The file's reader, after a receipt.
    File,
    /// A connection, between a commit and its `ok`.
    Connection,
    /// The supervisor of all connections.
    Connections,
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Panic,
    Error,
    /// The child never returns, and ignores its cancellation.
    Hang,
    /// The child is aborted from outside.
    Abort,
}

/// One failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strike {
    /// The number of stored lines at which the failure is due: lines of the file for the file's
    /// reader, of the connections for connections and their supervisor, all lines for storage.
    pub(crate) after: u64,
    pub(crate) kind: Kind,
}

/// The number of lines within which every kind of a site happens once.
const FIRST: u64 = 1_000;

impl Site {
    pub(crate) const ALL: [Self; 5] =
        [Self::Database, Self::Writer, Self::File, Self::Connection, Self::Connections];

    /// Returns the kinds of failures at this site.
    ///
    /// Only the database hangs, because only it has a health check that detects it.
    pub(crate) fn kinds(self) -> &'static [Kind] {
        match self {
            Self::Database => &[Kind::Hang, Kind::Abort],
            Self::Writer | Self::File | Self::Connection => {
                &[Kind::Panic, Kind::Error, Kind::Abort]
            }
            Self::Connections => &[Kind::Abort],
        }
    }
}

/// The failures at one site, in order.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    rng: fastrand::Rng,
    site: Site,
    /// The kinds that are left of the current round.
    round: Vec<Kind>,
    /// How many failures were drawn so far.
    count: u32,
    /// When the last failure was due.
    last: u64,
}

impl Schedule {
    pub(crate) fn new(seed: u64, site: Site) -> Self {
        // Each site has a random stream of its own, so that the lists are independent.
        let stream = seed ^ (site as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let rng = fastrand::Rng::with_seed(stream);
        Self { rng, site, round: Vec::new(), count: 0, last: 0 }
    }

    fn kind(&mut self) -> Kind {
        if self.round.is_empty() {
            self.round = self.site.kinds().to_vec();
            self.rng.shuffle(&mut self.round);
        }
        self.round.pop().expect("every site has kinds")
    }

    fn after(&mut self) -> u64 {
        let kinds = self.site.kinds().len() as u64;
        let index = u64::from(self.count);
        if index < kinds {
            // A random place in this failure's share of the first lines.
            let share = FIRST / kinds;
            return index * share + self.rng.u64(1..=share);
        }
        // 1,000 to 1,500 lines, then twice that, four times that, …
        let doubled = u32::try_from(index - kinds).unwrap_or(u32::MAX).min(40);
        self.last.saturating_add(self.rng.u64(FIRST..=FIRST * 3 / 2) << doubled)
    }
}

impl Iterator for Schedule {
    type Item = Strike;

    fn next(&mut self) -> Option<Strike> {
        let strike = Strike { after: self.after(), kind: self.kind() };
        self.count = self.count.saturating_add(1);
        self.last = strike.after;
        Some(strike)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn strikes(seed: u64, site: Site, count: usize) -> Vec<Strike> {
        Schedule::new(seed, site).take(count).collect()
    }

    #[test]
    fn the_seed_determines_the_failures() {
        for site in Site::ALL {
            assert_eq!(strikes(7, site, 20), strikes(7, site, 20));
            assert_ne!(strikes(7, site, 20), strikes(8, site, 20));
        }
    }

    #[test]
    fn a_schedule_is_the_same_on_every_machine() {
        let strike = |after, kind| Strike { after, kind };
        let table = [
            (
                Site::Database,
                [
                    strike(294, Kind::Hang),
                    strike(982, Kind::Abort),
                    strike(1_986, Kind::Hang),
                    strike(4_246, Kind::Abort),
                ],
            ),
            (
                Site::Writer,
                [
                    strike(294, Kind::Error),
                    strike(466, Kind::Abort),
                    strike(948, Kind::Panic),
                    strike(2_089, Kind::Abort),
                ],
            ),
        ];
        for (site, expected) in table {
            assert_eq!(strikes(1, site, expected.len()), expected, "{site:?}");
        }
    }

    #[test]
    fn each_kind_of_a_site_happens_within_the_first_thousand_lines() {
        for seed in 0..1_000 {
            for site in Site::ALL {
                let first = Schedule::new(seed, site).take_while(|strike| strike.after <= FIRST);
                let kinds: HashSet<Kind> = first.map(|strike| strike.kind).collect();
                assert_eq!(kinds, site.kinds().iter().copied().collect(), "{seed} {site:?}");
            }
        }
    }

    #[test]
    fn storage_has_every_kind_of_failure_for_any_source() {
        let kinds = [Site::Database, Site::Writer].map(Site::kinds).concat();
        for kind in [Kind::Panic, Kind::Error, Kind::Hang, Kind::Abort] {
            assert!(kinds.contains(&kind), "{kind:?}");
        }
    }

    #[test]
    fn failures_become_rarer() {
        for seed in 0..1_000 {
            for site in Site::ALL {
                let after: Vec<u64> =
                    strikes(seed, site, 20).iter().map(|strike| strike.after).collect();
                let later = &after[site.kinds().len() - 1..];
                let gaps: Vec<u64> = later.windows(2).map(|pair| pair[1] - pair[0]).collect();
                assert!(after.is_sorted_by(|a, b| a < b), "{seed} {site:?}: {after:?}");
                assert!(gaps.windows(2).all(|g| 3 * g[1] >= 4 * g[0]), "{seed} {site:?}: {gaps:?}");
            }
        }
    }

    #[test]
    fn a_schedule_never_ends_nor_overflows() {
        assert_eq!(Schedule::new(3, Site::Writer).take(100).count(), 100);
    }
}
