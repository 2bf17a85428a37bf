//! One child: its options, its state, and the policy that applies to its current incarnation.
//!
//! A [`ChildState`] is finer than the [`Lifecycle`] that is visible outside. A policy that an
//! incarnation sets for itself replaces the one of its spec, until the next incarnation starts.
//!
//! # Invariants
//!
//! 1. A child that has never failed has no [`FailureHistory`], unless a rule has to remember
//!    something else of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Conditions, FailureHistory, IncarnationNumber, Key};
use crate::lifecycle::Lifecycle;
use crate::policy::{
    Backoff, ChildRules, FailureLog, Limits, OnExhausted, RestartPolicy, StartCause, Withheld,
};

/// A child's place in the start order. Only a child that replaces a removed one gets a place that was used.
pub(super) type Position = u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ChildState {
    /// There is no task, and none is started without an event from outside or a group operation.
    Down(DownState),
    /// The child is due to start, but lacks a requirement, or its configuration or a caller prevents that.
    Gated(StartCause),
    /// The task runs and is not ready.
    Activating,
    Active,
    /// Waits by itself for its next start, which has this cause.
    Backoff(StartCause),
    /// Waits for the group restart that its failure began.
    AwaitingGroup,
    /// Has failed, and the failure callback decides what becomes of it.
    AwaitingDecision {
        /// The child was Active when it failed.
        active: bool,
    },
    /// The task was cancelled or aborted.
    Stopping {
        why: StopReason,
        aborted: bool,
    },
}

/// Why a child is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum DownState {
    /// It was never started.
    New,
    /// It was never started, and waits for its first message.
    Dormant,
    /// It ended cleanly and is not started again.
    Finished,
    /// Stopped by a caller.
    Terminated,
    /// Stopped with its group, which starts it again.
    RestartsWithGroup,
    /// Stopped with its group, which stays down.
    DownWithGroup,
    /// Stopped with its whole supervisor.
    DownWithSupervisor,
    /// It declined to start.
    Ignored,
    /// The supervisor gave up on it.
    GivenUp,
    /// It failed, and its trigger answers such a failure without a restart.
    NotRestarted,
    /// It could not be stopped. A second incarnation beside it must not start.
    Leaked,
}

/// Why a task is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum StopReason {
    Group,
    /// By a caller, to stay down.
    Manual,
    /// By a caller, to be removed.
    Removal,
    /// By a caller, to be started again at once.
    Restart,
    /// Its lease is lost.
    Lease,
    /// By the child itself.
    OwnRequest,
    /// The child has failed already, but its task still runs.
    Failing {
        active: bool,
        then: AfterFailing,
    },
}

/// What comes after the task of a child that has failed is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum AfterFailing {
    /// The failure is decided on.
    Decide,
    /// A caller has stopped the child since, so it stays down.
    StayDown,
    /// A caller has removed the child since.
    Remove,
    /// A caller has restarted the child since, so it is started.
    Start,
}

/// What a deadline is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Timer {
    Child(Key),
    /// The end of the time for which a child may be Active.
    RunTime(Key),
    /// The end of a group's wait.
    Group,
    /// The end of a shutdown grace that many children share.
    Grace(Duration),
    /// The deadline of the supervisor's stop.
    Total,
}

/// What follows from a child's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RestartDecision {
    /// Another attempt, at this instant.
    RestartAt(Instant),
    /// Another attempt, when a pause is over.
    PauseUntil(Instant),
    /// The child has exceeded a restart limit.
    Exhausted(OnExhausted),
}

#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct ChildEntry {
    pub(super) rules: Arc<ChildRules>,
    pub(super) history: Option<Box<FailureHistory>>,
    pub(super) conditions: Option<Box<Conditions>>,
    pub(super) pos: Position,
    /// When it was declared, in nanoseconds since its supervisor began: an instant takes twice the memory.
    pub(super) created: u64,
    /// When its current or last incarnation was started.
    pub(super) started: Option<Instant>,
    /// When it entered its lifecycle state.
    pub(super) since: Instant,
    pub(super) incarnation: IncarnationNumber,
    pub(super) state: ChildState,
    pub(super) lifecycle: Lifecycle,
    /// A start has passed the child: it has been Active, has finished, or has declined.
    pub(super) has_passed: bool,
    /// A caller keeps it from being started.
    pub(super) held: bool,
    /// Never higher than the stop order of the child before it in the start order.
    pub(super) stop_order: i8,
}

impl ChildEntry {
    pub(super) fn history_mut(&mut self) -> &mut FailureHistory {
        self.history.get_or_insert_default()
    }

    /// Forgets earlier failures of a child that has been healthy for long enough at `now`.
    pub(super) fn decay_failures(&mut self, now: Instant) {
        // An immediate first restart has to know that the child was healthy before its first failure.
        if self.history.is_none() && !self.rules.backoff.is_at_once(true) {
            return;
        }
        self.history_mut();
        let lived = self.healthy_for(now);
        self.with_history(|history, backoff| history.decay(backoff, lived));
    }

    /// Calls `f` with the child's history, if there is one, and with the backoff that applies.
    pub(super) fn with_history<R>(
        &mut self,
        f: impl FnOnce(&mut FailureHistory, &Backoff) -> R,
    ) -> Option<R> {
        let history = self.history.as_mut()?;
        let policy = history.policy.take();
        let own = policy.as_ref().and_then(|policy| policy.backoff.as_ref());
        let result = f(history, own.unwrap_or(&self.rules.backoff));
        history.policy = policy;
        Some(result)
    }

