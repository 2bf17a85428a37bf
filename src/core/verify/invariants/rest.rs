//! What holds when no deadline is left: every child that should be up is up.
//!
//! These checks look at the current state of each child, and not at how it was reached.

use super::{Invariants, LeaseAccount, Machine, Violation, ensure};
use crate::core::child::{ChildEntry, ChildState, DownState};
use crate::core::requirements::RequirementId;
use crate::lifecycle::Lifecycle;
use crate::policy::Strategy;

impl Invariants {
    /// Checks a machine that is not ending and has no deadline, and whose children run and stop as requested.
    pub(in super::super) fn check_rest(&self, machine: &Machine) -> Result<(), Violation> {
        let children = machine.children();
        ensure(self.up, "the supervisor comes up")?;
        if let Some(&(key, request, _)) = self.waiting.values().next() {
            return Err(format!("a {request:?} waits for {} without end", self.name(key)));
        }
        for (key, child) in self.present() {
            let state = children.state(key).expect("a child that exists");
            let right = match state {
                ChildState::Active => true,
                ChildState::Gated(_) => {
                    let lacking = children.requirements.lacks(key).map(|(lacking, _)| lacking);
                    let by_lease = lacking == Some(RequirementId::Lease(key));
                    (lacking.is_some() && (!by_lease || child.lease == LeaseAccount::Sought))
                        || children.entries.get(key).is_some_and(ChildEntry::is_withheld)
                }
                ChildState::Down(DownState::New | DownState::RestartsWithGroup) => false,
                ChildState::Down(
                    DownState::Dormant | DownState::Finished | DownState::NotRestarted,
                ) if child.must_start_on_message() => false,
                ChildState::Down(DownState::Dormant) => child.declaration.options.on_message,
                // Parked, or a caller has ended the wait of its group.
                ChildState::Down(DownState::DownWithGroup) => {
                    children.rules.strategy != Strategy::OneForOne
                }
                ChildState::Down(_) => child.lifecycle != Lifecycle::Active,
                ChildState::Activating
                | ChildState::Backoff(_)
                | ChildState::AwaitingGroup
                | ChildState::AwaitingDecision { .. }
                | ChildState::Stopping { .. } => false,
            };
            ensure(right, format!("{} is left in {state:?}", self.name(key)))?;
        }
        // The walk finds all children, in order.
        let found = std::iter::successors(machine.next(0), |&(_, place)| machine.next(place));
        ensure(found.count() == self.present().count(), "the walk finds all children")
    }
}
