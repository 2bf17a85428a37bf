//! The rules of OTP's and Elixir's supervisors, by the number of each behaviour.

mod admin;
mod auto_shutdown;
#[path = "../common/mod.rs"]
mod common;
mod counts;
mod edges;
mod ends;
#[path = "../common/journal.rs"]
mod journal;
mod limits;
#[path = "../common/log.rs"]
mod log;
mod loops;
mod macros;
mod reports;
mod restart;
mod restart_types;
mod specs;
mod start;
mod stop;
