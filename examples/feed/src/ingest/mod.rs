//! Ingest: the sources of lines, a file and any number of connections.

pub(crate) mod connection;
pub(crate) mod file;
pub(crate) mod lines;
pub(crate) mod listener;
pub(crate) mod pace;
pub(crate) mod protocol;

use std::time::Duration;

/// How long a source waits for a receipt before it fails. It is longer than it takes to detect that
/// the database hangs, and to restart it and the writer.
const PATIENCE: Duration = Duration::from_secs(30);

/// A batch takes no further line once it has this many lines or bytes.
const MAX_LINES: usize = 256;
const MAX_BYTES: usize = 1 << 20;
