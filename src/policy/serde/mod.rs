//! Reading and writing of policies.
//!
//! Deserialising a policy also checks it: a value that is invalid, or that has no effect, is an
//! error that says what to write instead. Code (predicates about errors, custom curves, iterators)
//! is written as its name, and can't be read.

mod backoff;
mod dead_letter_log;
pub(super) mod duration;
pub(crate) mod intensity;
mod jitter;
mod on_exhausted;
mod one_of;
mod reset;
pub(crate) mod restart_policy;
#[cfg(test)]
mod tests;
mod trigger;
pub(crate) mod word_or_table;
