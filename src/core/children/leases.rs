//! Children that need a lease: when it is asked for, and when it ends.
//!
//! # Invariants
//!
//! 1. A lease is sought once its child is due to start and lacks nothing else. If it is granted after a sibling that the
//!    child requires has failed, it ends at once.
//! 2. A lease that is granted is kept while its child runs, or will run again without an event from outside.
//! 3. A lease ends after its child's incarnation is over. A child that has leaked may go on, so its lease ends without
//!    a release.

use super::Children;
use crate::core::arena::Key;
use crate::core::child::{ChildState, DownState, StopReason};
use crate::core::effect::{ConditionEffect, Effect, StepCx};
use crate::core::leases::LeaseState;
use crate::core::requirements::RequirementId;
use crate::properties::Properties;

impl Children {
    /// Gives the child a lease to wait for, or takes it away, as its options say.
    pub(in crate::core) fn update_lease(&mut self, key: Key, cx: &mut StepCx<'_>) {
        let needs = self.entry(key).rules.spec.lease_grace.is_some();
        if !needs && self.leases.is_empty() {
            return;
        }
        match (self.leases.state(key), needs) {
            (None, true) => self.need_lease(key),
            (Some(_), false) => self.remove_lease(key, cx),
            _ => {}
        }
    }

    /// Gives the child a lease to wait for.
    pub(in crate::core) fn need_lease(&mut self, key: Key) {
        self.leases.insert(key);
        self.requirements.require_lease(key);
    }

    /// Asks for the child's lease, if that is what it lacks.
    pub(in crate::core) fn seek_lease(
        &mut self,
        key: Key,
        lacking: RequirementId,
        cx: &mut StepCx<'_>,
    ) {
        let is_idle = self.leases.state(key) == Some(LeaseState::Idle);
        if is_idle && self.leases.requirement(key) == Some(lacking) {
            self.set_lease(key, LeaseState::Sought);
            cx.push(Effect::Condition(ConditionEffect::SeekLease { key }));
        }
    }

    /// The lease is granted, which starts the child if it lacks nothing else.
    pub(in crate::core) fn on_lease_granted(
        &mut self,
        key: Key,
        changes: Properties,
        cx: &mut StepCx<'_>,
    ) {
        if !changes.is_empty() {
            cx.push(Effect::Condition(ConditionEffect::Changed { key, changes }));
        }
        self.set_lease(key, LeaseState::Granted);
        self.leases.note(key);
    }

    /// The lease is lost, or couldn't be renewed in time: the child is stopped, and waits for it again.
    pub(in crate::core) fn on_lease_lost(&mut self, key: Key, cx: &mut StepCx<'_>) {
        self.set_lease(key, LeaseState::Idle);
        match self.state(key) {
            Some(ChildState::Activating | ChildState::Active) => {
                self.begin_stop(key, StopReason::Lease, cx);
            }
            // It was about to start, and asks again instead, unless it is to be stopped with its group.
            Some(ChildState::Gated(_)) => self.requirements.release(key),
            _ => {}
        }
    }

    /// Gives up the lease. `release`: another holder may have it at once.
    pub(in crate::core) fn end_lease(&mut self, key: Key, release: bool, cx: &mut StepCx<'_>) {
        if self.leases.state(key).is_some_and(|state| state != LeaseState::Idle) {
            self.set_lease(key, LeaseState::Idle);
            cx.push(Effect::Condition(ConditionEffect::EndLease { key, release }));
        }
    }

    fn set_lease(&mut self, key: Key, state: LeaseState) {
        if let Some(requirement) = self.leases.set(key, state) {
            self.requirements.set_met(requirement, state == LeaseState::Granted);
        }
    }

    /// Ends the lease of a child that is removed, or needs it no more.
    pub(in crate::core) fn remove_lease(&mut self, key: Key, cx: &mut StepCx<'_>) {
        self.end_lease(key, true, cx);
        if self.leases.state(key).is_some() {
            self.requirements.require_no_lease(key);
            self.leases.remove(key);
        }
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
                    && lacking.is_none_or(|it| self.leases.requirement(key) == Some(it))
            }
            ChildState::Down(down) => {
                matches!(down, DownState::New | DownState::RestartsWithGroup)
                    || (starts && self.is_started_by_message(key))
            }
            ChildState::Activating
            | ChildState::Active
            | ChildState::Backoff(_)
            | ChildState::AwaitingGroup
            | ChildState::AwaitingDecision { .. }
            | ChildState::Stopping { .. } => true,
        }
    }

    /// Whether the child needs a lease that isn't granted.
    pub(in crate::core) fn lacks_lease(&self, key: Key) -> bool {
        self.leases.state(key).is_some_and(|state| state != LeaseState::Granted)
    }

    /// Whether the child waits for its lease and for nothing else.
    pub(in crate::core) fn is_on_standby(&self, key: Key) -> bool {
        let Some(entry) = self.entries.get(key) else { return false };
        matches!(entry.state, ChildState::Gated(_))
            && entry.withheld().is_none()
            && self.leases.state(key) == Some(LeaseState::Sought)
    }

    /// Whether the child waits for its lease, or requires a child that does.
    pub(in crate::core) fn awaits_lease(&self, key: Key) -> bool {
        let mut key = key;
        while !self.is_on_standby(key) {
            let is_gated = matches!(self.state(key), Some(ChildState::Gated(_)));
            match self.requirements.lacks(key) {
                Some((_, Some(provider))) if is_gated => key = provider,
                _ => return false,
            }
        }
        true
    }
}