    /// Why nothing starts the child: its configuration or a caller prevents that.
    pub(super) fn withheld(&self) -> Option<Withheld> {
        self.rules.withheld().or(self.held.then_some(Withheld::Held))
    }

    /// Whether the child is due to start, and its configuration or a caller prevents that.
    pub(super) fn is_withheld(&self) -> bool {
        matches!(self.state, ChildState::Gated(_)) && self.withheld().is_some()
    }

    /// Whether a group operation that passes the child starts it.
    pub(super) fn is_startable_by_group(&self) -> bool {
        match self.state {
            ChildState::Down(DownState::New | DownState::RestartsWithGroup)
            | ChildState::AwaitingGroup => true,
            ChildState::Down(_) => self.is_message_startable() && self.has_pending_message(),
            _ => false,
        }
    }

    /// Whether the child runs or will run without an event from outside, if no group decides on it.
    pub(super) fn comes_back_alone(&self) -> bool {
        match self.state {
            ChildState::Down(_) => self.is_message_startable(),
            ChildState::Stopping { why, .. } => why != StopReason::Group && !why.is_manual(),
            _ => true,
        }
    }

    /// The policy that the current or last incarnation has set for itself.
    pub(super) fn own_policy(&self) -> Option<&Arc<RestartPolicy>> {
        self.history.as_ref()?.policy.as_ref()
    }

    pub(super) fn backoff(&self) -> &Backoff {
        let own = self.own_policy().and_then(|policy| policy.backoff.as_ref());
        own.unwrap_or(&self.rules.backoff)
    }

    pub(super) fn limits(&self) -> Option<Limits> {
        self.rules.limits(self.own_policy().map(|policy| &**policy))
    }

    pub(super) fn on_exhausted(&self) -> OnExhausted {
        let own = self.own_policy().and_then(|policy| policy.on_exhausted);
        own.unwrap_or(self.rules.on_exhausted)
    }

    pub(super) fn failure_log(&self) -> FailureLog {
        let own = self.own_policy().and_then(|policy| policy.failure_log);
        own.unwrap_or(self.rules.failure_log)
    }

    /// Why the child is in its state, where its lifecycle alone does not tell.
    pub(super) fn why(&self) -> Option<&'static str> {
        match self.state {
            ChildState::Down(DownState::Dormant) => Some("waits for a message"),
            ChildState::Down(DownState::Finished) => Some("finished"),
            ChildState::Down(DownState::Terminated) => Some("stopped manually"),
            ChildState::Down(DownState::RestartsWithGroup | DownState::DownWithGroup) => {
                Some("stopped with its group")
            }
            ChildState::Down(DownState::DownWithSupervisor) => Some("stopped with its supervisor"),
            ChildState::Down(DownState::Ignored) => Some("declined to start"),
            ChildState::Down(DownState::GivenUp) => Some("given up"),
            ChildState::Down(DownState::NotRestarted) => Some("not restarted"),
            ChildState::Down(DownState::Leaked) => Some("leaked"),
            ChildState::AwaitingDecision { .. } => Some("being decided on"),
            ChildState::Gated(_) => match self.withheld() {
                Some(withheld) => Some(withheld.word()),
                None => Some("waits for a requirement"),
            },
            _ if self.rules.spec.facts.is_fallback => Some("fallback"),
            _ => None,
        }
    }
}

impl StopReason {
    /// Whether a caller stops the child, so that it stays down.
    pub(super) fn is_manual(self) -> bool {
        let stays = matches!(self, Self::Failing { then: AfterFailing::StayDown, .. });
        stays || self == Self::Manual || self.removes()
    }

    /// Whether a caller removes the child.
    pub(super) fn removes(self) -> bool {
        matches!(self, Self::Removal | Self::Failing { then: AfterFailing::Remove, .. })
    }
}

impl DownState {
    /// Whether the child was stopped, or given up on, so that messages do not start it, nor does one that
    /// came before it is brought back.
    pub(super) fn ignores_messages(self) -> bool {
        !matches!(
            self,
            Self::New
                | Self::Dormant
                | Self::Finished
                | Self::RestartsWithGroup
                | Self::NotRestarted
        )
    }
}

impl ChildState {
    /// Whether the child has a task.
    pub(super) fn is_live(self) -> bool {
        matches!(self, Self::Activating | Self::Active | Self::Stopping { .. })
    }

    /// Whether the child provides what other children require of it.
    pub(super) fn is_met(self) -> bool {
        matches!(self, Self::Active | Self::Down(DownState::Finished))
    }

    /// Whether a child that reaches this state has started, so that a later failure isn't one of its
    /// first start.
    pub(super) fn is_passed(self) -> bool {
        matches!(self, Self::Active | Self::Down(DownState::Finished | DownState::Ignored))
    }

    /// Whether a significant child in this state runs or will run again.
    pub(super) fn is_remaining(self) -> bool {
        match self {
            Self::Down(down) => {
                matches!(down, DownState::New | DownState::Dormant | DownState::RestartsWithGroup)
            }
            _ => true,
        }
    }

    /// Whether a caller stops the child. It stays down then, unless a group starts it again.
    pub(super) fn is_stopping_manually(self) -> bool {
        let Self::Stopping { why, .. } = self else { return false };
        why.is_manual()
    }
}
