//! The stream and its requests.

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::jetstream::context::{Context, PublishError, PublishErrorKind};
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::response::Response;
use async_nats::jetstream::stream::{Config, RawMessageErrorKind};
use async_nats::jetstream::{self, ErrorCode};
use async_nats::{Client, HeaderMap, header};
use serde::{Deserialize, Serialize};
use verger::lease::{Claim, FencingToken, LeaseError, Memo};

use crate::problem;

/// The longest TTL: a hundred years. The server can't parse much longer ones.
const LONGEST_TTL: Duration = Duration::from_secs(100 * 366 * 24 * 3600);

/// The subject whose last message has to have the expected sequence, if it isn't the one of the message itself.
const EXPECTED_LAST_SEQUENCE_OF: &str = "Nats-Expected-Last-Subject-Sequence-Subject";

/// A stream with one message for each lease that is held.
pub(crate) struct Store {
    context: Context,
    stream: String,
    /// The server whose version and stream have been checked. Reset by a connection to a different one, or to the same
    /// one after a restart.
    checked: Mutex<Option<String>>,
}

/// The last message of a lease.
pub(crate) struct Record {
    pub(crate) sequence: u64,
    pub(crate) holder: Arc<str>,
    pub(crate) token: FencingToken,
}

/// The content of a message.
#[derive(Deserialize, Serialize)]
struct Content {
    holder: Arc<str>,
    /// Missing in the message that grants the lease: its own sequence is the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<u64>,
}

#[derive(Deserialize)]
struct Deleted {
    success: bool,
}

impl Store {
    pub(crate) fn new(client: Client, stream: String) -> Self {
        Self { context: jetstream::new(client), stream, checked: Mutex::default() }
    }

    pub(crate) fn name(&self) -> &str {
        &self.stream
    }

    pub(crate) fn subject(&self, name: &str) -> Result<String, LeaseError> {
        crate::subject::subject(&self.stream, name)
    }

    pub(crate) fn memo_subject(&self, name: &str) -> Result<String, LeaseError> {
        crate::subject::memo_subject(&self.stream, name)
    }

    pub(crate) async fn create(&self, replicas: usize) -> Result<(), LeaseError> {
        self.check_version()?;
        let config = Config {
            name: self.stream.clone(),
            subjects: vec![format!("{}.*", self.stream)],
            max_messages_per_subject: 1,
            num_replicas: replicas,
            allow_message_ttl: true,
            // Reads are answered by the leader then.
            allow_direct: false,
            // A purge would free leases that are held.
            deny_purge: true,
            ..Config::default()
        };
        let created = self.context.create_stream(config).await;
        created.map(drop).map_err(|error| problem::missing_stream(&self.stream, error))
    }

    /// Checks once for each server that leases expire there.
    pub(crate) async fn check(&self) -> Result<(), LeaseError> {
        let server = self.check_version()?;
        if self.checked.lock().unwrap_or_else(PoisonError::into_inner).as_ref() == Some(&server) {
            return Ok(());
        }
        let missing =
            |error: Box<dyn Error + Send + Sync>| problem::missing_stream(&self.stream, error);
        let stream = self.context.get_stream_no_info(&self.stream).await;
        let info = stream.map_err(|it| missing(it.into()))?.get_info().await;
        let config = info.map_err(|it| missing(it.into()))?.config;
        let setting = if !config.allow_message_ttl {
            "allow_msg_ttl: true"
        } else if config.max_messages_per_subject != 1 {
            "max_msgs_per_subject: 1"
        } else if config.allow_direct {
            "allow_direct: false"
        } else {
            *self.checked.lock().unwrap_or_else(PoisonError::into_inner) = Some(server);
            return Ok(());
        };
        Err(problem::settings(&self.stream, setting))
    }

    /// Returns the identity of the server, which changes when it is started again.
    fn check_version(&self) -> Result<String, LeaseError> {
        let client = self.context.client();
        let info = client.server_info();
        if info.version.is_empty() {
            return Err(problem::not_connected());
        }
        if !client.is_server_compatible(2, 11, 0) {
            return Err(problem::too_old(&info.version));
        }
        Ok(info.server_id)
    }

    /// Reads the last message of a lease from the leader of the stream.
    pub(crate) async fn read(&self, subject: &str) -> Result<Option<Record>, LeaseError> {
        let Some(message) = self.last(subject).await? else { return Ok(None) };
        let content: Content = serde_json::from_slice(&message.payload)
            .map_err(|error| problem::record(subject, error))?;
        let token = FencingToken::new(content.token.unwrap_or(message.sequence));
        Ok(Some(Record { sequence: message.sequence, holder: content.holder, token }))
    }

