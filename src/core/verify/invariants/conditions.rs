//! The record of a child's conditions.
//!
//! # Invariants
//!
//! 1. A child has a record exactly while its rules request a condition, or its supervisor has a failure callback.

use std::sync::Arc;

use super::{Invariants, Violation, ensure};
use crate::core::{Declaration, Key, Machine, MachineEvent};

impl Invariants {
    /// Notes the new rules of a child.
    pub(super) fn note_rules(&mut self, event: &MachineEvent) {
        if let MachineEvent::Declared(Declaration::ChildRules { key, rules, .. }) = event
            && !self.ending
        {
            self.child(*key).rules = Arc::clone(rules);
        }
    }

    pub(super) fn check_conditions(&self, machine: &Machine, key: Key) -> Result<(), Violation> {
        let rules = &self.children[&key].rules;
        let requested = [
            self.rules.has_failure_callback,
            rules.spec.lease_grace.is_some(),
            rules.spec.fails_unhealthy,
            rules.spec.on_message,
            rules.spec.delays_delivery,
            rules.watchdog.is_some(),
            rules.run_time_limit.is_some(),
        ];
        let entry = machine.children().entries.get(key).expect("a child that was not removed");
        let right = entry.conditions.is_some() == requested.contains(&true);
        ensure(right, format!("{} has a record if it has a condition", self.name(key)))
    }
}
