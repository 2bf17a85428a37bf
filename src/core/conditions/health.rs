//! The results of a child's health check, which may be its failure.
//!
//! A child that fails with its check is healthy since the first of its latest checks that all passed, and not since it
//! became Active.
//!
//! # Invariants
//!
//! 1. Only an Active child has a result.

use std::sync::Arc;
use std::time::Instant;

use crate::core::{ChildState, Children, ConditionEffect, Effect, Key, Machine, StepCx};
use crate::exit::ExitReason;

impl Machine {
    /// The result of a health check has changed.
    pub(super) fn on_health(&mut self, key: Key, problem: Option<Arc<str>>, cx: &mut StepCx<'_>) {
        let ends = self.is_ending();
        let children = self.children_mut();
        let entry = children.entry(key);
        if entry.state != ChildState::Active {
            return;
        }
        let (incarnation, fails) = (entry.incarnation, entry.rules.spec.fails_unhealthy);
        let health = ConditionEffect::Health { key, incarnation, problem: problem.clone() };
        cx.push(Effect::Condition(health));
        // In a supervisor that ends, the child is stopped anyway.
        if let Some(problem) = problem.filter(|_| fails && !ends) {
            let reason = ExitReason::Unhealthy(problem.to_string());
            children.fail_running(key, reason, false, cx);
        }
    }
}

impl Children {
    /// The last health check of a child has passed or not, unlike the previous one.
    pub(super) fn on_checked(&mut self, key: Key, passed: bool, now: Instant) {
        let entry = self.entry(key);
        if entry.state == ChildState::Active
            && entry.rules.spec.fails_unhealthy
            && let Some(conditions) = &mut entry.conditions
        {
            conditions.healthy_since = passed.then_some(now);
            // Its exits are shown from now on, even clean ones.
            entry.history_mut();
        }
    }
}
