//! Children that need a lease: when it is sought, and when it ends.
//!
//! A lease is a requirement that no sibling provides: it is met while the lease is granted. So a child waits for its
//! lease as it waits for a sibling, and its start is passed as for any child whose requirement may never be met.
//!
//! Knows which leases are sought and which are granted. Doesn't know their engines, tokens or times.
//!
//! # Invariants
//!
//! 1. A lease is sought once its child is due to start and lacks nothing else. If it is granted after a sibling that the
//!    child requires has failed, it ends immediately.
//! 2. A lease that is granted is kept while its child runs, or will run again without an event from outside.
//! 3. A lease ends after its child's incarnation is over. A child that has leaked may still run, so its lease ends
//!    without a release.

use crate::core::{
    ChildState, Children, ConditionEffect, DownState, Effect, Key, RequirementId, StepCx,
    StopReason,
};
use crate::properties::Properties;

/// What is known of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::core) enum LeaseState {
    /// Nobody seeks it.
    Idle,
    /// The driver seeks it.
    Sought,
    Granted,
}

impl Children {
    /// Gives the child a lease to wait for, or takes it away, as its rules specify.
    pub(super) fn update_lease(&mut self, key: Key, cx: &mut StepCx<'_>) {
        match (self.lease(key), self.entry(key).rules.spec.lease_grace) {
            (None, Some(_)) => {
                self.requirements.require_lease(key);
                self.set_lease(key, LeaseState::Idle);
            }
            (Some(_), None) => {
                self.end_lease(key, true, cx);
                self.requirements.require_no_lease(key);
                if let Some(conditions) = &mut self.entry(key).conditions {
                    conditions.lease = None;
                }
            }
            _ => {}
        }
    }

    /// Seeks the lease of a child that lacks nothing else.
    pub(in crate::core) fn seek_lease(&mut self, key: Key, cx: &mut StepCx<'_>) {
        if self.lease(key) == Some(LeaseState::Idle) {
            self.set_lease(key, LeaseState::Sought);
            cx.push(Effect::Condition(ConditionEffect::SeekLease { key }));
        }
    }

    /// The lease is granted, which starts the child if it lacks nothing else.
    pub(super) fn on_lease_granted(&mut self, key: Key, changes: Properties, cx: &mut StepCx<'_>) {
        if !changes.is_empty() {
            cx.push(Effect::Condition(ConditionEffect::Changed { key, changes }));
        }
        self.set_lease(key, LeaseState::Granted);
        self.recheck_lease(key);
    }

    /// The lease is lost, or couldn't be renewed in time: the child is stopped, and waits for it again.
    pub(super) fn on_lease_lost(&mut self, key: Key, cx: &mut StepCx<'_>) {
        self.set_lease(key, LeaseState::Idle);
        match self.state(key) {
            Some(ChildState::Activating | ChildState::Active) => {
                self.begin_stop(key, StopReason::Lease, cx);
            }
            // It was about to start, and seeks it again instead, unless it is to be stopped with its group.
            Some(ChildState::Gated(_)) => self.requirements.release(key),
            _ => {}
        }
    }

    pub(super) fn set_lease(&mut self, key: Key, state: LeaseState) {
        if let Some(conditions) = &mut self.entry(key).conditions {
            conditions.lease = Some(state);
        }
        self.requirements.set_met(RequirementId::Lease(key), state == LeaseState::Granted);
    }

    /// Ends the lease of a child that has no use for it any more. `starts`: whether its group will start the
    /// child if it is down.
    pub(in crate::core) fn settle_lease(&mut self, key: Key, starts: bool, cx: &mut StepCx<'_>) {
        if !self.keeps_lease(key, starts) {
            self.end_lease(key, true, cx);
        }
    }

    /// Whether the child runs, or will run again without an event from outside but the grant of its lease.
    fn keeps_lease(&self, key: Key, starts: bool) -> bool {
        let Some(entry) = self.entries.get(key) else { return false };
        match entry.state {
            ChildState::Gated(_) => {
                let lacking = self.requirements.lacks(key).map(|(lacking, _)| lacking);
                entry.withheld().is_none()
                    && lacking.is_none_or(|it| it == RequirementId::Lease(key))
            }
            ChildState::Down(down) => {
                matches!(down, DownState::New | DownState::RestartsWithGroup)
                    || (starts && self.is_started_by_message(key))
            }
            _ => true,
        }
    }

    /// Whether the child waits for its lease, stops because it has lost it, or requires a child that does.
    pub(in crate::core) fn awaits_lease(&self, key: Key) -> bool {
        let is_leaving = |key| {
            matches!(self.state(key), Some(ChildState::Stopping { why: StopReason::Lease, .. }))
        };
        let mut key = key;
        while !self.is_on_standby(key) && !is_leaving(key) {
            let is_gated = matches!(self.state(key), Some(ChildState::Gated(_)));
            match self.requirements.lacks(key) {
                Some((_, Some(provider))) if is_gated => key = provider,
                _ => return false,
            }
        }
        true
    }
}
