//! Errors, with what to do about them.

use verger::lease::LeaseError;

/// A request that the server hasn't answered, or refuses.
pub(crate) fn request(what: &str, error: kube::Error) -> LeaseError {
    let (detail, hint) = match &error {
        kube::Error::Api(status) => {
            let hint = (status.code == 403)
                .then_some("allow get, create and update of `leases` in `coordination.k8s.io`");
            (format!("{}: {}", status.code, status.message), hint)
        }
        error => (error.to_string(), None),
    };
    let problem = LeaseError::new(format!("Kubernetes can't {what} ({detail})"));
    let problem = match hint {
        Some(hint) => problem.with_hint(hint),
        None => problem,
    };
    problem.with_source(error)
}

pub(crate) fn name(name: &str) -> LeaseError {
    LeaseError::new(format!("Kubernetes accepts no object with the name `{name}`")).with_hint(
        "write at most 253 lower-case letters, digits, `-` and `.`, and begin and end with a letter or a digit",
    )
}

pub(crate) fn annotation(name: &str, annotation: &str) -> LeaseError {
    LeaseError::new(format!("the annotation `{annotation}` of the lease `{name}` is no number"))
        .with_hint("set it to a number that is higher than all tokens before")
}

pub(crate) fn exhausted(name: &str) -> LeaseError {
    LeaseError::new(format!("the lease `{name}` has no higher token than its last one"))
}

pub(crate) fn version() -> LeaseError {
    LeaseError::new("the answer has no `resourceVersion`").with_hint("connect to Kubernetes")
}

pub(crate) fn conflict(name: &str) -> LeaseError {
    LeaseError::new(format!("other requests have changed the lease `{name}` at the same time"))
        .with_hint("repeat the request")
}
