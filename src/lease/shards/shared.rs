//! What a sharded service knows, for its coordinator and for those who look up shards.
//!
//! # Invariants
//!
//! 1. It keeps no supervisor alive, so that a description and its supervisor don't keep each other.
//! 2. Values of the user's are dropped after the lock is released.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedSender;

use super::key::Shard;
use super::member::Times;
use crate::child::{ChildSpec, MailboxControl};
use crate::handle::SupervisorHandle;
use crate::lease::{Lease, LeaseChange, Owner, holder};
use crate::runtime::{RegistrationListener, SupervisorShared};
use crate::sync::Mutex;

/// See the [module](self).
pub(super) struct Shared {
    pub(super) lease: Lease,
    pub(super) shards: NonZeroUsize,
    spec: Box<dyn Fn(Shard) -> ChildSpec + Send + Sync>,
    options: Mutex<ShardOptions>,
    /// The supervisor of the shards.
    supervisor: Mutex<Weak<SupervisorShared>>,
    state: Mutex<State>,
}

/// What can be set until the coordinator starts.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShardOptions {
    pub(super) calm: Duration,
    pub(super) max_members: usize,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) here: BTreeMap<usize, Here>,
    /// The other members, by slot.
    pub(super) members: BTreeMap<usize, Option<Owner>>,
    /// The slot of this member, and the number of shards that it is to have.
    pub(super) own: Option<(usize, usize)>,
    /// Who has shards that aren't here, and when that was seen.
    pub(super) seen: BTreeMap<usize, (Option<Owner>, Instant)>,
    notices: Option<UnboundedSender<Notice>>,
    claims: u64,
}

/// A shard that this member waits for or has.
pub(super) struct Here {
    pub(super) claim: u64,
    /// The name of the child, once it is added.
    pub(super) child: Option<String>,
    pub(super) mailbox: Option<Arc<dyn MailboxControl>>,
    pub(super) phase: Phase,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The lease isn't granted. `holder`: who has it, if that is known.
    Waiting { holder: Option<Owner> },
    /// The lease is granted.
    Running,
    /// The child is being stopped.
    Ending,
}

/// Tells the coordinator that the lease of a claimed shard is granted, or that a different member has it.
#[derive(Debug)]
pub(super) struct Notice {
    pub(super) shard: usize,
    pub(super) claim: u64,
    pub(super) is_granted: bool,
}

impl Shared {
    pub(super) fn new(
        shards: NonZeroUsize,
        lease: Lease,
        spec: Box<dyn Fn(Shard) -> ChildSpec + Send + Sync>,
    ) -> Self {
        let options = ShardOptions { calm: Duration::from_secs(10), max_members: 128 };
        Self {
            lease,
            shards,
            spec,
            options: Mutex::new(options),
            supervisor: Mutex::default(),
            state: Mutex::default(),
        }
    }

    pub(super) fn options(&self) -> ShardOptions {
        *self.options.lock()
    }

    pub(super) fn set_options(&self, set: impl FnOnce(&mut ShardOptions)) {
        set(&mut self.options.lock());
    }

    pub(super) fn times(&self) -> Times {
        Times { poll: self.lease.times.poll, calm: self.options().calm }
    }

    /// Runs a function on the state, under its lock. What it returns is dropped after that.
    pub(super) fn with<T>(&self, with: impl FnOnce(&mut State) -> T) -> T {
        with(&mut self.state.lock())
    }

    /// Returns the supervisor of the shards, if it runs.
    pub(super) fn supervisor(&self) -> Option<SupervisorHandle> {
        let supervisor = self.supervisor.lock().upgrade();
        supervisor.filter(|it| !it.inbox.is_closed()).map(SupervisorHandle::new)
    }

    pub(super) fn slot_lease(&self, slot: usize) -> Lease {
        let lease = self.lease.named(format!("{}/member-{slot}", self.lease.name()));
        Lease { on_standby: None, ..lease }
    }

    pub(super) fn shard_lease(&self, shard: usize) -> Lease {
        self.lease.named(format!("{}/shard-{shard}", self.lease.name()))
    }

    /// Sends all notices here from now on.
    pub(super) fn listen(&self, notices: UnboundedSender<Notice>) {
        self.with(|state| state.notices.replace(notices));
    }

    /// Returns whether this is the name under which a shard of this member asks for its lease.
    pub(super) fn is_own(&self, name: &str) -> bool {
        let Some(supervisor) = self.supervisor() else { return false };
        let own = holder(&supervisor.path(), 0, self.lease.address());
        name.strip_prefix(&*own).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Notes a claim, and returns the spec of its child.
    pub(super) fn claim(self: &Arc<Self>, shard: usize) -> (u64, ChildSpec) {
        let spec = (self.spec)(Shard::new(shard)).named(child_name(shard));
        let mailbox = spec.factory.mailbox().cloned();
        let (claim, before) = self.with(|state| {
            state.claims += 1;
            let claim = state.claims;
            let phase = Phase::Waiting { holder: None };
            let here = Here { claim, child: None, mailbox, phase };
            (claim, state.here.insert(shard, here))
        });
        drop(before);
        let shared = Arc::clone(self);
        let watch = move |change: &LeaseChange| shared.changed(shard, claim, change);
        (claim, spec.lease(self.shard_lease(shard).watch(Arc::new(watch))))
    }

    /// Forgets a shard that has ended.
    pub(super) fn forget(&self, shard: usize) {
        let forgotten = self.with(|state| state.here.remove(&shard));
        drop(forgotten);
    }

    /// Notes what the keeper of a claimed shard reports.
    fn changed(&self, shard: usize, claim: u64, change: &LeaseChange) {
        self.with(|state| {
            let Some(here) = state.here.get_mut(&shard).filter(|here| here.claim == claim) else {
                return;
            };
            let phase = match change {
                LeaseChange::Granted(_) => Phase::Running,
                LeaseChange::Lost(_) => Phase::Waiting { holder: None },
                LeaseChange::Standby { problem: Some(_), .. } => return,
                LeaseChange::Standby { holder, problem: None } => {
                    Phase::Waiting { holder: holder.clone().map(Owner::of) }
                }
            };
            let is_granted = phase == Phase::Running;
            if here.phase != Phase::Ending {
                here.phase = phase;
            }
            if let Some(notices) = &state.notices {
                // A coordinator that has ended reads the state when it starts again.
                let _ = notices.send(Notice { shard, claim, is_granted });
            }
        });
    }
}

/// Returns the name of the child of a shard.
fn child_name(shard: usize) -> String {
    format!("shard-{shard}")
}

/// Returns the shard of a child with this name, after which its serial number follows.
pub(super) fn shard_of(child: &str) -> Option<usize> {
    let (shard, _serial) = child.strip_prefix("shard-")?.split_once('#')?;
    shard.parse().ok()
}

/// Each incarnation of the supervisor of the shards begins without any.
impl RegistrationListener for Shared {
    fn registered(&self, supervisor: &Arc<SupervisorShared>) {
        *self.supervisor.lock() = Arc::downgrade(supervisor);
        let before = self.with(|state| std::mem::take(&mut state.here));
        drop(before);
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("lease", &self.lease)
            .field("shards", &self.shards)
            .field("options", &*self.options.lock())
            .finish_non_exhaustive()
    }
}
