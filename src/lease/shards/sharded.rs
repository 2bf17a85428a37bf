//! A service in shards, and the way to each of them.

use std::any::type_name;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::coop::consume_budget;

use super::coordinator::{coordinate, look};
use super::key::{Shard, ShardKey};
use super::member::Seen;
use super::shared::{Phase, Shared};
use crate::child::{ChildSpec, worker};
use crate::clock::now;
use crate::error::ControlError;
use crate::lease::{Lease, LeaseError, Owner};
use crate::mailbox::Address;
use crate::path::Path;
use crate::policy::Strategy;
use crate::spec::{DynamicSupervisor, Supervisor};

/// A service in shards, which all processes that run it divide among themselves.
///
/// Each process, a *member*, makes the same value and adds its [`spec`](Self::spec) to its tree. The members claim the
/// shards by leases: each shard runs on one member at a time, and each member has an equal share. A key belongs to one
/// [`Shard`], and [`address`](Self::address) finds its mailbox, or says which member has it.
///
/// ```
/// # #[cfg(feature = "testing")] {
/// use verger::lease::{Lease, ShardAddress, Sharded};
/// use verger::mailbox::Inbox;
/// use verger::testing::MemoryLeases;
/// use verger::{Context, Exit, Supervisor, mailbox, worker_with_mailbox};
///
/// async fn serve(_: Context, mut inbox: Inbox<String>) -> Exit {
///     while let Some(order) = inbox.recv().await {
///         println!("{order}");
///     }
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// // In a program, this is the engine of a store that all members use.
/// let leases = MemoryLeases::new();
/// let lease = Lease::new("orders", leases).advertise("10.0.0.7:8080");
/// let orders = Sharded::new(16, lease, |_shard| {
///     let (_, mailbox) = mailbox();
///     worker_with_mailbox("orders", mailbox, serve)
/// });
/// let app = Supervisor::builder("app").child(orders.spec()).build()?.start().await?;
///
/// # tokio::time::sleep(std::time::Duration::from_secs(5)).await;
/// match orders.address::<String, _>("alice").await? {
///     ShardAddress::Here(address) => address.send("two apples".to_owned()).await?,
///     ShardAddress::Elsewhere { owner } => println!("send it to {owner:?}"),
///     ShardAddress::Nowhere => println!("try again"),
/// }
/// # assert_eq!(orders.status().here.len(), 16);
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// # run().unwrap();
/// # }
/// ```
///
/// # Members
///
/// The lease `orders` itself isn't used. A member keeps the lease `orders/member-3` of the lowest slot that is free, and
/// those of its shards, such as `orders/shard-17`. It looks at the slots of the others one after another, and sends at
/// most ten requests per second for that with the default [`poll`](Lease::poll), on which all these times depend. So
/// a change is noticed within 6 s among up to 50 members, and later among more: within two minutes among 1,000.
///
/// * **A member joins.** Once its view of the others hasn't changed for 2 s, it asks for its share of the shards. Their
///   owners notice it, wait until the members haven't changed for the [calm](Self::calm), and hand over.
/// * **A member leaves.** It releases its slot, stops its shards with their grace and releases them. The others take
///   over as soon as they notice.
/// * **A member crashes**, or loses its connection to the store. Its leases expire, and the others take over.
///
/// In each case about as many shards move as have to.
///
/// # Handing over
///
/// An owner stops one shard at a time, as [`stop_child`](crate::SupervisorHandle::stop_child) does, with the
/// grace of the shard. It then releases its lease, and stops the next one only after another member has the lease.
/// Shards without an owner are claimed at once. A member has at most `shards / members` shards, rounded up, plus those
/// that it has yet to hand over.
///
/// # In the tree
///
/// The supervisor has the name of the lease, with `-` for each `/`, and two children. `shards` is a dynamic supervisor
/// with a child `shard-17#1` for each shard that this member has or waits for, and the status shows its lease.
/// `coordinator` makes the claims. A shard that ends for good, whose first start fails, or that a call has stopped, is
/// claimed again after the [calm](Self::calm).
///
/// All members must have the same number of shards, the same name and [`ttl`](Lease::ttl) of the lease. They may have
/// different versions of this crate. To change the number of shards, use a different name, or stop all members before.
///
/// A value belongs to one place of one tree. Clones share it.
#[derive(Clone)]
pub struct Sharded {
    shared: Arc<Shared>,
}

