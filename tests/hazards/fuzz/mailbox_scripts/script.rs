//! Scripts: the options of a mailbox, and operations.

use arbitrary::Arbitrary;

#[derive(Arbitrary, Debug)]
pub(super) struct Script {
    pub(super) options: Options,
    pub(super) steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
pub(super) struct Options {
    pub(super) capacity: u8,
    pub(super) overflow: u8,
    pub(super) while_down: Down,
    pub(super) drain: u8,
    pub(super) hold_new: bool,
    pub(super) overtake: bool,
    pub(super) manual_closing: bool,
    pub(super) delays_delivery: bool,
    pub(super) max_attempts: u8,
    pub(super) has_final: bool,
    pub(super) starts_on_message: bool,
    pub(super) signals: bool,
    pub(super) restart: u8,
    /// The child has a sibling whose failures restart it, too.
    pub(super) in_group: bool,
    pub(super) reading: Reading,
    /// Futures that were woken are polled by a step only.
    pub(super) lazy: bool,
}

#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Down {
    Stash,
    Drop,
    DeadLetter,
    Handler,
    Forward,
}

/// How the child receives its messages.
#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    Receive,
    Deliver,
    Alternate,
}

/// What the child does with a message.
#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    GoOn,
    Fail,
    Panic,
    End,
    Dawdle,
    /// Drops a delivery without an acknowledgement.
    PutBack,
    /// Keeps a delivery while it receives the next messages.
    Keep,
    /// Moves a delivery into a task of its own, which acknowledges it later.
    Hand,
    /// Receives without waiting, as often as there are messages.
    Batch,
    /// Closes the inbox.
    Close,
    Ready,
    Healthy,
    /// Drops a future of the inbox after one poll.
    Poll,
    StopSelf,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) enum Step {
    TrySend(Then),
    Send(Then),
    Ask(Then),
    AskWithin(Then, u8),
    /// Polls a pending future, woken or not.
    Poll(u8),
    PollAll,
    DropFuture(u8),
    Settle,
    Yield,
    Sleep(u8),
    Terminate,
    RestartStopped,
    Restart,
    Kill,
    Resume,
    KillSibling,
}

impl Options {
    pub(super) fn capacity(&self) -> usize {
        [1, 2, 3, 1_000][usize::from(self.capacity % 4)]
    }

    pub(super) fn max_attempts(&self) -> Option<u32> {
        [Some(1), Some(2), Some(3), None][usize::from(self.max_attempts % 4)]
    }
}
