//! The rules of supervision, without a clock, a task or an `await`.
//!
//! A machine is told what happened, one [`MachineEvent`] at a time, together with the instant at which it
//! happened. It answers with [`Effect`]s that the driver carries out, in order. It cannot block,
//! cannot fail and never reads the time, so that every rule can be tested as a sequence of calls.
//!
//! A [`Machine`] is one of two kinds: that of a supervisor whose children are declared in an order, and
//! the far smaller one of a supervisor with many equal children.
//!
//! What both promise:
//!
//! 1. A child has at most one live incarnation: between two [`Effect::Start`] of one child lies its
//!    exit, or the report that it leaked.
//! 2. An event that names an incarnation which is over changes nothing.
//! 3. Each [`Report`] is a legal edge of [`Lifecycle`](crate::lifecycle::Lifecycle), and begins
//!    where the last one of that child ended.
//! 4. Nothing is started once the machine has begun to finish, and nothing follows
//!    [`Effect::Finish`], which comes when no child is live any more.
//! 5. Every ticket is answered at most once, and none is left when a child is removed.
//! 6. One event costs O(log n) and at most [`SLICE`] children are looked at; what is left over is
//!    announced by [`next_deadline`](Machine::next_deadline) as due at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::exit::ExitReason;
use crate::failure::FailureDecision;
use crate::lifecycle::Lifecycle;
use crate::policy::{ChildOptions, FailureLog, RestartPolicy, StartCause};
use crate::properties::Properties;

mod arena;
mod asking;
mod callers;
mod children;
mod dynamic;
mod ends;
mod exhausted;
#[cfg(test)]
mod fingerprint;
mod health;
mod ledger;
mod machine;
mod mail;
mod ordered;
mod own_policy;
mod quota;
mod requests;
mod requirements;
#[cfg(test)]
mod simulator;
mod starts;
mod state;
mod sweep;
#[cfg(test)]
mod tests;
mod timers;
mod traffic;
#[cfg(test)]
mod witness;

pub(crate) use arena::{Key, trim};
pub(crate) use asking::ANSWER_WITHIN;
pub(crate) use machine::Machine;
pub(crate) use requirements::RequirementId;

/// How many children one event may visit, so that no event holds the supervisor for long.
pub(crate) const SLICE: usize = 64;

/// The number of one run of a child, from 1. Zero: it has not run yet.
pub(crate) type IncarnationNumber = u32;

/// Names the caller who waits for an answer. The driver knows who that is.
pub(crate) type Ticket = u64;

/// Something that happened outside.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) enum MachineEvent {
    /// The child is ready.
    Ready { key: Key, incarnation: IncarnationNumber },
    /// The child declined to start.
    Ignored { key: Key, incarnation: IncarnationNumber },
    /// The incarnation is over.
    Exited { key: Key, incarnation: IncarnationNumber, reason: ExitReason },
    /// The child says that it works, so that its next backoff begins anew.
    Healthy { key: Key, incarnation: IncarnationNumber },
    /// The child is healthy, or it is said what is wrong with it; before, it was not so or not
    /// known.
    Health { key: Key, incarnation: IncarnationNumber, problem: Option<Arc<str>> },
    /// The child wants to be stopped.
    StopSelf { key: Key, incarnation: IncarnationNumber },
    /// The child says how its end is to be answered, in place of its spec, or takes that back.
    Policy { key: Key, incarnation: IncarnationNumber, policy: Option<Arc<RestartPolicy>> },
    /// What was asked by [`Effect::Ask`] is decided.
    Answered { key: Key, incarnation: IncarnationNumber, decision: FailureDecision },
    /// The child has acknowledged a message.
    Acked { key: Key, incarnation: IncarnationNumber },
    /// A message waits for the child, which has no task or has not asked for it.
    MessagePending { key: Key },
    /// Somebody asks for something.
    Request { ticket: Ticket, key: Key, request: ChildRequest },
    /// The instant given by `next_deadline` has come.
    Tick,
    /// The supervisor was asked to stop, and to have stopped after `within`.
    Stop { within: Option<Duration> },
    /// The supervisor must abort whatever is left.
    AbortAll,
}

