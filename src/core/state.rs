//! The states of a child, smaller and finer than what the outside sees as its lifecycle.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::ledger::Ledger;
use super::{IncarnationNumber, Key};
use crate::lifecycle::Lifecycle;
use crate::policy::{ChildOptions, OnExhausted, StartCause};

/// A child's place in the start order. Never used again.
pub(super) type Pos = u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum State {
    /// There is no task, and none will be started without a reason from outside.
    Down(Down),
    /// Its turn has come, but what it requires is not there.
    Gated(StartCause),
    /// The task runs and is not ready.
    Activating,
    Active,
    /// Waits by itself for its next start.
    Backoff,
    /// Waits for the end of the group restart that its failure began.
    Awaiting,
    /// Has failed, and somebody was asked what becomes of it.
    Asking {
        /// It was Active when it failed.
        active: bool,
    },
    /// The task was asked to end, or aborted.
    Stopping {
        why: Why,
        aborted: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Down {
    /// It was never started.
    New,
    /// It was never started, and is not before a message comes for it.
    Dormant,
    /// It ended well and is not started again.
    Finished,
    ByHand,
    /// Stopped with its group, which will start it again.
    ByGroup,
    /// Stopped with its group, which stays down.
    Rested,
    /// It declined to start.
    Ignored,
    /// The supervisor gave up on it.
    GivenUp,
    /// It failed, and such a failure is not answered with a restart.
    Left,
    /// It could not be stopped and is not to be started beside itself.
    Leaked,
}

/// Why a task was asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Why {
    Group,
    ByHand,
    /// To be started again at once.
    Renew,
    /// It asked for it.
    Itself,
    /// It has failed already, but its task is still there.
    Failing {
        active: bool,
        /// And nobody wants it restarted any more.
        by_hand: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Timer {
    Child(Key),
    /// The end of a group's wait.
    Sweep,
    /// The end of one grace that many children share.
    Grace(Duration),
    /// The deadline of the stop as a whole.
    Total,
}

/// What a child's failure leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// One more attempt, at this instant.
    RestartAt(Instant),
    /// One more attempt, when a pause is over.
    PauseUntil(Instant),
    /// It has failed too often, and this follows.
    Exhausted(OnExhausted),
}

/// A child, as small as can be: there may be a million.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Slot {
    pub(super) options: Arc<ChildOptions>,
    pub(super) ledger: Option<Box<Ledger>>,
    pub(super) pos: Pos,
    /// When it came to its lifecycle.
    pub(super) since: Instant,
    pub(super) incarnation: IncarnationNumber,
    pub(super) state: State,
    pub(super) lifecycle: Lifecycle,
}

impl Slot {
    pub(super) fn ledger(&mut self) -> &mut Ledger {
        self.ledger.get_or_insert_default()
    }

    /// Whether it is down so that a message starts it, and nothing else but a call does.
    pub(super) fn is_startable(&self) -> bool {
        let idle = matches!(self.state, State::Down(Down::Dormant | Down::Finished | Down::Left));
        idle && self.options.on_message
    }

    /// Whether a message waits for it that has not been told to an incarnation.
    pub(super) fn has_mail(&self) -> bool {
        self.ledger.as_ref().is_some_and(|ledger| ledger.mail)
    }

    /// Whether it is started when its turn comes.
    pub(super) fn waits_for_its_turn(&self) -> bool {
        match self.state {
            State::Down(Down::New | Down::ByGroup) | State::Awaiting => true,
            State::Down(_) => self.is_startable() && self.has_mail(),
            State::Gated(_)
            | State::Activating
            | State::Active
            | State::Backoff
            | State::Asking { .. }
            | State::Stopping { .. } => false,
        }
    }
}

pub(super) fn is_live(state: State) -> bool {
    matches!(state, State::Activating | State::Active | State::Stopping { .. })
}

pub(super) fn is_met(state: State) -> bool {
    matches!(state, State::Active | State::Down(Down::Finished))
}

/// Whether a significant child in this state runs or will run again.
pub(super) fn is_left(state: State) -> bool {
    match state {
        State::Down(down) => matches!(down, Down::New | Down::Dormant | Down::ByGroup),
        _ => true,
    }
}

/// Whether a child is being stopped by hand. It stays down, unless a group brings it back.
pub(super) fn is_leaving(state: State) -> bool {
    let State::Stopping { why, .. } = state else { return false };
    matches!(why, Why::ByHand | Why::Failing { by_hand: true, .. })
}
