//! A small HTTP client for the console's endpoint.
//!
//! One connection for each request. A task drives it, which is aborted when the request is answered or dropped.
//!
//! # Invariants
//!
//! 1. Every request ends within its limit, however slow the server is. A stream ends if nothing arrives for [`SILENCE`].
//! 2. Every error says what to do.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::endpoint::Endpoint;
use crate::model::{Change, Plan, Refusal};
use crate::sse;
use crate::text::{Text, clean};

/// How long the server may take to answer.
const ANSWER: Duration = Duration::from_secs(5);
/// How long an action may take: the server answers once the child has stopped.
const ACTION: Duration = Duration::from_secs(60);
/// The server sends something at least every two seconds.
const SILENCE: Duration = Duration::from_secs(10);
/// The longest answer that is read.
const MAX: usize = 256 << 20;

/// Why a request has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClientError {
    /// There is no connection, or it has ended.
    Unreachable { url: String, error: String },
    /// The server has not answered in time.
    TimedOut { url: String, within: Duration },
    /// The server has answered with an error.
    Refused { url: String, status: u16, problem: Text, error: Text },
    /// The answer is not one of a console.
    Unexpected { url: String, error: String },
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable { url, error } => write!(
                f,
                "can't reach {url}: {error}; start the program with `Application::console`, or give the address of its \
                 console with --url"
            ),
            Self::TimedOut { url, within } => write!(
                f,
                "no answer from {url} within {}s; the program may be overloaded: try again",
                within.as_secs()
            ),
            Self::Unexpected { url, error } => {
                write!(f, "{url} doesn't answer like a console of verger: {error}; check --url")
            }
            Self::Refused { problem, error, status, .. } => {
                match (&**error, *status) {
                    // The console speaks to a reader of its page.
                    _ if &**problem == "bad_token" => {
                        f.write_str("the token is missing or wrong")?
                    }
                    ("", status) => write!(f, "the console answers with HTTP status {status}")?,
                    (error, _) => f.write_str(error)?,
                }
                f.write_str(match &**problem {
                    "actions_off" => "; let the program allow them: `Console::new().allow_actions(true)`",
                    "bad_token" => {
                        "; take the token from the program's log, or the one of `Console::read_token` for reading, and \
                         give it with --token, VERGER_TOKEN, or a URL with `#token=`"
                    }
                    "foreign_host" => {
                        "; use the address 127.0.0.1, or let the program allow this name: `Console::new().allow_host(…)`"
                    }
                    _ => "",
                })
            }
        }
    }
}

impl std::error::Error for ClientError {}

/// The task of a connection, which is aborted when this is dropped. The request that uses the connection gets its errors.
type Driver = JoinSet<hyper::Result<()>>;

/// Sends requests to one console.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    endpoint: Endpoint,
}

impl Client {
    pub(crate) fn new(endpoint: Endpoint) -> Self {
        Self { endpoint }
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Reads JSON.
    pub(crate) async fn get<T: DeserializeOwned>(&self, target: &str) -> Result<T, ClientError> {
        let body = self.send(self.request("GET", target, None), ANSWER).await?;
        serde_json::from_slice(&body).map_err(|error| self.unexpected(error))
    }

    /// Sends JSON, and reads JSON.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        target: &str,
        body: &Value,
    ) -> Result<T, ClientError> {
        let body = self.send(self.request("POST", target, Some(body)), ACTION).await?;
        serde_json::from_slice(&body).map_err(|error| self.unexpected(error))
    }

    /// Asks for the plan of the program's configuration file.
    pub(crate) async fn plan(&self) -> Result<Plan, ClientError> {
        self.post("/api/plan", &serde_json::json!({})).await.map_err(|error| match error {
            ClientError::Refused { url, status, problem, .. } if &*problem == "not_found" => {
                let error = "the program reads no configuration file; give it one with `Application::config_file`";
                ClientError::Refused { url, status, problem, error: error.into() }
            }
            other => other,
        })
    }

    /// Asks for the plan of a configuration file that the program doesn't have.
    pub(crate) async fn plan_of(&self, file: &Path, toml: &str) -> Result<Plan, ClientError> {
        let file = serde_json::json!({ "name": file.display().to_string(), "toml": toml });
        self.post("/api/plan", &serde_json::json!({ "file": file })).await
    }

    /// Opens the stream of changes.
    pub(crate) async fn stream(&self) -> Result<ChangeStream, ClientError> {
        let opened = timeout(ANSWER, self.open(self.request("GET", "/api/stream", None)));
        let (driver, response) = opened.await.map_err(|_| self.timed_out(ANSWER))??;
        let status = response.status();
        if status != StatusCode::OK {
            let body = timeout(ANSWER, self.collect(response)).await;
            return Err(self.refused(status, &body.map_err(|_| self.timed_out(ANSWER))??));
        }
        Ok(ChangeStream {
            client: self.clone(),
            _driver: driver,
            body: response.into_body(),
            parser: sse::Parser::default(),
            ready: VecDeque::new(),
        })
    }

