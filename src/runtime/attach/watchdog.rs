//! The heartbeats of children, which the machine asks for when a watchdog's deadline is due.
//!
//! A heartbeat is no event: the child notes when it sent the last one.

use super::StepView;
use crate::core::{ConditionEffect, ConditionEvent, MachineEvent};
use crate::runtime::log;

/// Answers the question for a heartbeat, or reports that the runtime was late.
pub(super) fn before(effect: &ConditionEffect, view: &StepView<'_>) -> Option<MachineEvent> {
    match *effect {
        ConditionEffect::CheckHeartbeat { key, incarnation } => {
            let running = view.children.incarnation(key).filter(|it| it.number == incarnation)?;
            let last = running.cell.last_heartbeat(view.now);
            Some(MachineEvent::Condition(ConditionEvent::Heartbeat { key, incarnation, last }))
        }
        ConditionEffect::RuntimeLate { late } => {
            log::runtime_late(&view.shared.tree.log_bounds, view.shared.path(), late);
            None
        }
        _ => None,
    }
}
