//! What a request has to satisfy, and the headers of each answer.
//!
//! Knows names of hosts, headers and limits. It doesn't know what a request is about.
//!
//! # Invariants
//!
//! 1. `Host` is checked before anything else, so that a web site that points its own name at this address learns
//!    nothing.
//! 2. Whether actions are allowed is checked before the token is looked at, and the token before the body is read.
//! 3. The files of the page need no token: they contain nothing of the program.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Query, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderName, ORIGIN,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::problem::HttpProblem;
use super::shared::ConsoleShared;
use crate::clock::now;
use crate::subscriber;

/// The most bytes of a body.
pub(super) const BODY: usize = 16 * 1024;
/// The most bytes of a body with a configuration file.
pub(super) const FILE: usize = 1024 * 1024;
/// How long a body may take.
const BODY_WITHIN: Duration = Duration::from_secs(10);
/// The time in which wrong tokens are logged once.
const REFUSALS: Duration = Duration::from_secs(60);
/// The header with the token.
const TOKEN: HeaderName = HeaderName::from_static("x-verger-token");
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// So that no other site shows a picture of the tree.
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

const HEADERS: [(HeaderName, &str); 6] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (X_FRAME_OPTIONS, "DENY"),
    (RESOURCE_POLICY, "same-origin"),
    (CACHE_CONTROL, "no-store"),
];

/// Answers a request for a foreign host itself, and adds the headers that every answer has.
pub(super) async fn guard(
    State(console): State<Arc<ConsoleShared>>,
    request: Request,
    next: Next,
) -> Response {
    let headers = request.headers();
    let mut response = if !is_own(headers, &console.options.hosts) {
        let text = "the request is for a different host; see `Console::allow_host`";
        HttpProblem::forbidden("foreign_host", text).into_response()
    } else if request.method() == Method::GET && has_foreign_origin(headers) {
        // It couldn't read the answer, but a stream would take the place of a page.
        foreign_origin().into_response()
    } else if request.method() == Method::GET
        && request.uri().path().starts_with("/api/")
        && let Err(problem) = console.check_read(headers)
    {
        problem.into_response()
    } else {
        next.run(request).await
    };
    for (name, value) in HEADERS {
        // The policy of a picture is its own.
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

impl ConsoleShared {
    /// Checks the token of a request that reads, if reading needs one.
    fn check_read(&self, headers: &HeaderMap) -> Result<(), HttpProblem> {
        let Some(token) = &self.options.read_token else { return Ok(()) };
        let given = only(headers, &TOKEN).unwrap_or_default();
        if token.is(given.as_bytes()) || self.token.is(given.as_bytes()) {
            return Ok(());
        }
        self.note_refusal(given);
        let text = "reading needs a token; send it in the header `X-Verger-Token`, or open the page and type it";
        Err(HttpProblem::forbidden("bad_token", text))
    }

    /// Logs that a request had a wrong token, once in [`REFUSALS`]. A missing one is a page that doesn't know it yet.
    fn note_refusal(&self, given: &str) {
        if given.is_empty() {
            return;
        }
        let now = now();
        let mut last = self.refused.lock();
        if last.is_none_or(|last| now.saturating_duration_since(last) >= REFUSALS) {
            *last = Some(now);
            drop(last);
            subscriber::warn!(target: "verger::console", "refused a request with a wrong token");
        }
    }
}

fn foreign_origin() -> HttpProblem {
    HttpProblem::forbidden("foreign_origin", "the request comes from the page of a different site")
}

/// Returns the only value of a header.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    value.to_str().ok().filter(|_| values.next().is_none())
}

fn is_own(headers: &HeaderMap, allowed: &[String]) -> bool {
    let Some(host) = only(headers, &HOST) else { return false };
    let host = host.to_ascii_lowercase();
    // Without the port, and with the brackets of an IPv6 address.
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => name,
        _ => &host,
    };
    NAMES.contains(&name) || allowed.iter().any(|it| it == name || *it == host)
}

fn has_foreign_origin(headers: &HeaderMap) -> bool {
    if !headers.contains_key(ORIGIN) {
        return false;
    }
    let origin = only(headers, &ORIGIN).and_then(|it| it.split_once("://"));
    let (Some((_, origin)), Some(host)) = (origin, only(headers, &HOST)) else { return true };
    !origin.eq_ignore_ascii_case(host)
}

/// The parameters of a request.
pub(super) struct Asked<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequestParts<Arc<ConsoleShared>> for Asked<T> {
    type Rejection = HttpProblem;