    async fn send(
        &self,
        request: Request<Full<Bytes>>,
        within: Duration,
    ) -> Result<Bytes, ClientError> {
        let answer = timeout(within, async {
            let (_driver, response) = self.open(request).await?;
            Ok((response.status(), self.collect(response).await?))
        });
        let (status, body) = answer.await.map_err(|_| self.timed_out(within))??;
        // 202: the server has begun, and doesn't wait for the end.
        if status.is_success() { Ok(body) } else { Err(self.refused(status, &body)) }
    }

    /// Connects, and sends a request. The answer arrives only as long as its connection is driven.
    async fn open(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<(Driver, Response<Incoming>), ClientError> {
        let socket = TcpStream::connect(&self.endpoint.authority).await;
        let socket = socket.map_err(|error| self.unreachable(error))?;
        let connected = http1::handshake(TokioIo::new(socket)).await;
        let (mut sender, connection) = connected.map_err(|error| self.unreachable(error))?;
        let mut driver = JoinSet::new();
        driver.spawn(connection);
        let response = sender.send_request(request).await;
        Ok((driver, response.map_err(|error| self.unreachable(error))?))
    }

    fn request(&self, method: &str, target: &str, body: Option<&Value>) -> Request<Full<Bytes>> {
        let mut request = Request::builder()
            .method(method)
            .uri(target)
            .header(header::HOST, &self.endpoint.authority);
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        // Reading may also need one. A token that no header can carry is not the right one: the server refuses it.
        if let Some(token) =
            self.endpoint.token.as_ref().and_then(|it| it.parse::<header::HeaderValue>().ok())
        {
            request = request.header("X-Verger-Token", token);
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        request.body(Full::from(body)).expect("targets are encoded, and the authority was checked")
    }

    async fn collect(&self, response: Response<Incoming>) -> Result<Bytes, ClientError> {
        let body = Limited::new(response.into_body(), MAX).collect().await;
        Ok(body.map_err(|error| self.unreachable(error))?.to_bytes())
    }

    fn refused(&self, status: StatusCode, body: &[u8]) -> ClientError {
        match serde_json::from_slice::<Refusal>(body) {
            Ok(Refusal { error, problem }) => ClientError::Refused {
                url: self.endpoint.to_string(),
                status: status.as_u16(),
                problem,
                error,
            },
            Err(_) => self.unexpected(format_args!("HTTP status {}", status.as_u16())),
        }
    }

    fn unreachable(&self, error: impl fmt::Display) -> ClientError {
        ClientError::Unreachable {
            url: self.endpoint.to_string(),
            error: clean(&error.to_string()),
        }
    }

    fn unexpected(&self, error: impl fmt::Display) -> ClientError {
        ClientError::Unexpected { url: self.endpoint.to_string(), error: clean(&error.to_string()) }
    }

    fn timed_out(&self, within: Duration) -> ClientError {
        ClientError::TimedOut { url: self.endpoint.to_string(), within }
    }
}

/// The changes of a tree, as they happen.
#[derive(Debug)]
pub(crate) struct ChangeStream {
    client: Client,
    _driver: Driver,
    body: Incoming,
    parser: sse::Parser,
    /// Messages that have arrived and were not returned.
    ready: VecDeque<sse::Message>,
}

impl ChangeStream {
    /// Returns the next change.
    ///
    /// # Errors
    ///
    /// If the connection ends, is silent for ten seconds, or carries something else.
    ///
    /// # Cancel safety
    ///
    /// No change is lost.
    pub(crate) async fn next(&mut self) -> Result<Change, ClientError> {
        let client = &self.client;
        loop {
            if let Some(message) = self.ready.pop_front() {
                if message.event != "change" {
                    continue;
                }
                return serde_json::from_str(&message.data)
                    .map_err(|error| client.unexpected(error));
            }
            let frame = timeout(SILENCE, self.body.frame()).await;
            let frame = frame.map_err(|_| client.timed_out(SILENCE))?;
            let frame =
                frame.ok_or_else(|| client.unreachable("the console has ended the stream"))?;
            let frame = frame.map_err(|error| client.unreachable(error))?;
            if let Some(bytes) = frame.data_ref() {
                self.ready =
                    self.parser.push(bytes).map_err(|error| client.unexpected(error))?.into();
            }
        }
    }
}

/// Encodes a value of a query.
pub(crate) fn encode(value: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte);
    let encoded = value.bytes().map(|byte| match is_plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    encoded.collect()
}
