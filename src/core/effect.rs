//! What a supervisor's machine gives out: effects, which the driver applies in order.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{ChildAnswer, ExceededLimit, IncarnationNumber, Key, Ticket, UserCode};
use crate::exit::{ExitKind, ExitReason};
use crate::lifecycle::Lifecycle;
use crate::policy::{AbortKind, FailureLog, OnExhausted, PolicySource, RestartType, StartCause};
use crate::properties::Properties;

/// Something the driver must do.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Spawn the child's task.
    Start {
        key: Key,
        incarnation: IncarnationNumber,
        cause: StartCause,
        /// Until then the incarnation receives no message.
        held: Option<Instant>,
    },
    /// Cancel the child's task.
    Cancel { key: Key },
    /// The time for an ordered stop is over. Close the mailbox of the child, which is cancelled already. A
    /// supervisor cancels all that is left below it.
    Close { key: Key, all: bool },
    /// Abort the child's task.
    Abort { key: Key },
    /// Publish an edge of a child's lifecycle.
    Report(Report),
    /// The child was aborted and still runs. The machine treats it as gone.
    Leaked { key: Key, incarnation: IncarnationNumber },
    /// An incarnation is over, or has failed while its task still runs. Its edges follow.
    Ended {
        key: Key,
        incarnation: IncarnationNumber,
        reason: Arc<ExitReason>,
        /// How long the child had been Active, if it was.
        lived: Option<Duration>,
    },
    /// What becomes of a child that has ended by itself.
    Decided {
        key: Key,
        incarnation: IncarnationNumber,
        reason: Arc<ExitReason>,
        decision: Decision,
        restart_type: RestartType,
        /// How long the child had been Active, if it was and if it has failed.
        lived: Option<Duration>,
        /// How loudly to log it.
        log: FailureLog,
    },
    /// Answer a caller.
    Reply { ticket: Ticket, answer: ChildAnswer },
    /// A stopped child that would have been started again stays down. No edge reports this.
    StaysDown { key: Key },
    /// Forget the child.
    Removed { key: Key, incarnation: IncarnationNumber },
    /// The first start has passed the last child.
    Up,
    /// End the supervisor.
    Finish(Finish),
    /// What only children with a condition need.
    Condition(ConditionEffect),
}

/// What the driver must do for a child that has a condition, such as a lease or a watchdog.
#[derive(Debug)]
pub(crate) enum ConditionEffect {
    /// Ask for the child's lease until it is granted, which is a
    /// [`ConditionEvent::LeaseGranted`](super::ConditionEvent::LeaseGranted), and renew it then.
    SeekLease { key: Key },
    /// Give up the child's lease, or the request for it.
    EndLease {
        key: Key,
        /// Whether no incarnation of the child is left that may need it.
        release: bool,
    },
    /// Call the failure callback. Its decision is a
    /// [`ConditionEvent::Answered`](super::ConditionEvent::Answered).
    Ask {
        key: Key,
        incarnation: IncarnationNumber,
        /// Which attempt a restart would be, from 1.
        attempt: u32,
        reason: ExitReason,
    },
    /// The failure callback did not decide in time.
    Unanswered { key: Key, incarnation: IncarnationNumber },
    /// Give the child these properties, for its next incarnations.
    Changed { key: Key, changes: Properties },
    /// The health of an Active child has changed.
    Health { key: Key, incarnation: IncarnationNumber, problem: Option<Arc<str>> },
    /// The deadline of the child's watchdog is due. The last heartbeat is a
    /// [`ConditionEvent::Heartbeat`](super::ConditionEvent::Heartbeat).
    CheckHeartbeat { key: Key, incarnation: IncarnationNumber },
    /// The runtime was late by this much, so that children which are late too have not hung.
    RuntimeLate { late: Duration },
}

impl Effect {
    /// Whether the supervisor gives up on a child, or ends the program because of it.
    pub(crate) fn gives_up(&self) -> bool {
        matches!(self, Self::Decided { decision, .. } if decision.gives_up())
    }
}