    async fn from_request_parts(
        parts: &mut Parts,
        _console: &Arc<ConsoleShared>,
    ) -> Result<Self, HttpProblem> {
        let query = Query::try_from_uri(&parts.uri);
        query.map(|Query(asked)| Self(asked)).map_err(|it| HttpProblem::bad_request(it.body_text()))
    }
}

/// The content of a request that may change something, and the user that a proxy has named.
pub(super) struct Permitted<T>(pub(super) T, pub(super) Option<String>);

impl<T: DeserializeOwned> FromRequest<Arc<ConsoleShared>> for Permitted<T> {
    type Rejection = HttpProblem;

    async fn from_request(
        request: Request,
        console: &Arc<ConsoleShared>,
    ) -> Result<Self, HttpProblem> {
        let headers = request.headers();
        let user = console.options.user(headers);
        if !console.options.actions {
            let text = "this console only shows the tree; see `Console::allow_actions`";
            return Err(HttpProblem::forbidden("actions_off", text));
        }
        if has_foreign_origin(headers) {
            return Err(foreign_origin());
        }
        let given = only(headers, &TOKEN).unwrap_or_default();
        if !console.token.is(given.as_bytes()) {
            console.note_refusal(given);
            let text = "the token is missing or wrong; send it in the header `X-Verger-Token`, or open the URL that the \
                 program has logged at its start";
            return Err(HttpProblem::forbidden("bad_token", text));
        }
        let of_json = |it: &str| {
            let essence = it.split(';').next().unwrap_or_default();
            essence.trim().eq_ignore_ascii_case("application/json")
        };
        if !only(headers, &CONTENT_TYPE).is_some_and(of_json) {
            let text = "the content has a different type; send `Content-Type: application/json`";
            return Err(HttpProblem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "content_type", text));
        }
        let body = match timeout(BODY_WITHIN, Bytes::from_request(request, console)).await {
            Err(_) => {
                let text = "the request took too long";
                return Err(HttpProblem::new(StatusCode::REQUEST_TIMEOUT, "timeout", text));
            }
            Ok(Err(it)) if it.status() == StatusCode::PAYLOAD_TOO_LARGE => {
                let text =
                    "the content is too large: 16 KiB at most, 1 MiB with a configuration file";
                return Err(HttpProblem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", text));
            }
            Ok(Err(it)) => return Err(HttpProblem::bad_request(it.body_text())),
            Ok(Ok(body)) => body,
        };
        let invalid = |error: serde_json::Error| HttpProblem::bad_request(error.to_string());
        serde_json::from_slice(&body).map(|content| Self(content, user)).map_err(invalid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: HeaderName, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name.clone(), HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn a_host_is_a_loopback_name_or_was_allowed() {
        let allowed = ["ops.example.com".to_owned(), "10.0.0.7".to_owned(), "a:81".to_owned()];
        let is_own = |host: &[&str]| is_own(&headers(HOST, host), &allowed);
        for own in [
            "localhost",
            "LocalHost:7007",
            "127.0.0.1",
            "127.0.0.1:1",
            "[::1]",
            "[::1]:7007",
            "ops.example.com",
            "OPS.example.com:443",
            "10.0.0.7:80",
            "a:81",
        ] {
            assert!(is_own(&[own]), "{own}");
        }
        for foreign in [
            "",
            "evil.example",
            "localhost.evil.example",
            "localhost@evil.example:80",
            "127.0.0.2",
            "::1",
            "[::1",
            "xops.example.com",
            "a",
            "a:80",
            "localhost:80:80",
        ] {
            assert!(!is_own(&[foreign]), "{foreign}");
        }
        assert!(!is_own(&[]) && !is_own(&["localhost", "localhost"]), "one, and only one");
    }

    #[test]
    fn an_origin_is_absent_or_that_of_the_same_host_and_port() {
        let is_foreign = |origin: &[&str]| {
            let mut all = headers(ORIGIN, origin);
            all.insert(HOST, HeaderValue::from_static("localhost:7007"));
            has_foreign_origin(&all)
        };
        assert!(!is_foreign(&[]));
        assert!(
            !is_foreign(&["http://localhost:7007"]) && !is_foreign(&["https://LOCALHOST:7007"])
        );
        for foreign in [
            "null",
            "",
            "http://localhost",
            "http://localhost:7008",
            "http://evil.example",
            "file://",
        ] {
            assert!(is_foreign(&[foreign]), "{foreign}");
        }
        assert!(is_foreign(&["http://localhost:7007", "http://localhost:7007"]));
    }
}
