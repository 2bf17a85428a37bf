//! The lifecycle of a child: its states, and the edges between them.
//!
//! This module says which edges exist. When a child takes an edge is decided in `core`, and only there.
//!
//! # Invariants
//!
//! 1. No state becomes itself.
//! 2. A child enters [`Active`](Lifecycle::Active) only from [`Activating`](Lifecycle::Activating),
//!    and that only from [`Resolved`](Lifecycle::Resolved).
//! 3. Every state can be reached from every state.

use std::fmt;

/// The state of a child.
///
/// ```text
/// discovered   → resolved, stopped
/// resolved     → activating, discovered, stopped
/// activating   → active, errored, deactivating, stopped
/// active       → errored, deactivating
/// deactivating → stopped
/// errored      → restarting, resolved, stopped
/// restarting   → resolved, stopped
/// stopped      → restarting, resolved
/// ```
///
/// Serialised as these words, with the feature `serde`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lifecycle {
    /// Declared. A requirement is not met.
    Discovered,
    /// Its spec is valid and its requirements are met; it is about to start.
    Resolved,
    /// Started, but not ready.
    Activating,
    /// Started and ready.
    Active,
    /// Failed. The decision is pending, or the child is parked until a caller retries it.
    Errored,
    /// Waiting for its backoff to pass.
    Restarting,
    /// Cancelled, or ended cleanly, and not down yet.
    Deactivating,
    /// Down. It does not start again by itself.
    Stopped,
}

impl Lifecycle {
    /// All states, in the order of their declaration.
    pub const ALL: [Self; 8] = [
        Self::Discovered,
        Self::Resolved,
        Self::Activating,
        Self::Active,
        Self::Errored,
        Self::Restarting,
        Self::Deactivating,
        Self::Stopped,
    ];

    /// Returns whether there is an edge from this state to `to`.
    ///
    /// No child takes any other step. Subscribers to events may rely on this.
    #[must_use]
    pub const fn can_become(self, to: Self) -> bool {
        match self {
            Self::Discovered => matches!(to, Self::Resolved | Self::Stopped),
            Self::Resolved => matches!(to, Self::Activating | Self::Discovered | Self::Stopped),
            Self::Activating => {
                matches!(to, Self::Active | Self::Errored | Self::Deactivating | Self::Stopped)
            }
            Self::Active => matches!(to, Self::Errored | Self::Deactivating),
            Self::Errored => matches!(to, Self::Restarting | Self::Resolved | Self::Stopped),
            Self::Restarting => matches!(to, Self::Resolved | Self::Stopped),
            Self::Deactivating => matches!(to, Self::Stopped),
            Self::Stopped => matches!(to, Self::Restarting | Self::Resolved),
        }
    }
}

impl Lifecycle {
    /// Returns the state in lower case.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Discovered => "discovered",
            Self::Resolved => "resolved",
            Self::Activating => "activating",
            Self::Active => "active",
            Self::Errored => "errored",
            Self::Restarting => "restarting",
            Self::Deactivating => "deactivating",
            Self::Stopped => "stopped",
        }
    }
}

impl fmt::Display for Lifecycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::Lifecycle::*;
    use super::*;

    #[test]
    fn exactly_these_edges_exist() {
        // A row for each state that is left, a column for each state that is entered.
        #[rustfmt::skip]
        let table = [
            //              Disc. Res.  Ac-g  Act.  Err.  Rest. Deac. Stop.
            (Discovered,   [false, true,  false, false, false, false, false, true ]),
            (Resolved,     [true,  false, true,  false, false, false, false, true ]),
            (Activating,   [false, false, false, true,  true,  false, true,  true ]),
            (Active,       [false, false, false, false, true,  false, true,  false]),
            (Errored,      [false, true,  false, false, false, true,  false, true ]),
            (Restarting,   [false, true,  false, false, false, false, false, true ]),
            (Deactivating, [false, false, false, false, false, false, false, true ]),
            (Stopped,      [false, true,  false, false, false, true,  false, false]),
        ];
        let columns =
            [Discovered, Resolved, Activating, Active, Errored, Restarting, Deactivating, Stopped];

        assert_eq!(table.map(|(from, _)| from), columns, "every state has a row");
        for (from, row) in table {
            for (to, exists) in columns.into_iter().zip(row) {
                assert_eq!(from.can_become(to), exists, "{from} → {to}");
            }
        }
    }

    #[test]
    fn only_a_resolved_child_is_activated_and_only_an_activated_one_is_active() {
        let sources = |to| Lifecycle::ALL.into_iter().filter(move |from| from.can_become(to));

        assert_eq!(sources(Activating).collect::<Vec<_>>(), [Resolved]);
        assert_eq!(sources(Active).collect::<Vec<_>>(), [Activating]);
    }

    #[test]
    fn every_state_is_reachable_from_every_state() {
        for from in Lifecycle::ALL {
            let mut reached = vec![from];
            let mut next = 0;
            while let Some(&state) = reached.get(next) {
                for to in Lifecycle::ALL {
                    if state.can_become(to) && !reached.contains(&to) {
                        reached.push(to);
                    }
                }
                next += 1;
            }
            assert_eq!(reached.len(), Lifecycle::ALL.len(), "{from} leads to {reached:?}");
        }
    }

    #[test]
    fn all_lists_each_state_once_in_declaration_order() {
        assert_eq!(Lifecycle::ALL.map(|state| state as usize), [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn a_state_is_displayed_as_a_word() {
        let words = [
            "discovered",
            "resolved",
            "activating",
            "active",
            "errored",
            "restarting",
            "deactivating",
            "stopped",
        ];
        for (state, word) in Lifecycle::ALL.into_iter().zip(words) {
            assert_eq!(state.to_string(), word);
        }
    }

    #[test]
    fn a_state_pads_to_the_width_of_a_table() {
        assert_eq!(format!("[{Active:<12}]"), "[active      ]");
    }
}