/// What becomes of a child that has ended by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Decision {
    /// It is started again after `delay`, for the `attempt`th time since it was last healthy.
    Restart { attempt: u32, delay: Duration },
    /// It is not started again, because of its trigger.
    Leave,
    /// It has exceeded a restart limit, which comes from `source`, after it had been failing for this time.
    GiveUp { limit: ExceededLimit, source: PolicySource, failing: Duration, then: OnExhausted },
    /// It has failed in a first start that is not retried.
    FailStart,
    /// Its end is the end of the supervisor.
    EndSupervisor,
    /// Its end is a failure of the supervisor.
    FailSupervisor,
    /// It has exceeded a restart limit, and its fallback replaces it, from its next start on.
    FallBack,
    /// It has exceeded a restart limit, and is started again after this time.
    Pause { length: Duration },
    /// It ends the program, and its supervisor ends with it.
    Exit,
    /// The failure callback has given up on it. Its supervisor goes on.
    Decline,
    /// The failure callback has escalated it, or did not decide in time.
    Escalate,
}

impl Decision {
    /// Whether the child has failed for good.
    pub(crate) fn fails(self) -> bool {
        matches!(
            self,
            Self::GiveUp { .. }
                | Self::FailStart
                | Self::FailSupervisor
                | Self::Decline
                | Self::Escalate
        )
    }

    /// Whether the supervisor gives up on the child, or ends the program because of it.
    pub(crate) fn gives_up(self) -> bool {
        self.fails() || self == Self::Exit
    }
}

/// One edge of a child's lifecycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) key: Key,
    pub(crate) incarnation: IncarnationNumber,
    pub(crate) from: Lifecycle,
    pub(crate) to: Lifecycle,
    /// When the child had entered `from`.
    pub(crate) since: Instant,
    /// How the incarnation ended, if this edge is its end.
    pub(crate) ending: Option<Ending>,
}

impl Report {
    /// How long the child had been in `from`.
    pub(crate) fn after(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.since)
    }
}

/// How an incarnation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Exit(ExitKind),
    /// Its supervisor aborted it in a stop.
    Killed(AbortKind),
    /// It declined to run.
    Declined,
}

impl Ending {
    /// The word of a log line or a metric.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Exit(kind) => kind.word(),
            Self::Killed(_) => ExitKind::Killed.word(),
            Self::Declined => "ignored",
        }
    }
}

/// Why the supervisor ends.
#[derive(Clone, Debug)]
pub(crate) enum Finish {
    /// It was stopped.
    Stopped,
    /// It was aborted, and its children with it.
    Aborted,
    /// Its significant children have ended, or a child whose end is its own.
    AutoShutdown,
    /// It gave up on a child.
    Escalated { key: Key, reason: ExitReason },
    /// It fails with a child, whatever it does when it gives up on one.
    Failed { key: Key, reason: ExitReason },
    /// The program ends with this code, because of a child or of a supervisor below.
    Exit { key: Key, reason: ExitReason, code: u8 },
    /// A child failed in the first start.
    StartFailed { key: Key, reason: ExitReason },
}

impl Finish {
    /// How a supervisor ends that has exceeded a limit with a child, if it does.
    pub(super) fn on_exhausted(what: OnExhausted, key: Key, reason: &ExitReason) -> Option<Self> {
        let reason = reason.clone();
        match what {
            OnExhausted::Escalate => Some(Self::Escalated { key, reason }),
            OnExhausted::Exit(code) => Some(Self::Exit { key, reason, code }),
            OnExhausted::Park
            | OnExhausted::StopChild
            | OnExhausted::Remove
            | OnExhausted::Pause(_) => None,
        }
    }
}

/// The event that is being handled: its instant, the user's code, and the effects so far.
pub(super) struct StepCx<'a> {
    pub(super) now: Instant,
    pub(super) user_code: &'a mut dyn UserCode,
    pub(super) effects: &'a mut Vec<Effect>,
}

impl StepCx<'_> {
    pub(super) fn push(&mut self, effect: Effect) {
        self.effects.push(effect);
    }
}
