//! Where a shard is.

use super::super::engine::LeaseError;
use super::super::owner::Owner;
use super::key::Shard;
use crate::error::ControlError;
use crate::mailbox::Address;

/// Where a shard is, as [`Sharded::locate`](super::Sharded::locate) returns it.
///
/// ```
/// use verger::lease::{LeaseError, Located, Sharded};
///
/// async fn answer(orders: &Sharded, customer: &str) -> Result<String, LeaseError> {
///     Ok(match orders.locate(customer).await? {
///         Located::Here => "answer the request".to_owned(),
///         Located::Elsewhere { owner: Some(owner) } => format!("send it to {:?}", owner.address()),
///         _ => "try again later".to_owned(),
///     })
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Located {
    /// This member has the shard.
    Here,
    /// Another member has the shard.
    Elsewhere {
        /// That member, if the engine knows it.
        owner: Option<Owner>,
    },
    /// No member has the shard right now: its last owner is gone, or hands it over.
    Nowhere,
}

/// The way to a shard, as [`Sharded::address`](super::Sharded::address) returns it.
///
/// Messages don't leave the process. For a shard of another member, send a request of your own to the address that its
/// [owner](Owner::address) advertises.
///
/// The example of [`Sharded`](super::Sharded) sends a message to one.
#[derive(Clone, Debug)]
pub enum ShardAddress<M> {
    /// This member has the shard. The address is that of its mailbox, and is closed once the shard is handed over.
    Here(Address<M>),
    /// Another member has the shard.
    Elsewhere {
        /// That member, if the engine knows it.
        owner: Option<Owner>,
    },
    /// No member has the shard right now: its last owner is gone, or hands it over.
    Nowhere,
}

/// Why a shard isn't found.
///
/// ```
/// use verger::lease::{ShardAddress, ShardError, Sharded};
///
/// async fn order(orders: &Sharded, customer: &str) {
///     match orders.address::<String, _>(customer).await {
///         Ok(ShardAddress::Here(address)) => drop(address.try_send("two apples".to_owned())),
///         Ok(_) => println!("not here"),
///         Err(ShardError::Lease(error)) => println!("the store gives no answer: {error}"),
///         Err(error) => eprintln!("{error}"),
///     }
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShardError {
    /// It isn't known who has the shard, because the store gives no answer.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The shard is here, and has no such mailbox.
    #[error(transparent)]
    Child(#[from] ControlError),
}

/// What a member knows of a sharded service, as [`Sharded::status`](super::Sharded::status) returns it.
///
/// The example of [`Sharded::status`](super::Sharded::status) reads one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShardsStatus {
    /// How many shards there are in all.
    pub shards: usize,
    /// The slot of this member. `None` while it has none.
    pub slot: Option<usize>,
    /// How many shards this member is to have. 0 while it has no slot.
    pub share: usize,
    /// The shards that this member has, in ascending order.
    pub here: Vec<Shard>,
    /// The shards that this member waits for, and who has them, if that is known.
    pub waiting: Vec<(Shard, Option<Owner>)>,
    /// The shards that this member stops, to hand them over.
    pub ending: Vec<Shard>,
    /// The other members, by slot, if the engine knows their names.
    pub members: Vec<(usize, Option<Owner>)>,
}