impl Sharded {
    /// Creates the value for a service with this many shards.
    ///
    /// `lease` has the name, the store and the times of all its leases. `spec` describes a shard, and is called each
    /// time that this member claims it. The name and the lease of what it returns are replaced. If it panics, the
    /// coordinator fails.
    ///
    /// The number can't be changed while members run: choose about ten times as many shards as there will be members.
    ///
    /// # Panics
    ///
    /// If `shards` is 0.
    pub fn new<S: Into<ChildSpec>>(
        shards: usize,
        lease: Lease,
        spec: impl Fn(Shard) -> S + Send + Sync + 'static,
    ) -> Self {
        let Some(shards) = NonZeroUsize::new(shards) else {
            panic!("`{}` has 0 shards; write 1 or more", lease.name());
        };
        let spec = Box::new(move |shard| spec(shard).into());
        Self { shared: Arc::new(Shared::new(shards, lease, spec)) }
    }

    /// Sets how long the members have to be unchanged before shards are handed over. Default: 10 s.
    ///
    /// It keeps shards in place while members start one after another, or a member is replaced. It applies from the next
    /// start of the coordinator on, so set it before the tree starts.
    #[must_use]
    pub fn calm(self, calm: Duration) -> Self {
        self.shared.set_options(|options| options.calm = calm);
        self
    }

    /// Sets how many members there are at most. Default: 128.
    ///
    /// A member that finds no free slot has no shards, and tries again. A higher number costs requests only when a member
    /// starts. Give all members the same one, before the tree starts.
    #[must_use]
    pub fn max_members(self, members: usize) -> Self {
        self.shared.set_options(|options| options.max_members = members.max(1));
        self
    }

    /// Returns the spec of the supervisor, as a child of another one.
    ///
    /// Invalid times of the lease, and shards whose grace doesn't fit into them, are found when they start.
    pub fn spec(&self) -> ChildSpec {
        let mut shards = DynamicSupervisor::builder("shards");
        shards.description.options.registration = Some(Arc::clone(&self.shared) as _);
        let shared = Arc::clone(&self.shared);
        let coordinator = worker("coordinator", move |ctx| coordinate(ctx, Arc::clone(&shared)));
        let name = self.shared.lease.name().replace('/', "-");
        // The coordinator knows the shards of the supervisor that was there when it started.
        let builder = Supervisor::builder(name).strategy(Strategy::RestForOne);
        builder.child(shards.into_child()).child(coordinator).into_child()
    }

