//! Errors, with what to do about them.

use std::error::Error;

use verger::lease::{LeaseError, MemoTooLong};

type Source = Box<dyn Error + Send + Sync>;

/// A request that the server hasn't answered, or refuses.
pub(crate) fn request(what: &str, error: impl Into<Source>) -> LeaseError {
    let error = error.into();
    LeaseError::new(format!("NATS can't {what} ({error})")).with_source(error)
}

pub(crate) fn not_connected() -> LeaseError {
    LeaseError::new("the client isn't connected to NATS").with_hint("start the server")
}

pub(crate) fn too_old(version: &str) -> LeaseError {
    LeaseError::new(format!(
        "NATS {version} ignores the TTL of a message, so no lease would expire"
    ))
    .with_hint("use version 2.11 or later")
}

pub(crate) fn missing_stream(stream: &str, error: impl Into<Source>) -> LeaseError {
    let error = error.into();
    LeaseError::new(format!("the stream `{stream}` can't be used ({error})"))
        .with_hint("call `Nats::create_stream` once, and check that JetStream is enabled")
        .with_source(error)
}

pub(crate) fn settings(stream: &str, setting: &str) -> LeaseError {
    LeaseError::new(format!("the stream `{stream}` doesn't have the setting `{setting}`"))
        .with_hint("select a stream that `Nats::create_stream` has created")
}

pub(crate) fn record(subject: &str, error: serde_json::Error) -> LeaseError {
    LeaseError::new(format!("the message on `{subject}` isn't a lease ({error})"))
        .with_hint("let no other program publish to the subjects of the stream")
        .with_source(error)
}

pub(crate) fn conflict(name: &str) -> LeaseError {
    LeaseError::new(format!("several requests about the lease `{name}` were sent at once"))
        .with_hint("repeat the request")
}

pub(crate) fn memo(subject: &str, error: MemoTooLong) -> LeaseError {
    LeaseError::new(format!(
        "the message on `{subject}` has {} bytes, so it isn't a memo",
        error.length
    ))
    .with_hint("let no other program publish to the subjects of the stream")
    .with_source(error)
}
