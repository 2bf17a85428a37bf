//! Seeking and ending leases, and handling what their keepers report.
//!
//! A report comes back as a request, because the status needs more than the machine does: the token and the present
//! holder. The machine decides what follows.

use std::sync::Arc;
use std::time::Instant;

use super::state::Driver;
use crate::core::{ConditionEvent, Key, MachineEvent};
use crate::lease::LeaseChange;
use crate::properties::Properties;
use crate::runtime::log;
use crate::runtime::request::Request;
use crate::status::{EventKind, LeaseInfo};

impl Driver {
    pub(super) fn seek_lease(&mut self, key: Key) {
        let shared = Arc::clone(&self.shared);
        let report = move |keeper, change| {
            // A supervisor that has ended needs no report.
            let _ = shared.inbox.push_request(Request::Lease { key, keeper, change });
        };
        self.leases.seek(key, &self.children.path(key), report);
    }

    /// Handles what a keeper reports.
    pub(super) fn lease_changed(
        &mut self,
        key: Key,
        keeper: u64,
        change: LeaseChange,
        now: Instant,
    ) {
        let Some(needed) = self.leases.kept_by(key, keeper) else { return };
        // This supervisor was late, and the loss follows. The child must not start meanwhile.
        if let LeaseChange::Granted(_) = change
            && needed.has_ended()
        {
            return;
        }
        if let LeaseChange::Lost(_) = change
            && !needed.is_granted()
        {
            return self.seek_lease(key);
        }
        let bounds = &self.shared.tree.log_bounds;
        let path = self.children.path(key);
        let lease = Arc::clone(needed.lease.name());
        let info = |info| Some(Arc::new(info));
        let (known, event, kind) = match change {
            LeaseChange::Standby { holder, problem } => {
                log::standby(bounds, &path, &lease, holder.as_deref(), problem.as_deref());
                let known = LeaseInfo::standby(&lease, holder.clone(), problem.clone());
                (info(known), None, EventKind::Standby { lease, holder, problem })
            }
            LeaseChange::Granted(token) => {
                log::lease_granted(bounds, &path, &lease, token.get());
                let known = LeaseInfo::granted(&lease, token.get());
                let mut properties = Properties::default();
                properties.set(Arc::new(token));
                self.children.change_properties(key, &properties);
                let granted = MachineEvent::Condition(ConditionEvent::LeaseGranted { key });
                (info(known), Some(granted), EventKind::LeaseGranted { lease, token: token.get() })
            }
            LeaseChange::Lost(reason) => {
                let reason: Arc<str> = reason.to_string().into();
                log::lease_lost(bounds, &path, &lease, &reason);
                let lost = MachineEvent::Condition(ConditionEvent::LeaseLost { key });
                (None, Some(lost), EventKind::LeaseLost { lease, reason })
            }
        };
        match (known, &mut needed.keeper) {
            (Some(known), Some(keeper)) => keeper.info = known,
            (None, keeper) => *keeper = None,
            (Some(_), None) => {}
        }
        let incarnation = self.children.incarnation(key).map_or(0, |it| it.number);
        self.shared.publish(now, path, incarnation, || kind);
        if let Some(event) = event {
            self.step(event, now);
        }
    }
}
