//! The account of one child.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::grants::OwnGrants;
use super::leases::LeaseAccount;
use crate::core::IncarnationNumber;
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::policy::{
    Backoff, ChildOptions, ChildRules, Limits, OnExhausted, OnExit, Resolution, RestartPolicy,
    RestartType, Revival, Rules, StartCause,
};

/// What never changes about a child.
#[derive(Debug)]
pub(in super::super) struct DeclaredChild {
    pub(in super::super) name: Arc<str>,
    pub(in super::super) options: Arc<ChildOptions>,
    /// The siblings that it requires, by name.
    pub(in super::super) requires: Vec<Arc<str>>,
}

impl DeclaredChild {
    /// Whether the others don't wait for it in the start order, since it waits for a sibling or a lease.
    pub(super) fn may_come_late(&self) -> bool {
        !self.requires.is_empty() || self.options.lease_grace.is_some()
    }
}

/// What is known of a child, from events and effects alone.
#[derive(Clone, Debug)]
pub(in super::super) struct ChildAccount {
    pub(in super::super) declaration: Arc<DeclaredChild>,
    pub(super) rules: Arc<ChildRules>,
    pub(in super::super) lifecycle: Lifecycle,
    pub(in super::super) since: Instant,
    pub(in super::super) incarnation: IncarnationNumber,
    pub(in super::super) live: bool,
    pub(in super::super) cancelled: bool,
    pub(in super::super) aborted: bool,
    pub(in super::super) removed: bool,
    /// Its place in the start order.
    pub(super) place: u64,
    /// Never higher than that of the child before it.
    pub(super) stop_order: i8,
    /// The cause of its last start.
    pub(super) cause: Option<StartCause>,
    /// It has been Active, has finished, or has declined.
    pub(super) has_passed: bool,
    /// It was ready when its incarnation ended, or requested the end itself.
    pub(super) was_active: bool,
    /// The child has requested its own stop.
    pub(super) stops_itself: bool,
    /// Its configuration has taken it out since it was started. It is brought back even if it is temporary.
    pub(super) taken_out: bool,
    /// Its configuration or a caller has kept it from being started, so that it may come late.
    pub(super) was_withheld: bool,
    /// What is known of its lease.
    pub(in super::super) lease: LeaseAccount,
    /// It ran when its lease was lost.
    pub(super) lost_lease: bool,
    /// A caller holds it.
    pub(super) on_hold: bool,
    /// Its last incarnation has leaked.
    pub(super) leaked: bool,
    /// Its exit was decided, since its last start.
    pub(super) decided: bool,
    /// It restarts after its last end.
    pub(super) returns: bool,
    /// A caller was answered that its start failed.
    pub(super) answered_failed: bool,
    /// It must end before any child from this place on is started.
    pub(super) group_stop_from: Option<u64>,
    /// The restarts that count for its own limits.
    pub(super) own_grants: OwnGrants,
    /// Its fallback has replaced it, and was not started yet.
    pub(super) replaced: bool,
    /// Failures since it was last healthy.
    pub(super) consecutive_failures: u32,
    /// Delays that were drawn since then, without those that errors set.
    pub(super) drawn: u32,
    /// It is not restarted before this instant.
    pub(super) due: Option<Instant>,
    /// Whether the failure callback decides on it.
    pub(in super::super) pending_decision: PendingDecision,
    /// The callback was called, since its last start.
    pub(super) callback_called: bool,
    /// When the callback was called.
    pub(super) callback_called_at: Instant,
    /// The callback's decision, until it is carried out.
    pub(super) resolution: Option<Resolution>,
    /// A message waits for it, and it was not started since.
    pub(in super::super) message_pending: bool,
    /// It was stopped or given up on, so that messages for it do not count.
    pub(super) ignores_messages: bool,
    /// It was stopped, and did not exit by itself.
    pub(super) set_down: bool,
    /// It has exited, and its trigger does not restart it.
    pub(super) not_restarted: bool,
    /// A restart of its group has left it down until a message comes, although it had run or was stopped.
    pub(super) dormant: bool,
    /// The machine showed that it restarts, and reported nothing else since.
    pub(super) shown_returning: bool,
    /// Its messages are held back until then, from its last restart or from the next.
    pub(super) held: Option<Instant>,
    /// It was asked for its last heartbeat, and has not answered.
    pub(in super::super) heartbeat_due: bool,
    /// The policy that it has set for itself.
    pub(super) policy: Option<RestartPolicy>,
    /// Since when its health check passes, in its current incarnation.
    pub(super) passes_since: Option<Instant>,
}

