//! Children that run on one machine at a time, guarded by leases.
//!
//! A child with a [`Lease`] runs only while its lease is granted. Until then it is on *standby*: `discovered`, ready,
//! and not a failure. If the lease is lost or can't be renewed in time, the child is stopped, and is on standby again.
//! That is no failure either, and costs no restart.
//!
//! The leases themselves are those of an existing store, which a [`LeaseEngine`] asks. [`File`] locks files of one machine. The
//! crate `verger-lease-postgres` keeps rows of PostgreSQL.
//!
//! | file | what |
//! | --- | --- |
//! | `engine` | what an engine is asked and answers |
//! | `record` | what a store knows of a lease |
//! | `memo` | a few bytes that a store keeps with a lease |
//! | `times` | how long a lease lasts, and when its guard acts |
//! | `clock` | the time, with that of suspends |
//! | `spec`, `of_child` | the lease of a child |
//! | `change` | what a keeper reports |
//! | `guard` | the rules: what to ask next, and what an answer means |
//! | `call` | calls of the user's code |
//! | `holder` | the name under which a child asks |
//! | `owner` | the address in such a name |
//! | `keeper` | carries out what the guard decides |
//! | `file` | the engine for one machine |
//! | `shards` | which of many members has which of many leases |
//! | `serde` | the serialised form of leases and shards |

mod call;
mod change;
mod clock;
mod engine;
#[cfg(unix)]
mod file;
mod guard;
mod holder;
mod keeper;
mod memo;
mod of_child;
mod owner;
mod record;
#[cfg(feature = "serde")]
mod serde;
mod shards;
mod spec;
mod times;

#[doc(inline)]
///
/// ```
/// use verger::lease::FencingToken;
///
/// let (older, newer) = (FencingToken::new(7), FencingToken::new(8));
/// assert!(older < newer);
/// assert_eq!(newer.to_string(), "8");
/// ```
pub use crate::child::FencingToken;

pub(crate) use self::change::{LeaseChange, LeaseEnd};
pub use self::engine::{Acquired, Claim, LeaseEngine, LeaseError, MemoWrite, Released, Renewed};
#[cfg(unix)]
pub use self::file::File;
pub(crate) use self::holder::holder;
pub(crate) use self::keeper::keep;
pub use self::memo::{Memo, MemoTooLong};
pub use self::owner::Owner;
pub use self::record::LeaseRecord;
pub use self::shards::{Located, Shard, ShardAddress, ShardError, ShardKey, Sharded, ShardsStatus};
pub use self::spec::Lease;
pub use self::times::LeaseProblem;
