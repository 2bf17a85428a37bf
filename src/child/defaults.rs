//! Defaults for the children of a supervisor.

use crate::policy::{ChildOptions, child_setters, policy_setters};

/// Defaults for the children of a supervisor.
///
/// Set with [`SupervisorBuilder::defaults`](crate::SupervisorBuilder::defaults). The options of a
/// spec take precedence over the defaults, and the defaults over a
/// [preset](crate::SupervisorBuilder::preset). The limits on restarts count for each child
/// separately.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct ChildDefaults {
    pub(crate) options: ChildOptions,
}

impl ChildDefaults {
    policy_setters!(self => self.options);

    child_setters!(self => self.options);
}
