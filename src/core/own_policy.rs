//! What a child says of its own restart while it runs, and what its spec says otherwise.
//!
//! What it says decides on the end of the incarnation that has said it, and is forgotten when the
//! next one starts. Whether the spec outlives the child is up to the spec alone.

use std::sync::Arc;

use super::Key;
use super::children::Children;
use super::ledger::Ledger;
use super::state::Slot;
use crate::exit::ExitReason;
use crate::policy::{
    Backoff, Exceptions, FailureLog, Limits, OnExhausted, OnExit, RestartPolicy, Rules,
};

impl Slot {
    pub(super) fn own_policy(&self) -> Option<&Arc<RestartPolicy>> {
        self.ledger.as_ref()?.policy.as_ref()
    }

    /// The backoff that the end of this incarnation is answered with.
    pub(super) fn backoff<'a>(&'a self, rules: &'a Rules) -> &'a Backoff {
        let own = self.own_policy().and_then(|policy| policy.backoff.as_ref());
        own.unwrap_or_else(|| rules.backoff(&self.options))
    }

    /// How often is too often when this incarnation ends, if anything is.
    pub(super) fn limits(&self, rules: &Rules) -> Option<Limits> {
        let own = self.own_policy().filter(|policy| !policy.limits.is_none());
        let spec = rules.limits(&self.options);
        match own {
            Some(own) => Some(own.limits.get().or(spec.unwrap_or_default())),
            None => spec,
        }
    }

    /// What follows when that was once too often.
    pub(super) fn on_exhausted(&self, rules: &Rules) -> OnExhausted {
        let own = self.own_policy().and_then(|policy| policy.on_exhausted);
        own.unwrap_or_else(|| rules.on_exhausted(&self.options))
    }

    /// How loudly its end is logged.
    pub(super) fn failure_log(&self, rules: &Rules) -> FailureLog {
        let own = self.own_policy().and_then(|policy| policy.failure_log);
        own.unwrap_or_else(|| rules.failure_log(&self.options))
    }

    /// Hands out what is remembered of the child, if anything is, beside that backoff.
    pub(super) fn with_ledger<R>(
        &mut self,
        rules: &Rules,
        f: impl FnOnce(&mut Ledger, &Backoff) -> R,
    ) -> Option<R> {
        let ledger = self.ledger.as_mut()?;
        let policy = ledger.policy.take();
        let own = policy.as_ref().and_then(|policy| policy.backoff.as_ref());
        let result = f(ledger, own.unwrap_or_else(|| rules.backoff(&self.options)));
        ledger.policy = policy;
        Some(result)
    }
}

impl Children {
    /// What this end of the incarnation that there is, or was last, leads to.
    pub(super) fn on_exit(&self, key: Key, active: bool, reason: &ExitReason) -> OnExit {
        let Some(slot) = self.slots.get(key) else { return OnExit::Leave };
        let own = slot.own_policy().and_then(|policy| policy.restart.as_ref());
        match own {
            Some(own) => own.after(&Exceptions::default(), reason, active),
            None => self.rules.on_exit(&slot.options, reason, active),
        }
    }

    /// The child says how its end is to be answered, or takes that back.
    pub(super) fn set_policy(&mut self, key: Key, policy: Option<Arc<RestartPolicy>>) {
        let slot = self.slot(key);
        if policy.is_some() || slot.ledger.is_some() {
            slot.ledger().policy = policy;
        }
    }
}
