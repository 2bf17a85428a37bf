//! The HTTP service: the listener, its connections, and what they answer.

pub(crate) mod config;
pub(crate) mod listener;
mod routes;
