//! What a supervisor's machine takes in: events, and the requests of callers among them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Key, Links, Position};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::policy::{ChildRules, FailureDecision, RestartPolicy, Rules, Withheld};
use crate::properties::Properties;

/// The number of one run of a child, from 1. It is 0 until the first run.
pub(crate) type IncarnationNumber = u32;

/// Identifies a caller that waits for an answer. Only the driver knows which caller it is.
pub(crate) type Ticket = u64;

/// The ticket of a request whose answer nobody waits for.
pub(crate) const NO_TICKET: Ticket = Ticket::MAX;

/// Something that happened outside of the machine.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) enum MachineEvent {
    /// The child is ready.
    Ready { key: Key, incarnation: IncarnationNumber },
    /// The child declined to start.
    Ignored { key: Key, incarnation: IncarnationNumber },
    /// The incarnation is over.
    Exited { key: Key, incarnation: IncarnationNumber, reason: ExitReason },
    /// The child's own task has ended. What it has started beside it was aborted and still runs.
    Remaining { key: Key, incarnation: IncarnationNumber, reason: Option<ExitReason> },
    /// The child reports that it works, which resets its backoff.
    Healthy { key: Key, incarnation: IncarnationNumber },
    /// The child requests its own stop.
    StopSelf { key: Key, incarnation: IncarnationNumber },
    /// The child replaces the restart policy of its spec for this incarnation. `None` restores it.
    Policy { key: Key, incarnation: IncarnationNumber, policy: Option<Arc<RestartPolicy>> },
    /// The child has acknowledged a message.
    Acked { key: Key, incarnation: IncarnationNumber },
    /// A caller requests something for one child.
    Request { ticket: Ticket, key: Key, request: ChildRequest },
    /// A caller that seeks a child is gone.
    CallerGone { ticket: Ticket, key: Key },
    /// The children that are declared have changed, or the values that apply to them.
    Declared(Declaration),
    /// What only children with a condition have.
    Condition(ConditionEvent),
    /// The instant returned by `next_deadline` is reached.
    Tick,
    /// The supervisor is stopped, and has to be down after `within`.
    Stop { within: Option<Duration> },
    /// The time for an ordered stop is over: the remaining children are cancelled at once, those with a
    /// higher stop order when the others are down.
    Close {
        /// Whether the stop order no longer counts.
        all: bool,
    },
    /// All remaining children are aborted.
    AbortAll,
}

/// What happens to a child that has a condition, such as a lease or a watchdog.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) enum ConditionEvent {
    /// The result of the child's health check has changed. `None`: it passes.
    Health { key: Key, incarnation: IncarnationNumber, problem: Option<Arc<str>> },
    /// When the child sent its last heartbeat, if it sent any. Answers a
    /// [`ConditionEffect::CheckHeartbeat`](super::ConditionEffect::CheckHeartbeat).
    Heartbeat { key: Key, incarnation: IncarnationNumber, last: Option<Instant> },
    /// The last health check of a child that fails with it has passed or not, unlike the one before.
    Checked { key: Key, incarnation: IncarnationNumber, passed: bool },
    /// The failure callback has decided. Answers a [`ConditionEffect::Ask`](super::ConditionEffect::Ask).
    Answered { key: Key, incarnation: IncarnationNumber, decision: FailureDecision },
    /// A message waits for the child, which has no task or has not received it.
    MessagePending { key: Key },
    /// The child's lease is granted. Answers a [`ConditionEffect::SeekLease`](super::ConditionEffect::SeekLease).
    ///
    /// `changes`: what the next incarnations have of the lease.
    LeaseGranted { key: Key, changes: Properties },
    /// The child's lease is lost, or couldn't be renewed in time.
    LeaseLost { key: Key },
}

/// A change of what is declared.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) enum Declaration {
    /// A new child, whose key is [`Machine::next_key`](super::Machine::next_key). The first
    /// [`MachineEvent::Tick`] starts it, or [`ChildRequest::StartNew`].
    ///
    /// `place`: the place of a child that was removed. Without one, the child is last in start order.
    Child { rules: Arc<ChildRules>, links: Links, place: Option<Position> },
    /// What a child provides and requires from now on.
    Links { key: Key, links: Links },
    /// The order of these children. Others keep theirs, behind them. Not while an operation on several children
    /// runs.
    Order(Vec<Key>),
    /// The rules of a child. Answers a `ticket` when a child that is newly withheld is down, or one that no
    /// longer is has started.
    ///
    /// `trial`: a start that fails is left to the caller.
    ChildRules { ticket: Option<Ticket>, key: Key, rules: Arc<ChildRules>, trial: bool },
    /// The rules of the supervisor.
    Rules(Arc<Rules>),
}