    async fn last(&self, subject: &str) -> Result<Option<StreamMessage>, LeaseError> {
        let stream = self.context.get_stream_no_info(&self.stream).await;
        let stream = stream.map_err(|error| problem::request("read a lease", error))?;
        match stream.get_last_raw_message_by_subject(subject).await {
            Ok(message) => Ok(Some(message)),
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(problem::request("read a lease", error)),
        }
    }

    /// Reads a memo from the leader of the stream. Empty if there is none.
    pub(crate) async fn read_memo(&self, subject: &str) -> Result<Memo, LeaseError> {
        let Some(message) = self.last(subject).await? else { return Ok(Memo::default()) };
        Memo::new(&message.payload).map_err(|error| problem::memo(subject, error))
    }

    /// Publishes a memo if the last message of its lease has this sequence. Returns whether it has.
    pub(crate) async fn write_memo(
        &self,
        subject: &str,
        memo: &Memo,
        lease: &str,
        expected: u64,
    ) -> Result<bool, LeaseError> {
        let mut headers = HeaderMap::new();
        headers.insert(header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, expected.to_string());
        headers.insert(EXPECTED_LAST_SEQUENCE_OF, lease);
        let payload = memo.as_bytes().to_vec();
        Ok(self.publish(subject, headers, payload, "write a memo").await?.is_some())
    }

    /// Publishes a message if the last one has this sequence, 0 for none. Returns the new sequence, or `None` if it hasn't.
    pub(crate) async fn replace(
        &self,
        subject: &str,
        expected: u64,
        claim: &Claim,
        token: Option<FencingToken>,
    ) -> Result<Option<u64>, LeaseError> {
        let content =
            Content { holder: Arc::clone(claim.holder()), token: token.map(FencingToken::get) };
        let payload = serde_json::to_vec(&content).expect("two plain fields");
        let mut headers = HeaderMap::new();
        headers.insert(header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, expected.to_string());
        // Also on a renewal: the message replaces the one before together with its TTL.
        headers.insert(header::NATS_MESSAGE_TTL, format!("{}s", seconds(claim.ttl())));
        self.publish(subject, headers, payload, "write a lease").await
    }

    /// Publishes a message. Returns its sequence, or `None` if the last one doesn't have the expected sequence.
    async fn publish(
        &self,
        subject: &str,
        headers: HeaderMap,
        payload: Vec<u8>,
        what: &str,
    ) -> Result<Option<u64>, LeaseError> {
        let sent =
            self.context.publish_with_headers(subject.to_owned(), headers, payload.into()).await;
        let answer = match sent {
            Ok(answer) => answer.await,
            Err(error) => Err(error),
        };
        match answer {
            Ok(answer) => Ok(Some(answer.sequence)),
            Err(error) if is_conflict(&error) => Ok(None),
            Err(error) => Err(problem::request(what, error)),
        }
    }

    /// Deletes the message with this sequence. Returns whether it existed.
    ///
    /// A message that has been replaced doesn't exist any more, so this compares and deletes in one step.
    pub(crate) async fn delete(&self, sequence: u64) -> Result<bool, LeaseError> {
        let subject = format!("STREAM.MSG.DELETE.{}", self.stream);
        let request = serde_json::json!({ "seq": sequence, "no_erase": true });
        match self.context.request(subject, &request).await {
            Ok(Response::Ok(Deleted { success })) => Ok(success),
            Ok(Response::Err { error })
                if error.error_code() == ErrorCode::STREAM_MESSAGE_DELETE_FAILED
                    || error.error_code() == ErrorCode::NO_MESSAGE_FOUND
                    || error.error_code() == ErrorCode::SEQUENCE_NOT_FOUND =>
            {
                Ok(false)
            }
            Ok(Response::Err { error }) => Err(problem::request("delete a lease", error)),
            Err(error) => Err(problem::request("delete a lease", error)),
        }
    }
}

/// Returns whether the last message has a different sequence.
fn is_conflict(error: &PublishError) -> bool {
    // A cluster also answers with a second code, which the client doesn't know as a kind.
    let code = || {
        let source = error.source()?.downcast_ref::<jetstream::Error>()?;
        Some(source.error_code() == ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT)
    };
    error.kind() == PublishErrorKind::WrongLastSequence || code().unwrap_or(false)
}

/// Returns a TTL in whole seconds, rounded up. The server would round down, and a lease would expire too early.
fn seconds(ttl: Duration) -> u64 {
    let ttl = ttl.min(LONGEST_TTL);
    (ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ttl_is_rounded_up() {
        for (millis, expected) in [(0, 1), (1, 1), (999, 1), (1000, 1), (1001, 2), (15_000, 15)] {
            assert_eq!(seconds(Duration::from_millis(millis)), expected);
        }
        assert_eq!(seconds(Duration::MAX), LONGEST_TTL.as_secs());
    }
}
