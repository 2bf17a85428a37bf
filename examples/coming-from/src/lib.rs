//! The code of other systems that the book's chapters *Coming from …* show.
//!
//! A block ```` ```rust,ignore ```` of `book/src/coming/` is a part of a file in `src`, a block ```` ```erlang ```` or ```` ```elixir ````
//! is a whole file in `erlang`: verger's `tests/prose` checks both. The tests of each module run its listings, so that what a chapter says
//! of another system was seen.

#![expect(dead_code, reason = "the listings are used by the tests")]

mod elfo;
mod kameo;
mod ractor;
mod ractor_supervisor;
mod task_supervisor;
mod tokio_graceful_shutdown;
