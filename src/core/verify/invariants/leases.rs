//! Children that need a lease.
//!
//! # Invariants
//!
//! 1. A child is started only while its lease is granted. One that runs without it was cancelled or aborted.
//! 2. A lease is asked for once until it ends, and only for a child without a task.
//! 3. A lease is released only after its child's task has ended, and is kept by none that stays down. It ends when its
//!    child leaks, without a release.

use super::{Invariants, Machine, Violation, ensure};
use crate::core::child::{ChildState, DownState};
use crate::core::{ConditionEvent, Key, MachineEvent, RequirementId};

/// What is known of a child's lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(in super::super) enum LeaseAccount {
    #[default]
    Idle,
    Sought,
    Granted,
    /// It is granted to an incarnation that has leaked.
    Leaked,
}

impl Invariants {
    pub(super) fn note_lease(&mut self, event: &MachineEvent) {
        match *event {
            MachineEvent::Condition(ConditionEvent::LeaseGranted { key, .. }) => {
                let child = self.child(key);
                if child.lease == LeaseAccount::Sought {
                    child.lease = LeaseAccount::Granted;
                }
            }
            MachineEvent::Condition(ConditionEvent::LeaseLost { key }) => {
                let child = self.child(key);
                if child.lease == LeaseAccount::Granted {
                    child.lease = LeaseAccount::Idle;
                    child.lost_lease |= child.live;
                }
            }
            _ => {}
        }
    }

    pub(super) fn check_sought(&mut self, key: Key) -> Result<(), Violation> {
        ensure(!self.ending, "no lease is asked for once the end has begun")?;
        let child = self.child(key);
        let needed = child.declaration.options.lease_grace.is_some();
        ensure(needed && !child.live, "a lease is asked for while its child is down")?;
        let before = std::mem::replace(&mut child.lease, LeaseAccount::Sought);
        ensure(before == LeaseAccount::Idle, "a lease is asked for once")
    }

    pub(super) fn check_lease_ended(&mut self, key: Key, release: bool) -> Result<(), Violation> {
        let child = self.child(key);
        let before = std::mem::take(&mut child.lease);
        ensure(before != LeaseAccount::Idle, "a lease ends once")?;
        let unused = match before {
            LeaseAccount::Idle | LeaseAccount::Sought => true,
            LeaseAccount::Granted => !child.live,
            LeaseAccount::Leaked => false,
        };
        ensure(unused || !release, "a lease is released after its child's task has ended")
    }

    /// Notes that the child has leaked, which ends its lease. It may be granted another.
    pub(super) fn note_leaked_lease(&mut self, key: Key) {
        let child = self.child(key);
        if child.lease == LeaseAccount::Granted {
            child.lease = LeaseAccount::Leaked;
        }
    }

    /// Checks what holds between two events.
    pub(super) fn check_leases(&self, machine: &Machine) -> Result<(), Violation> {
        for (key, child) in &self.children {
            if child.declaration.options.lease_grace.is_none() {
                continue;
            }
            let idle = child.lease == LeaseAccount::Idle;
            let state = machine.children().state(*key);
            let right = match state {
                None => idle,
                Some(ChildState::Activating | ChildState::Active) => {
                    child.lease == LeaseAccount::Granted
                }
                Some(ChildState::Down(DownState::New | DownState::RestartsWithGroup)) => true,
                // Its group starts it for the message.
                Some(ChildState::Down(_)) if child.must_start_on_message() => true,
                Some(ChildState::Down(_)) => idle,
                Some(ChildState::Gated(_)) => self.is_standby_right(machine, *key),
                Some(_) => true,
            };
            let lease = child.lease;
            ensure(
                right && lease != LeaseAccount::Leaked,
                format!("{} has a lease that is {lease:?} in {state:?}", self.name(*key)),
            )?;
            let finished = self.finished.is_some();
            ensure(idle || !finished, "no lease is left when the supervisor has ended")?;
        }
        Ok(())
    }

    /// Whether a child that is due to start asks for its lease if it lacks nothing else.
    fn is_standby_right(&self, machine: &Machine, key: Key) -> bool {
        let children = machine.children();
        let withheld = children.entries.get(key).is_some_and(|entry| entry.withheld().is_some());
        let lease = self.children[&key].lease;
        match children.requirements.lacks(key) {
            _ if withheld => lease == LeaseAccount::Idle,
            // It is about to start.
            None => true,
            Some((lacking, _)) if lacking == RequirementId::Lease(key) => {
                // Or it is about to be launched, or stopped with its group.
                lease == LeaseAccount::Sought
                    || children.requirements.released.contains(&key)
                    || machine.is_to_stop(key)
            }
            // It may have been asked for before the sibling failed, or is about to be stopped with its group.
            Some(_) => lease != LeaseAccount::Granted || machine.is_to_stop(key),
        }
    }
}
