//! A restart policy that a child sets itself.

use std::sync::Arc;

use super::check::check_policy;
use super::context::Context;
use crate::error::BuildError;
use crate::policy::RestartPolicy;

impl Context {
    /// Overrides the restart policy of the spec, for this incarnation only. `None` restores it.
    ///
    /// The last call before the child ends counts. The override is dropped when the next incarnation
    /// starts. See [`RestartPolicy`].
    ///
    /// Each limit of the policy replaces the same limit of the spec. A limit that newly applies starts
    /// counting at zero, and its count is dropped when a restart is granted without it. So set a limit
    /// in each incarnation that needs it.
    ///
    /// # Errors
    ///
    /// The errors of building a tree with such a spec: [`BuildError::BadBackoff`],
    /// [`BuildError::ZeroPeriod`], [`BuildError::BadScore`], [`BuildError::ZeroDuration`] or
    /// [`BuildError::SetTwice`]. The policy is then unchanged.
    pub fn set_restart_policy(&self, policy: Option<RestartPolicy>) -> Result<(), BuildError> {
        if let Some(policy) = &policy {
            check_policy(policy, &|| self.path())?;
        }
        self.incarnation.report_policy(policy.map(Arc::new));
        Ok(())
    }
}
