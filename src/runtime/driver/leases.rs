//! The leases of one supervisor's children.
//!
//! Each lease that the machine seeks has a task, a *keeper*, which asks the engine and renews. What the keeper reports
//! comes back as a request, because the machine needs more than the event: the token and the present holder. The
//! machine decides what follows.
//!
//! # Invariants
//!
//! 1. A child has at most one keeper that counts. What an earlier one reports is ignored.
//! 2. The supervisor ends after its keepers, so that a lease which is given back is free for the next holder.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::oneshot;

use super::state::Driver;
use super::task_set::TaskSet;
use crate::core::{Key, MachineEvent};
use crate::lease::{Lease, LeaseChange, LeaseEnd, holder, keep};
use crate::properties::Properties;
use crate::runtime::log;
use crate::runtime::request::Request;
use crate::status::{EventKind, LeaseInfo};

/// The children that need a lease.
#[derive(Debug, Default)]
pub(super) struct Leases {
    needed: BTreeMap<Key, Needed>,
    keepers: TaskSet,
    /// How many keepers there were.
    count: u64,
}

#[derive(Debug)]
struct Needed {
    lease: Lease,
    /// How many incarnations have leaked. Each may go on with the lease that it had, so the next one asks as a
    /// different holder.
    leaked: u32,
    keeper: Option<Keeper>,
}

#[derive(Debug)]
struct Keeper {
    number: u64,
    end: oneshot::Sender<LeaseEnd>,
    info: Arc<LeaseInfo>,
}

impl Leases {
    /// Sets the lease that the child asks for from now on.
    pub(super) fn set(&mut self, key: Key, lease: Option<&Lease>) {
        match (lease, self.needed.get_mut(&key)) {
            (Some(lease), Some(needed)) => needed.lease = lease.clone(),
            (Some(lease), None) => {
                let needed = Needed { lease: lease.clone(), leaked: 0, keeper: None };
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
}

impl Driver {
    pub(super) fn seek_lease(&mut self, key: Key) {
        let path = self.children.path(key);
        let Some(needed) = self.leases.needed.get_mut(&key) else { return };
        self.leases.count += 1;
        let (number, shared) = (self.leases.count, Arc::clone(&self.shared));
        let (end, ended) = oneshot::channel();
        let report = move |change| {
            // A supervisor that has ended needs no report.
            let _ = shared.inbox.push_request(Request::Lease { key, keeper: number, change });
        };
        let holder = holder(&path, needed.leaked);
        let keeping = keep(needed.lease.clone(), holder, ended, report);
        let info = Arc::new(LeaseInfo::sought(needed.lease.name()));
        needed.keeper = Some(Keeper { number, end, info });
        self.leases.keepers.spawn(|| format!("{path} (lease)"), keeping);
    }

    pub(super) fn end_lease(&mut self, key: Key, release: bool) {
        let Some(needed) = self.leases.needed.get_mut(&key) else { return };
        if !release {
            needed.leaked += 1;
        }
        if let Some(keeper) = needed.keeper.take() {
            let end = if release { LeaseEnd::Release } else { LeaseEnd::Abandon };
            // A keeper that has ended has lost the lease.
            let _ = keeper.end.send(end);
        }
    }

    /// Handles what a keeper reports.
    pub(super) fn lease_changed(
        &mut self,
        key: Key,
        number: u64,
        change: LeaseChange,
        now: Instant,
    ) {
        let Some(needed) = self.leases.needed.get_mut(&key) else { return };
        let Some(keeper) = needed.keeper.as_mut().filter(|keeper| keeper.number == number) else {
            return;
        };
        let bounds = &self.shared.tree.log_bounds;
        let path = self.children.path(key);
        let lease = Arc::clone(needed.lease.name());
        let kind = match change {
            LeaseChange::Standby { holder, problem } => {
                log::standby(bounds, &path, &lease, holder.as_deref(), problem.as_deref());
                keeper.info = Arc::new(LeaseInfo {
                    holder: holder.clone(),
                    problem: problem.clone(),
                    ..LeaseInfo::sought(&lease)
                });
                EventKind::Standby { lease, holder, problem }
            }
            LeaseChange::Granted(token) => {
                log::lease_granted(bounds, &path, &lease, token.get());
                keeper.info = Arc::new(LeaseInfo::granted(&lease, token.get()));
                let mut properties = Properties::default();
                properties.set(Arc::new(token));
                self.children.change_properties(key, &properties);
                self.step(MachineEvent::LeaseGranted { key }, now);
                EventKind::LeaseGranted { lease, token: token.get() }
            }
            LeaseChange::Lost(reason) => {
                let reason: Arc<str> = reason.to_string().into();
                log::lease_lost(bounds, &path, &lease, &reason);
                needed.keeper = None;
                self.step(MachineEvent::LeaseLost { key }, now);
                EventKind::LeaseLost { lease, reason }
            }
        };
        let incarnation = self.children.incarnation(key).map_or(0, |it| it.number);
        self.shared.publish(now, path, incarnation, || kind);
    }
}
