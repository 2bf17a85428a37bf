//! Storage: the writer gathers what the sources send, the database commits it.
//!
//! The two are restarted together. If the database hangs, it is the writer that notices.

pub(crate) mod batch;
pub(crate) mod database;
pub(crate) mod sqlite;
pub(crate) mod writer;
