//! What must be true when nothing more happens by itself: whoever should be up is up.
//!
//! Knows why a child may be down, and no way how it came to be so.

use super::super::state::{Down, State};
use super::{Broken, Machine, Witness, ensure};
use crate::lifecycle::Lifecycle;
use crate::policy::Strategy;

impl Witness {
    /// Checks a machine that does not end, has no deadline, and whose children do as they are told.
    pub(in super::super) fn check_rest(&self, machine: &Machine) -> Result<(), Broken> {
        let children = machine.children();
        ensure(self.up, "it comes up")?;
        for &(key, _) in self.waiting.values() {
            let gated = matches!(children.state(key), Some(State::Gated(_)));
            ensure(gated, format!("somebody waits for {} without end", self.name(key)))?;
        }
        for (key, child) in self.present() {
            let state = children.state(key).expect("a child that is there");
            let right = match state {
                State::Active => true,
                State::Gated(_) => children.requirements.lacks(key).is_some(),
                State::Down(Down::New | Down::ByGroup) => false,
                State::Down(Down::Dormant | Down::Finished | Down::Left) if self.calls(key) => {
                    false
                }
                State::Down(Down::Dormant) => child.nature.options.on_message,
                // Parked, or the wait of its group was ended by hand.
                State::Down(Down::Rested) => children.rules.strategy != Strategy::OneForOne,
                State::Down(_) => child.lifecycle != Lifecycle::Active,
                State::Activating
                | State::Backoff
                | State::Awaiting
                | State::Asking { .. }
                | State::Stopping { .. } => false,
            };
            ensure(right, format!("{} is left in {state:?}", self.name(key)))?;
        }
        // All are found, in order.
        let found = std::iter::successors(machine.next(0), |&(_, place)| machine.next(place));
        ensure(found.count() == self.present().count(), "all are found")
    }
}
