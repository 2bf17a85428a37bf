//! Ingest: where lines come from, a file and any number of connections.

pub(crate) mod connection;
pub(crate) mod file;
pub(crate) mod lines;
pub(crate) mod listener;
pub(crate) mod pace;
pub(crate) mod protocol;

use std::time::Duration;

/// How long a source waits for the writer before it fails. Longer than it takes to find the database
/// hanging, and to restart it and the writer.
const PATIENCE: Duration = Duration::from_secs(30);

/// A batch takes no further line beyond this many lines or bytes.
const MAX_LINES: usize = 256;
const MAX_BYTES: usize = 1 << 20;
