//! Errors as answers: an HTTP status, a word for programs, and a text for people.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::error::ControlError;

/// See the [module](self).
pub(super) struct HttpProblem {
    status: StatusCode,
    word: &'static str,
    text: String,
}

impl HttpProblem {
    pub(super) fn new(status: StatusCode, word: &'static str, text: impl Into<String>) -> Self {
        Self { status, word, text: text.into() }
    }

    pub(super) fn bad_request(text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", text)
    }

    pub(super) fn forbidden(word: &'static str, text: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, word, text)
    }

    pub(super) fn not_found(text: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", text)
    }

    pub(super) fn conflict(word: &'static str, text: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, word, text)
    }

    pub(super) fn unavailable(word: &'static str, text: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, word, text)
    }
}

impl From<ControlError> for HttpProblem {
    fn from(error: ControlError) -> Self {
        let text = error.to_string();
        match error {
            ControlError::NotFound { .. } => Self::not_found(text),
            ControlError::Ended { .. } | ControlError::ShuttingDown { .. } => {
                Self::unavailable("shutting_down", text)
            }
            ControlError::NotAChild { .. }
            | ControlError::NotASupervisor { .. }
            | ControlError::NoMailbox { .. }
            | ControlError::WrongMessageType { .. }
            | ControlError::InvalidSpec(_) => Self::bad_request(text),
            ControlError::ActivationFailed { .. } => Self::conflict("failed", text),
            _ => Self::conflict("wrong_state", text),
        }
    }
}

impl IntoResponse for HttpProblem {
    fn into_response(self) -> Response {
        #[derive(Serialize)]
        struct Body<'a> {
            error: &'a str,
            problem: &'a str,
        }

        let Self { status, word, text } = self;
        let mut response = (status, json(&Body { error: &text, problem: word })).into_response();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        }
        response
    }
}

/// Returns an answer in JSON.
pub(super) fn json(body: &impl Serialize) -> Response {
    json_bytes(json_text(body))
}

/// Returns an answer whose body is JSON.
pub(super) fn json_bytes(body: impl IntoResponse) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

pub(super) fn json_text(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).expect("all keys are strings and no field fails to serialise")
}
