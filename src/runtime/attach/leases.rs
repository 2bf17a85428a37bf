//! The leases of one supervisor's children: their keepers, and what these report.
//!
//! Each lease that the machine seeks has a task, a *keeper*, which asks the engine and renews. Its report comes back as a
//! request, because the status needs more than the machine does: the token and the present holder. The machine decides what
//! follows.
//!
//! # Invariants
//!
//! 1. A child has at most one keeper whose reports have an effect, by its number.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::task_set::TaskSet;
use super::{Attachment, StepView};
use crate::child::ChildSpec;
use crate::core::{ConditionEffect, ConditionEvent, Effect, Key, MachineEvent};
#[cfg(feature = "cron")]
use crate::lease::HeldLease;
use crate::lease::{Lease, LeaseChange, LeaseEnd, holder, keep};
use crate::properties::Properties;
use crate::runtime::log;
use crate::runtime::request::HandleRequest;
use crate::runtime::shared::SupervisorShared;
use crate::status::{ChildInfo, EventKind, LeaseInfo};

/// The children that need a lease.
#[derive(Debug, Default)]
pub(super) struct Leases {
    needed: BTreeMap<Key, NeededLease>,
    keepers: TaskSet,
    /// How many keepers there were.
    count: u64,
}

#[derive(Debug)]
struct NeededLease {
    lease: Arc<Lease>,
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
    /// The name under which it asks.
    #[cfg(feature = "cron")]
    holder: Arc<str>,
}

impl NeededLease {
    /// Whether the keeper has reported all that it will.
    fn has_ended(&self) -> bool {
        self.keeper.as_ref().is_none_or(|keeper| keeper.end.is_closed())
    }

    /// Whether the supervisor knows of the grant.
    fn is_granted(&self) -> bool {
        self.keeper.as_ref().is_some_and(|keeper| keeper.info.token.is_some())
    }
}

impl Attachment for Leases {
    fn declared(&mut self, key: Key, spec: &ChildSpec, _view: &StepView<'_>) {
        self.recoded(key, spec);
    }

    fn recoded(&mut self, key: Key, spec: &ChildSpec) {
        match (&spec.lease, self.needed.get_mut(&key)) {
            (Some(lease), Some(needed)) => needed.lease = Arc::clone(lease),
            (Some(lease), None) => {
                let needed = NeededLease { lease: Arc::clone(lease), leaked: 0, keeper: None };
                self.needed.insert(key, needed);
            }
            (None, _) => _ = self.needed.remove(&key),
        }
    }

    fn before(&mut self, effect: &Effect, view: &StepView<'_>) {
        match *effect {
            Effect::Condition(ConditionEffect::SeekLease { key }) => self.seek(key, view),
            Effect::Condition(ConditionEffect::EndLease { key, release }) => self.end(key, release),
            Effect::Removed { key, .. } => _ = self.needed.remove(&key),
            _ => {}
        }
    }

    /// Waits for the keepers that give their leases back.
    async fn finish(&mut self, _shared: &SupervisorShared) {
        self.keepers.until_ended().await;
    }

    fn show(&self, key: Key, _view: &StepView<'_>, info: &mut ChildInfo) {
        let keeper = self.needed.get(&key).and_then(|needed| needed.keeper.as_ref());
        info.lease = keeper.map(|keeper| Arc::clone(&keeper.info));
    }
}

impl Leases {
    /// Starts a keeper of the child's lease.
    fn seek(&mut self, key: Key, view: &StepView<'_>) {
        let Some(needed) = self.needed.get_mut(&key) else { return };
        self.count += 1;
        let (number, path) = (self.count, view.path(key));
        let (end, ended) = oneshot::channel();
        let lease = Lease::clone(&needed.lease);
        let holder = holder(&path, needed.leaked, lease.address());
        let info = Arc::new(LeaseInfo::sought(lease.name()));
        needed.keeper = Some(Keeper {
            number,
            end,
            info,
            #[cfg(feature = "cron")]
            holder: Arc::clone(&holder),
        });
        let shared = Arc::clone(view.shared);
        let report = move |change| {
            // A supervisor that has ended needs no report.
            let _ = shared.inbox.push_request(HandleRequest::Lease { key, keeper: number, change });
        };
        self.keepers
            .spawn(|| format!("{path} (lease)"), keep(lease, path.clone(), holder, ended, report));
    }

    /// Ends the keeper of the child's lease. `release`: no incarnation of the child is left.
    fn end(&mut self, key: Key, release: bool) {
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

    /// Takes in what a keeper reports, unless a later one has replaced it. Returns what follows for the machine.
    pub(super) fn changed(
        &mut self,
        key: Key,
        keeper: u64,
        change: LeaseChange,
        view: &StepView<'_>,
    ) -> Option<MachineEvent> {
        let is_kept = |needed: &&mut NeededLease| {
            needed.keeper.as_ref().is_some_and(|it| it.number == keeper)
        };
        let needed = self.needed.get_mut(&key).filter(is_kept)?;
        // This supervisor was late, and the loss follows. The child must not start meanwhile.
        if let LeaseChange::Granted(_) = change
            && needed.has_ended()
        {
            return None;
        }
        if let LeaseChange::Lost(_) = change
            && !needed.is_granted()
        {
            self.seek(key, view);
            return None;
        }
        let bounds = &view.shared.tree.log_bounds;
        let path = view.path(key);
        let lease = Arc::clone(needed.lease.name());
        let info = |info| Some(Arc::new(info));
        let (known, event, kind) = match change {
            LeaseChange::Standby { holder, problem } => {
                log::standby(bounds, &path, &lease, holder.as_deref(), problem.as_deref());
                let before = needed.keeper.as_ref().and_then(|keeper| keeper.info.failing_since);
                let failing_since = problem
                    .is_some()
                    .then(|| before.unwrap_or_else(|| view.shared.tree.wall_clock(view.now)));
                let known = LeaseInfo::standby(&lease, holder.clone(), problem.clone());
                let known = LeaseInfo { failing_since, ..known };
                (info(known), None, EventKind::Standby { lease, holder, problem })
            }
            LeaseChange::Granted(token) => {
                log::lease_granted(bounds, &path, &lease, token.get());
                let known = LeaseInfo::granted(&lease, token.get());
                let mut changes = Properties::default();
                changes.set(Arc::new(token));
                #[cfg(feature = "cron")]
                if let Some(keeper) = &needed.keeper {
                    let holder = Arc::clone(&keeper.holder);
                    changes.set(Arc::new(HeldLease::new(&needed.lease, holder, token)));
                }
                let granted = ConditionEvent::LeaseGranted { key, changes };
                (info(known), Some(granted), EventKind::LeaseGranted { lease, token: token.get() })
            }
            LeaseChange::Lost(reason) => {
                let reason: Arc<str> = reason.to_string().into();
                log::lease_lost(bounds, &path, &lease, &reason);
                let lost = ConditionEvent::LeaseLost { key };
                (None, Some(lost), EventKind::LeaseLost { lease, reason })
            }
        };
        match (known, &mut needed.keeper) {
            (Some(known), Some(keeper)) => keeper.info = known,
            (None, keeper) => *keeper = None,
            (Some(_), None) => {}
        }
        let incarnation = view.children.incarnation(key).map_or(0, |it| it.number);
        view.shared.publish(view.now, path, incarnation, || kind);
        event.map(MachineEvent::Condition)
    }
}