/// What a caller can request for one child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(Hash, PartialOrd, Ord))]
pub(crate) enum ChildRequest {
    /// Starts a child that was just declared.
    StartNew {
        /// If the start fails, its restart type decides. Otherwise, the child is removed.
        keep: bool,
    },
    /// Starts the child, uncharged.
    Start { running: IfRunning, waiting: IfWaiting },
    /// OTP's `terminate_child`: stops the child and leaves it stopped.
    Terminate,
    /// Stops the child and leaves it stopped. In a supervisor that is stopping, waits until the child is down.
    Stop,
    /// The same, and then removes the child.
    Remove,
    /// Aborts the child. Its supervisor handles this as a failure.
    Kill,
    /// OTP's `delete_child`: removes a stopped child.
    Delete,
    /// Forgets the restarts that were counted, and the place on the backoff's curve.
    Reset,
    /// Keeps the child from being started, once it is down. A child that runs goes on.
    Hold,
    /// Ends a hold. Starts the child if it is due, and nothing else prevents that.
    Release,
    /// Finds the incarnation that is Active. It changes nothing.
    Find {
        /// Whether the answer may wait while the child is on its way up.
        wait: bool,
    },
}

/// What becomes of a child that is to be started, and runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(Hash, PartialOrd, Ord))]
pub(crate) enum IfRunning {
    Refuse,
    /// It keeps running, and its incarnation is the answer. One that is being stopped is started when it is down.
    Keep,
    /// Its range is stopped and started again.
    Replace,
}

/// What becomes of a child that is to be started, and will be started without the call, or needs something first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(Hash, PartialOrd, Ord))]
pub(crate) enum IfWaiting {
    /// As in OTP: only a child that is down is started. If its start fails, it stays down.
    Refuse,
    /// Its wait ends now. If the start fails, its restart type decides.
    Start,
}

impl ChildRequest {
    /// Whether the child is down once the request is fulfilled.
    #[cfg(test)]
    pub(crate) fn stops(self) -> bool {
        matches!(self, Self::Terminate | Self::Stop | Self::Remove)
    }

    /// Runs a new incarnation of the child in any state.
    pub(crate) const RESTART: Self =
        Self::Start { running: IfRunning::Replace, waiting: IfWaiting::Start };
    /// Brings the child up in any state.
    pub(crate) const RESUME: Self =
        Self::Start { running: IfRunning::Keep, waiting: IfWaiting::Start };
    /// OTP's `restart_child`: starts a child that is down.
    pub(crate) const RESTART_CHILD: Self =
        Self::Start { running: IfRunning::Refuse, waiting: IfWaiting::Refuse };
}

/// The answer to a [`ChildRequest`].
#[derive(Clone, Debug)]
pub(crate) enum ChildAnswer {
    /// The request is fulfilled.
    Done,
    /// The child is up.
    Started(IncarnationNumber),
    /// The child declined to start.
    Ignored,
    /// The child waits for a requirement that no restart will provide.
    Gated,
    /// The child waits for its first message.
    Dormant,
    /// The child failed before it was up.
    Failed(ExitReason),
    /// Refused: the child has to be stopped first.
    Running,
    /// Refused: the child is about to be started, or started again. Or a failure of a sibling has
    /// interrupted the start that would have come to the child; it is started with its group.
    Restarting,
    /// Refused: the request has no meaning for a child in this state.
    InvalidState(Lifecycle),
    /// Refused: the configuration of the child prevents its start.
    Withheld(Withheld),
    /// Refused: the child does not exist any more.
    NotFound,
    /// Refused: the supervisor is stopping.
    ShuttingDown,
    /// Refused: the supervisor has as many children as it may have.
    MaxChildren(usize),
    /// The child was stopped before it was up.
    Stopped,
    /// Refused: the child can run once, and has.
    Spent,
}
