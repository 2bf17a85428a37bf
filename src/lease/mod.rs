//! Children that run on one machine at a time, guarded by leases.
//!
//! A child with a [`Lease`] runs only while its lease is granted. Until then it is on *standby*: `discovered`, ready,
//! and not a failure. If the lease is lost or can't be renewed in time, the child is stopped, and is on standby again.
//! That is no failure either, and costs no restart.
//!
//! The leases themselves are those of an existing store, which a [`LeaseEngine`] asks. [`File`] locks files of one machine. The
//! crate `verger-lease-postgres` keeps rows of PostgreSQL.

// | file | what |
// | --- | --- |
// | `engine` | what an engine is asked and answers |
// | `record` | what a store knows of a lease, and keeps with it |
// | `times` | how long a lease lasts, and when its guard acts |
// | `clock` | the time, with that of suspends |
// | `spec` | the lease of a child |
// | `guard` | the rules: what to ask next, and what an answer means |
// | `held` | the lease of one incarnation, and its memo |
// | `owner` | the name under which a child asks, with its address |
// | `keeper` | carries out what the guard decides |
// | `file` | the engine for one machine |
// | `shards` | which of many members has which of many leases |
// | `serde` | the serialised form of leases and shards |

mod clock;
mod engine;
#[cfg(unix)]
mod file;
mod guard;
#[cfg(feature = "cron")]
mod held;
mod keeper;
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

pub use self::engine::{Acquired, Claim, LeaseEngine, LeaseError, MemoWrite, Released, Renewed};
#[cfg(unix)]
pub use self::file::File;
pub(crate) use self::guard::{LeaseChange, LeaseEnd};
#[cfg(feature = "cron")]
pub(crate) use self::held::HeldLease;
pub(crate) use self::keeper::keep;
pub use self::owner::Owner;
pub(crate) use self::owner::holder;
pub use self::record::{LeaseRecord, Memo, MemoTooLong};
pub use self::shards::{Located, Shard, ShardAddress, ShardError, ShardKey, Sharded, ShardsStatus};
pub use self::spec::Lease;
pub use self::times::LeaseProblem;