/// Whether a decision of the failure callback is pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum PendingDecision {
    None,
    Open,
    /// It is pending, but a group operation will stop the child first, so the decision is discarded.
    Overtaken,
}

impl ChildAccount {
    /// The account of a child that was just added.
    pub(super) fn new(
        declaration: Arc<DeclaredChild>,
        supervisor: &Arc<Rules>,
        place: u64,
        now: Instant,
    ) -> Self {
        Self {
            stop_order: declaration.options.stop_order,
            rules: ChildRules::of(&declaration.options, supervisor),
            declaration,
            lifecycle: Lifecycle::Discovered,
            since: now,
            incarnation: 0,
            live: false,
            cancelled: false,
            aborted: false,
            removed: false,
            place,
            cause: None,
            has_passed: false,
            was_active: false,
            stops_itself: false,
            taken_out: false,
            was_withheld: false,
            lease: LeaseAccount::Idle,
            lost_lease: false,
            on_hold: false,
            leaked: false,
            decided: false,
            returns: false,
            answered_failed: false,
            group_stop_from: None,
            own_grants: OwnGrants::default(),
            replaced: false,
            consecutive_failures: 0,
            drawn: 0,
            due: None,
            pending_decision: PendingDecision::None,
            callback_called: false,
            callback_called_at: now,
            resolution: None,
            message_pending: false,
            ignores_messages: false,
            set_down: false,
            not_restarted: false,
            dormant: false,
            shown_returning: false,
            held: None,
            heartbeat_due: false,
            policy: None,
            passes_since: None,
        }
    }

    /// Whether it is temporary, and kept for a message to start it.
    pub(super) fn is_dormant_temporary(&self) -> bool {
        let temporary = self.rules.restart_type() == RestartType::Temporary;
        temporary && self.rules.spec.on_message && self.rules.supervisor.revival != Revival::Never
    }

    pub(super) fn backoff(&self) -> &Backoff {
        let own = self.policy.as_ref().and_then(|policy| policy.backoff.as_ref());
        own.unwrap_or(&self.rules.backoff)
    }

    /// How long a child that is active since `since` has been healthy.
    pub(super) fn healthy_for(&self, since: Instant, now: Instant) -> Duration {
        match self.passes_since {
            _ if !self.declaration.options.fails_unhealthy => now - since,
            Some(passes_since) => now - passes_since,
            None => Duration::ZERO,
        }
    }

    pub(super) fn limits(&self) -> Limits {
        self.rules.limits(self.policy.as_ref()).unwrap_or_default()
    }

    pub(super) fn on_exhausted(&self) -> OnExhausted {
        let own = self.policy.as_ref().and_then(|policy| policy.on_exhausted);
        own.unwrap_or(self.rules.on_exhausted)
    }

    pub(super) fn on_exit(&self, reason: &ExitReason) -> OnExit {
        let own = self.policy.as_ref().and_then(|policy| policy.restart.as_ref());
        let on_exit = own.unwrap_or(&self.rules.trigger).after_exit(reason, self.was_active);
        let fatal = match reason {
            ExitReason::Failed(error) | ExitReason::ActivationFailed(error) => error.is_fatal(),
            _ => false,
        };
        if fatal && on_exit.restarts() { OnExit::FailSupervisor } else { on_exit }
    }
}
