//! The bounds on what peers can make the service keep.
//!
//! The README lists what each of them defends against.

use std::time::Duration;

/// Connections of the line protocol at once, unless `--connections` says otherwise.
pub(crate) const CONNECTIONS: usize = 512;

/// HTTP connections at once. Each serves one request.
pub(crate) const REQUESTS: usize = 64;

/// The longest head of an HTTP request, in bytes.
pub(crate) const MAX_HEAD: usize = 16 << 10;

/// Open files besides connections and built-in clients: sockets, input, databases, standard streams.
pub(crate) const OTHER_FILES: usize = 32;

/// The longest line of a connection, in bytes.
pub(crate) const MAX_LINE: usize = 2 << 20;

/// How much a connection reads at once, in bytes. Each connection may keep twice as much of an
/// unfinished line without a share of [`LONG_LINES`].
pub(crate) const CHUNK: usize = 64 << 10;

/// What long lines of all connections together may take, in bytes, until they are stored.
pub(crate) const LONG_LINES: usize = 64 << 20;

/// How long a line may take from its first byte to its newline.
pub(crate) const LINE_TIME: Duration = Duration::from_secs(30);

/// Batches that wait for storage at once. A source waits before it sends a further one.
pub(crate) const OFFERS: usize = 1_000;
