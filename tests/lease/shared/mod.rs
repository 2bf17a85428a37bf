//! What the tests of the engines share. Those of `crates/lease-postgres` include this directory.
//!
//! | file | what |
//! | --- | --- |
//! | `requests` | requests to an engine |
//! | `rules` | the rules of an engine, for two engines of one store |
//! | `peer` | another process, which asks an engine |
//! | `wrong_clock` | another process whose date is wrong |
//! | `checker` | processes that have a tree and a lease, faults, and a judge |
//! | `folder` | a temporary directory |
//! | `installed` | programs of the system |
//!
//! Each of the two crates has a module `store`, with the engine, the store of the checker, and what can go wrong with it, and a
//! module `register`, with the resource to which the processes of the checker write.

pub(crate) mod checker;
pub(crate) mod folder;
pub(crate) mod installed;
pub(crate) mod peer;
pub(crate) mod requests;
pub(crate) mod rules;
pub(crate) mod wrong_clock;
