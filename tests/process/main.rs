//! Whole programs as processes of their own: signals, output, exit codes, and the examples.

mod application;
mod entry;
mod examples;
mod host;
mod json_log;
mod one_incident;
mod own_process;
#[cfg(feature = "periodic")]
mod panics;
mod programs;
#[cfg(feature = "metrics")]
mod recorders;
mod reload;
mod signals;
mod single_examples;
mod subscribers;
