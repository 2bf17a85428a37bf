//! What is said of a child's health, and that nothing else comes of it than what was asked for.
//!
//! # Invariants
//!
//! 1. It is told of whoever is active, once, and of nobody else.
//! 2. Who is unhealthy fails if his spec says so and nothing ends, and only then; nobody fails so of
//!    whom it was not said.

use super::super::{IncarnationNumber, Key, MachineEvent};
use super::{Broken, Witness, ensure};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;

impl Witness {
    /// Notes who is said to be well or not.
    pub(super) fn check_up(&mut self, event: &MachineEvent) {
        self.checked = None;
        let MachineEvent::Health { key, incarnation, problem } = event else { return };
        let child = &self.children[key];
        let runs = child.live && child.incarnation == *incarnation;
        if runs && child.lifecycle == Lifecycle::Active {
            let fails = child.nature.options.fails_unhealthy && problem.is_some() && !self.ending;
            self.checked = Some((*key, fails));
        }
    }

    pub(super) fn check_health(
        &mut self,
        key: Key,
        incarnation: IncarnationNumber,
    ) -> Result<(), Broken> {
        let child = &self.children[&key];
        let right = child.incarnation == incarnation && child.lifecycle == Lifecycle::Active;
        let said = self.checked.is_some_and(|(checked, _)| checked == key);
        ensure(right && said, "health is told of who is active, and was checked")?;
        // What is told is over, unless he is to fail.
        self.checked.take_if(|(_, fails)| !*fails);
        Ok(())
    }

    pub(super) fn check_illness(&mut self, key: Key, reason: &ExitReason) -> Result<(), Broken> {
        let ill = matches!(reason, ExitReason::Unhealthy(_));
        let fails = self.checked.take_if(|(checked, fails)| *checked == key && *fails).is_some();
        ensure(ill == fails, "who is unhealthy fails if he is told to, and nobody else")
    }

    /// All that was said has had its effect.
    pub(super) fn check_heard(&self) -> Result<(), Broken> {
        ensure(self.checked.is_none(), "whoever is active is heard of when he was checked")
    }
}
