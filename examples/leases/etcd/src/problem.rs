//! Errors, with what to do about them.

use etcd_client::Error;
use verger::lease::{LeaseError, MemoTooLong};

/// A request that the server hasn't answered, or refuses.
pub(crate) fn request(what: &str, error: Error) -> LeaseError {
    LeaseError::new(format!("etcd can't {what} ({error})")).with_source(error)
}

pub(crate) fn ended() -> LeaseError {
    LeaseError::new("etcd has ended the stream of a keep-alive")
}

pub(crate) fn no_header() -> LeaseError {
    LeaseError::new("the answer has no revision").with_hint("connect to etcd")
}

pub(crate) fn leader() -> LeaseError {
    LeaseError::new("etcd has a new leader since the keep-alive").with_hint("repeat the request")
}

pub(crate) fn expired() -> LeaseError {
    LeaseError::new("the lease of etcd has expired, and its key exists still")
        .with_hint("repeat the request")
}

pub(crate) fn name(name: &str) -> LeaseError {
    LeaseError::new(format!("the name `{}` has a zero byte", name.escape_default()))
        .with_hint("choose a name of a lease without one")
}

pub(crate) fn memo(name: &str, error: MemoTooLong) -> LeaseError {
    LeaseError::new(format!("the memo of the lease `{name}` has {} bytes", error.length))
        .with_hint("let no other program write keys with the prefix of the leases")
        .with_source(error)
}
