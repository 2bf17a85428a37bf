//! The keepers of one supervisor's leases.
//!
//! Each lease that the machine seeks has a task, a *keeper*, which asks the engine and renews.
//!
//! # Invariants
//!
//! 1. A child has at most one keeper that counts, by its number.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::task_set::TaskSet;
use crate::core::Key;
use crate::lease::{Lease, LeaseChange, LeaseEnd, holder, keep};
use crate::path::Path;
use crate::status::LeaseInfo;

/// The children that need a lease.
#[derive(Debug, Default)]
pub(super) struct LeaseTasks {
    needed: BTreeMap<Key, Needed>,
    keepers: TaskSet,
    /// How many keepers there were.
    count: u64,
}

#[derive(Debug)]
pub(super) struct Needed {
    pub(super) lease: Arc<Lease>,
    /// How many incarnations have leaked. Each may go on with the lease that it had, so the next one asks as a
    /// different holder.
    leaked: u32,
    pub(super) keeper: Option<Keeper>,
}

#[derive(Debug)]
pub(super) struct Keeper {
    number: u64,
    end: oneshot::Sender<LeaseEnd>,
    pub(super) info: Arc<LeaseInfo>,
}

impl Needed {
    /// Whether the keeper has reported all that it will.
    pub(super) fn has_ended(&self) -> bool {
        self.keeper.as_ref().is_none_or(|keeper| keeper.end.is_closed())
    }

    /// Whether the supervisor knows of the grant.
    pub(super) fn is_granted(&self) -> bool {
        self.keeper.as_ref().is_some_and(|keeper| keeper.info.token.is_some())
    }
}

impl LeaseTasks {
    /// Sets the lease that the child asks for from now on.
    pub(super) fn set(&mut self, key: Key, lease: Option<&Arc<Lease>>) {
        match (lease, self.needed.get_mut(&key)) {
            (Some(lease), Some(needed)) => needed.lease = Arc::clone(lease),
            (Some(lease), None) => {
                let needed = Needed { lease: Arc::clone(lease), leaked: 0, keeper: None };
                self.needed.insert(key, needed);
            }
            (None, _) => self.remove(key),
        }
    }

    /// Forgets a child whose lease has ended.
    pub(super) fn remove(&mut self, key: Key) {
        self.needed.remove(&key);
    }

    /// What is known of the child's lease, if that is asked for.
    pub(super) fn info(&self, key: Key) -> Option<&Arc<LeaseInfo>> {
        Some(&self.needed.get(&key)?.keeper.as_ref()?.info)
    }

    /// Waits for the keepers that give their leases back.
    pub(super) async fn until_ended(&mut self) {
        self.keepers.until_ended().await;
    }

    /// Starts a keeper of the child's lease. `report` is called with its number.
    pub(super) fn seek(
        &mut self,
        key: Key,
        path: &Path,
        report: impl Fn(u64, LeaseChange) + Send + 'static,
    ) {
        let Some(needed) = self.needed.get_mut(&key) else { return };
        self.count += 1;
        let number = self.count;
        let (end, ended) = oneshot::channel();
        let lease = Lease::clone(&needed.lease);
        let holder = holder(path, needed.leaked, lease.address());
        let info = Arc::new(LeaseInfo::sought(lease.name()));
        needed.keeper = Some(Keeper { number, end, info });
        let keeping = keep(lease, holder, ended, move |change| report(number, change));
        self.keepers.spawn(|| format!("{path} (lease)"), keeping);
    }

    /// Ends the keeper of the child's lease. `release`: no incarnation of the child is left.
    pub(super) fn end(&mut self, key: Key, release: bool) {
        let Some(needed) = self.needed.get_mut(&key) else { return };
        if !release {
            needed.leaked += 1;
        }
        if let Some(keeper) = needed.keeper.take() {
            let end = if release { LeaseEnd::Release } else { LeaseEnd::Abandon };
            // A keeper that has ended has lost the lease.
            let _ = keeper.end.send(end);
        }
    }

    /// Returns the child whose keeper has this number, unless that counts no more.
    pub(super) fn kept_by(&mut self, key: Key, number: u64) -> Option<&mut Needed> {
        let kept = |needed: &&mut Needed| {
            needed.keeper.as_ref().is_some_and(|keeper| keeper.number == number)
        };
        self.needed.get_mut(&key).filter(kept)
    }
}