/// What can be asked for one child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChildRequest {
    /// Start a child that was just added.
    Start,
    /// Stop it and leave it stopped.
    Terminate,
    /// Start a stopped child again.
    RestartStopped,
    /// Stop a running child's range and start it again, uncharged.
    RestartRunning,
    /// Abort it, as an outsider would.
    Kill,
    /// Forget a stopped child.
    Delete,
    /// Try a parked child again.
    Retry,
    /// Cut its backoff short.
    Wake,
}

/// What a caller is told.
#[derive(Clone, Debug)]
pub(crate) enum ChildAnswer {
    /// It is done.
    Done,
    /// The child is up.
    Started(IncarnationNumber),
    /// The child declined to start.
    Ignored,
    /// The child waits for what it requires, which will not come by itself.
    Gated,
    /// The child waits for its first message.
    Dormant,
    /// The child failed before it was up.
    Failed(ExitReason),
    /// Refused: the child has to be stopped for that.
    Running,
    /// Refused: the child is about to be started again.
    Restarting,
    /// Refused: in this state there is nothing to do.
    InvalidState(Lifecycle),
    /// Refused: there is no such child any more.
    NotFound,
    /// Refused: the supervisor is stopping.
    ShuttingDown,
    /// Refused: there are as many children as there may be.
    MaxChildren(usize),
    /// The child was stopped before it was up.
    Stopped,
}

/// Something the driver must do.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Spawn the child's task.
    Start { key: Key, incarnation: IncarnationNumber, cause: StartCause },
    /// The incarnation that is started next gets no message before `until`. Comes directly before
    /// its [`Start`](Effect::Start); a start without it holds nothing.
    HoldMessages { key: Key, until: Instant },
    /// Ask the child's task to stop.
    Cancel { key: Key },
    /// Abort the child's task.
    Abort { key: Key },
    /// Tell whoever listens.
    Report(Report),
    /// The child was aborted and is still there. It is given up on.
    Leaked { key: Key, incarnation: IncarnationNumber },
    /// An incarnation is over, or has failed while its task is still there. Its edges follow.
    Ended {
        key: Key,
        incarnation: IncarnationNumber,
        reason: Arc<ExitReason>,
        /// How long it had been Active.
        lived: Option<Duration>,
    },
    /// Ask what becomes of a child that has failed; the answer is an [`MachineEvent::Answered`].
    Ask {
        key: Key,
        incarnation: IncarnationNumber,
        /// Which attempt a restart would be, from 1.
        attempt: u32,
        reason: ExitReason,
    },
    /// What was asked was not answered in time.
    Unanswered { key: Key, incarnation: IncarnationNumber },
    /// The child gets properties, for its next incarnations.
    Changed { key: Key, changes: Properties },
    /// An active child is healthy now, or isn't, for this reason.
    Health { key: Key, incarnation: IncarnationNumber, problem: Option<Arc<str>> },
    /// What becomes of a child that has ended by itself.
    Decided {
        key: Key,
        incarnation: IncarnationNumber,
        reason: Arc<ExitReason>,
        decision: Decision,
        /// How loudly to say so.
        log: FailureLog,
    },
    /// The child's fallback has taken its place; from now on it is started in its stead.
    Replaced { key: Key },
    /// Answer a caller.
    Reply { ticket: Ticket, answer: ChildAnswer },
    /// A child that was down and would have come back stays down, without an edge that tells it.
    StaysDown { key: Key },
    /// Forget the child.
    Removed { key: Key, incarnation: IncarnationNumber },
    /// The first start has passed the last child.
    Up,
    /// End the supervisor.
    Finish(Finish),
}

/// What becomes of a child that has ended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It is started again: the `attempt`th time since it was last healthy, after `delay`.
    Restart { attempt: u32, delay: Duration },
    /// It is not started again: that is what its trigger says.
    Leave,
    /// It has failed too often.
    GiveUp,
    /// Its end is the end of the supervisor.
    EndSupervisor,
    /// Its end is a failure of the supervisor.
    FailSupervisor,
    /// It has failed too often, and its fallback takes its place.
    FallBack,
    /// It has failed too often, and is started again when this time is over.
    Pause { length: Duration },
    /// It has ended the program, and its supervisor ends with it.
    Exit,
    /// Whoever was asked has given up on it. Its supervisor goes on.
    Decline,
    /// Whoever was asked, or did not answer, leaves it to the supervisor above.
    Escalate,
}

