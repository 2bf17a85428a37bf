//! What a snapshot shows of a child's lease.

use std::sync::Arc;

use serde::Serialize;

/// The lease that a child needs, as far as its supervisor knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LeaseInfo {
    /// The name of the lease.
    pub name: Arc<str>,
    /// The fencing token of the grant. `None` while the child is on standby.
    pub token: Option<u64>,
    /// The present holder of the lease, if the child is on standby and the engine knows it.
    pub holder: Option<Arc<str>>,
    /// Why the engine can't tell whether the lease is free, if that is so.
    pub problem: Option<Arc<str>>,
}

impl LeaseInfo {
    pub(crate) fn sought(name: &Arc<str>) -> Self {
        Self { name: Arc::clone(name), token: None, holder: None, problem: None }
    }

    pub(crate) fn standby(
        name: &Arc<str>,
        holder: Option<Arc<str>>,
        problem: Option<Arc<str>>,
    ) -> Self {
        Self { holder, problem, ..Self::sought(name) }
    }

    pub(crate) fn granted(name: &Arc<str>, token: u64) -> Self {
        Self { token: Some(token), ..Self::sought(name) }
    }
}
