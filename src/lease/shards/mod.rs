//! Shards: parts of one service, each of which runs on one of many members at a time.
//!
//! A member is a process that runs shards. Each shard is a child with a lease of its own, `orders/shard-17`, so that two
//! members never run it at once, whatever they believe. The rules here only decide which member asks for which lease.
//!
//! # How members know each other
//!
//! Each member keeps the lease of a *slot*, `orders/member-3`: the lowest one that is free when it starts. It asks the engine
//! for the [holder](super::LeaseEngine::holder) of each other slot. The set of taken slots is all that a member knows, and
//! from it follows how many shards each member is to have, and which ones first.
//!
//! This needs nothing but the requests of a [`LeaseEngine`](super::LeaseEngine), so it works with a directory, a database
//! and a coordination service alike. No member leads, so there is no election, and a decision needs no message
//! that could be lost. The price is that each member asks about each other one: at most ten requests per second of each
//! member, so that a change is noticed within 6 s among 50 members, and within two minutes among 1,000. A list that one member
//! writes and all read would be cheaper there, but a [memo](super::Memo) is too short for one.
//!
//! | file | what |
//! | --- | --- |
//! | `table` | the home of each shard: the slot that it belongs to |
//! | `view` | which slots are taken |
//! | `holdings` | the shards that a member waits for or has |
//! | `member` | the rules: what to claim, what to hand over |
//! | `key` | shards, and the keys that belong to them, with hashes that never change |
//! | `shared` | what a sharded service knows |
//! | `children` | the shards of a member as children of their supervisor |
//! | `coordinator` | carries out what a member decides |
//! | `sharded` | the service as a part of a tree, and where a shard is |
//!
//! # What it doesn't know
//!
//! It doesn't know how much work a shard is: shares are numbers of shards. It never asks a member to hand over a shard:
//! the member sees for itself that the shard is another one's by now.

mod children;
mod coordinator;
mod holdings;
mod key;
mod member;
mod sharded;
mod shared;
#[cfg(test)]
mod simulation;
mod table;
mod view;

pub use self::key::{Shard, ShardKey};
pub use self::sharded::{Located, ShardAddress, ShardError, Sharded, ShardsStatus};