    /// Returns how many shards there are.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.shared.shards.get()
    }

    /// Returns the shard that the key belongs to. See [`Shard::of`].
    #[must_use]
    pub fn shard<K: ShardKey + ?Sized>(&self, key: &K) -> Shard {
        Shard::of(key, self.shards())
    }

    /// Returns where the shard of the key is.
    ///
    /// For a shard of another member, the store is asked, and the answer is used again for one
    /// [`poll`](Lease::poll). It may be out of date by the time that the caller uses it, so the owner has to refuse
    /// requests for shards that it doesn't have: it can call this method, too.
    ///
    /// # Errors
    ///
    /// [`LeaseError`] if the store gives no answer.
    ///
    /// # Panics
    ///
    /// If it has to ask outside of a tokio runtime with timers enabled.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe.
    pub async fn locate<K: ShardKey + ?Sized>(&self, key: &K) -> Result<Located, LeaseError> {
        consume_budget().await;
        self.locate_shard(self.shard(key)).await
    }

    /// Returns the address of the shard of the key if this member has it, or where it is.
    ///
    /// # Errors
    ///
    /// * [`ShardError::Lease`] if the store gives no answer,
    /// * [`ShardError::Child`] if the shard is here, and has no mailbox or one for messages of a different type.
    ///
    /// # Panics
    ///
    /// If it has to ask outside of a tokio runtime with timers enabled.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe.
    pub async fn address<M: Send + 'static, K: ShardKey + ?Sized>(
        &self,
        key: &K,
    ) -> Result<ShardAddress<M>, ShardError> {
        consume_budget().await;
        let shard = self.shard(key);
        if let Some(address) = self.address_here(shard) {
            return Ok(ShardAddress::Here(address?));
        }
        Ok(match self.locate_shard(shard).await? {
            Located::Elsewhere { owner } => ShardAddress::Elsewhere { owner },
            Located::Nowhere => ShardAddress::Nowhere,
            Located::Here => match self.address_here(shard) {
                Some(address) => ShardAddress::Here(address?),
                None => ShardAddress::Nowhere,
            },
        })
    }

    /// Returns what this member knows. It asks no store.
    ///
    /// ```
    /// # #[cfg(feature = "testing")] {
    /// # use verger::lease::{Lease, Sharded};
    /// # use verger::testing::MemoryLeases;
    /// # use verger::{Context, worker};
    /// let orders = Sharded::new(16, Lease::new("orders", MemoryLeases::new()), |_shard| {
    ///     worker("orders", async |ctx: Context| ctx.cancelled().await)
    /// });
    /// assert!(orders.status().here.is_empty());
    /// # }
    /// ```
    #[must_use]
    pub fn status(&self) -> ShardsStatus {
        let shards = self.shards();
        self.shared.with(|state| {
            let (slot, share) = state.own.unzip();
            let mut status = ShardsStatus {
                shards,
                slot,
                share: share.unwrap_or_default(),
                here: Vec::new(),
                waiting: Vec::new(),
                ending: Vec::new(),
                members: state.members.iter().map(|(slot, it)| (*slot, it.clone())).collect(),
            };
            for (number, here) in &state.here {
                let shard = Shard::new(*number);
                match &here.phase {
                    Phase::Running => status.here.push(shard),
                    Phase::Waiting { holder } => status.waiting.push((shard, holder.clone())),
                    Phase::Ending => status.ending.push(shard),
                }
            }
            status
        })
    }

    /// Returns the address of a shard that this member has.
    fn address_here<M: Send + 'static>(
        &self,
        shard: Shard,
    ) -> Option<Result<Address<M>, ControlError>> {
        let mailbox = self.shared.with(|state| {
            let here = state.here.get(&shard.number())?;
            (here.phase == Phase::Running).then(|| here.mailbox.clone())
        })?;
        let path = || match self.shared.supervisor() {
            Some(supervisor) => supervisor.path().join(&format!("shard-{shard}")),
            None => Path::root(&format!("shard-{shard}")),
        };
        let Some(mailbox) = mailbox else {
            return Some(Err(ControlError::NoMailbox { path: path() }));
        };
        let actual = mailbox.message_type();
        let address = Address::of(mailbox);
        Some(address.ok_or_else(|| ControlError::WrongMessageType {
            path: path(),
            requested: type_name::<M>(),
            actual,
        }))
    }

    async fn locate_shard(&self, shard: Shard) -> Result<Located, LeaseError> {
        let (number, fresh) = (shard.number(), self.shared.lease.times.poll);
        let known = self.shared.with(|state| {
            match state.here.get(&number).map(|here| &here.phase) {
                Some(Phase::Running) => return Some(Located::Here),
                Some(Phase::Waiting { holder: Some(owner) }) => {
                    return Some(Located::Elsewhere { owner: Some(owner.clone()) });
                }
                Some(Phase::Waiting { holder: None } | Phase::Ending) | None => {}
            }
            let (owner, at) = state.seen.get(&number)?;
            let is_fresh = now().saturating_duration_since(*at) < fresh;
            is_fresh.then(|| Located::Elsewhere { owner: owner.clone() })
        });
        if let Some(located) = known {
            return Ok(located);
        }
        let sight = look(self.shared.shard_lease(number)).await;
        let located = match sight.seen {
            // This member is about to release the lease, or to start the shard with it.
            Seen::Taken if sight.holder.as_deref().is_some_and(|it| self.shared.is_own(it)) => {
                Located::Nowhere
            }
            Seen::Taken => Located::Elsewhere { owner: sight.holder.map(Owner::of) },
            Seen::Unknown => {
                let problem = sight.problem.as_deref().unwrap_or("the store gives no answer");
                return Err(LeaseError::new(problem));
            }
            Seen::Free | Seen::Mine => Located::Nowhere,
        };
        self.shared.with(|state| match &located {
            Located::Elsewhere { owner } => {
                state.seen.insert(number, (owner.clone(), now()));
            }
            Located::Here | Located::Nowhere => {
                state.seen.remove(&number);
            }
        });
        Ok(located)
    }
}

/// The same as [`Sharded::spec`].
impl From<&Sharded> for ChildSpec {
    fn from(sharded: &Sharded) -> Self {
        sharded.spec()
    }
}

/// The same as [`Sharded::spec`].
impl From<Sharded> for ChildSpec {
    fn from(sharded: Sharded) -> Self {
        sharded.spec()
    }
}

impl fmt::Debug for Sharded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sharded")
            .field("lease", self.shared.lease.name())
            .field("shards", &self.shards())
            .finish_non_exhaustive()
    }
}

/// Where a shard is, as [`Sharded::locate`](Sharded::locate) returns it.
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

/// The way to a shard, as [`Sharded::address`](Sharded::address) returns it.
///
/// Messages don't leave the process. For a shard of another member, send a request of your own to the address that its
/// [owner](Owner::address) advertises.
///
/// The example of [`Sharded`](Sharded) sends a message to one.
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

/// What a member knows of a sharded service, as [`Sharded::status`](Sharded::status) returns it.
///
/// The example of [`Sharded::status`](Sharded::status) reads one.
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
