//! What a snapshot shows of a child's lease.

use std::sync::Arc;

/// The lease that a child needs, as far as its supervisor knows it.
///
/// ```
/// use verger::{ControlError, SupervisorHandle};
///
/// /// Prints why the child isn't active here.
/// async fn standby(app: &SupervisorHandle, child: &str) -> Result<(), ControlError> {
///     match app.which_child(child).await?.lease {
///         Some(lease) if lease.token.is_none() => println!("{:?} has {}", lease.holder, lease.name),
///         _ => println!("{child} waits for no lease"),
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
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

    /// Why the lease isn't granted, as far as that is known.
    pub(super) fn cause(&self) -> Option<String> {
        match (&self.problem, &self.holder) {
            (Some(problem), _) => Some(problem.to_string()),
            (None, Some(holder)) => Some(format!("{holder} has the lease")),
            (None, None) => None,
        }
    }

    pub(crate) fn granted(name: &Arc<str>, token: u64) -> Self {
        Self { token: Some(token), ..Self::sought(name) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Path;
    use crate::status::{ChildInfo, ChildKind};

    #[test]
    fn a_standby_is_explained_by_the_holder_or_by_the_problem() {
        let mut child = ChildInfo::sample(Path::root("app").join("scheduler"), ChildKind::Worker);
        let name: Arc<str> = "scheduler".into();
        child.why = Some("standby");
        for (lease, explanation) in [
            (None, "standby"),
            (Some(LeaseInfo::sought(&name)), "standby"),
            (
                Some(LeaseInfo::standby(&name, Some("web-2".into()), None)),
                "standby: web-2 has the lease",
            ),
            (
                Some(LeaseInfo::standby(
                    &name,
                    Some("web-2".into()),
                    Some("no answer within 3s".into()),
                )),
                "standby: no answer within 3s",
            ),
        ] {
            child.lease = lease.map(Arc::new);
            assert_eq!(child.explanation().as_deref(), Some(explanation));
        }
    }
}