impl Decision {
    /// Whether the child has failed for good.
    pub(crate) fn fails(self) -> bool {
        match self {
            Self::GiveUp | Self::FailSupervisor | Self::Decline | Self::Escalate => true,
            Self::Restart { .. }
            | Self::Leave
            | Self::EndSupervisor
            | Self::FallBack
            | Self::Pause { .. }
            | Self::Exit => false,
        }
    }

    /// Whether it is the end of the child, or of its supervisor, that somebody has to account for.
    /// Any other is only told.
    pub(crate) fn is_accounted_for(self) -> bool {
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
    /// How long the child had been in `from`.
    pub(crate) after: Duration,
    /// How the incarnation ended, if this edge is its end: see [`ExitReason::kind`].
    pub(crate) ending: Option<&'static str>,
}

/// Why the supervisor ends.
#[derive(Clone, Debug)]
pub(crate) enum Finish {
    /// It was asked to.
    Stopped,
    /// It was made to: what was left was aborted.
    Aborted,
    /// Its significant children have ended, or one whose end is to be its own.
    AutoShutdown,
    /// It gave up on a child.
    Escalated { key: Key, reason: ExitReason },
    /// It fails because a child has ended, whatever it does when it gives up.
    Failed { key: Key, reason: ExitReason },
    /// The program is to end with this code: because of a child that failed too often, or since a
    /// supervisor below says so.
    Exit { key: Key, reason: ExitReason, code: u8 },
    /// A child could not be started for the first time.
    StartFailed { key: Key, reason: ExitReason },
}

/// What can be seen of a child.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) options: Arc<ChildOptions>,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) incarnation: IncarnationNumber,
    /// When the child came to this state.
    pub(crate) since: Instant,
    /// Why it is down, in a word, where the lifecycle alone does not tell.
    pub(crate) why: Option<&'static str>,
    /// What the incarnation that there is, or was last, says of its own restart.
    pub(crate) policy: Option<Arc<RestartPolicy>>,
    pub(crate) history: Option<History>,
}

/// What has gone wrong with a child so far.
#[derive(Clone, Debug)]
pub(crate) struct History {
    /// The failure that is being waited out, from 1; zero once the child is healthy.
    pub(crate) attempt: u32,
    /// When the next attempt is due, and the wait that was drawn for it.
    pub(crate) next: Option<(Instant, Duration)>,
    pub(crate) last: Option<ExitReason>,
}

/// How many children there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChildCounts {
    pub(crate) by_lifecycle: [u32; 8],
    pub(crate) supervisors: u32,
}

impl ChildCounts {
    pub(crate) fn specs(&self) -> u32 {
        self.by_lifecycle.iter().sum()
    }

    pub(crate) fn of(&self, lifecycle: Lifecycle) -> u32 {
        self.by_lifecycle[lifecycle as usize]
    }

    fn add(&mut self, options: &ChildOptions) {
        self.by_lifecycle[Lifecycle::Discovered as usize] += 1;
        self.supervisors += u32::from(options.supervisor.is_some());
    }

    fn remove(&mut self, options: &ChildOptions, last: Lifecycle) {
        self.by_lifecycle[last as usize] -= 1;
        self.supervisors -= u32::from(options.supervisor.is_some());
    }

    /// A child goes on with other options.
    fn replaced(&mut self, old: &ChildOptions, new: &ChildOptions) {
        self.supervisors += u32::from(new.supervisor.is_some());
        self.supervisors -= u32::from(old.supervisor.is_some());
    }

    fn moved(&mut self, from: Lifecycle, to: Lifecycle) {
        self.by_lifecycle[from as usize] -= 1;
        self.by_lifecycle[to as usize] += 1;
    }
}

/// One event being taken in: when, and what is to be done about it so far.
struct Turn<'a> {
    now: Instant,
    effects: &'a mut Vec<Effect>,
}

impl Turn<'_> {
    fn push(&mut self, effect: Effect) {
        self.effects.push(effect);
    }
}
