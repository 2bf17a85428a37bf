//! Views of a [`Status`](crate::Status): text and JSON.

#[cfg(feature = "json")]
mod json;
mod text;
