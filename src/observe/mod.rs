//! Views of a [`Status`](crate::Status): text and JSON.
