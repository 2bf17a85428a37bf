//! How the parts of a tree find each other, and what children start beside them.

mod bus;
#[path = "../common/mod.rs"]
mod common;
mod helpers;
mod journal;
#[path = "../common/log.rs"]
mod log;
mod macros;
mod message_spans;
mod one_shot;
mod own_children;
mod own_strategies;
mod partitions;
mod services;
mod tasks;
