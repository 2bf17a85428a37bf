//! Where a mailbox is in its life, and the loan to the current incarnation.

use crate::dead_letter::DeadLetterReason;

/// See the [module](self).
pub(super) enum MailboxPhase {
    /// The mailbox was never lent, or its child was just started: messages wait for the next loan.
    Fresh,
    Lent(CurrentLoan),
    /// The last loan has ended.
    Down {
        /// The mailbox accepts no messages.
        closed: bool,
    },
    /// The child is down for good, unless a call starts it again.
    Closed(DeadLetterReason),
}

pub(super) struct CurrentLoan {
    pub(super) hold: Option<DrainHold>,
    pub(super) ending: LoanEnding,
    /// The holder was cancelled and has put a delivery back: it receives no more messages.
    pub(super) put_back: bool,
}

/// Keeps messages back from an incarnation that has just started. It is lifted when both conditions are
/// met.
pub(super) struct DrainHold {
    /// The inbox still waits for the hold's deadline.
    pub(super) timed: bool,
    /// The incarnation must still become ready.
    pub(super) until_ready: bool,
    /// Messages with smaller numbers are kept back.
    pub(super) below: u64,
}

/// How far the end of a loan, or of an incarnation, is. It never goes back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LoanEnding {
    No,
    /// The holder was cancelled, and the mailbox stays open until the holder closes it.
    Open,
    /// The queued messages are kept for the next incarnation.
    Leaving,
    /// The mailbox accepts no messages; the holder receives the queued ones.
    Closing,
}

impl CurrentLoan {
    pub(super) fn new(hold: Option<DrainHold>, ending: LoanEnding) -> Self {
        Self { hold, ending, put_back: false }
    }
}

impl MailboxPhase {
    /// Returns `true` if the mailbox accepts no messages.
    pub(super) fn is_closed(&self) -> bool {
        match self {
            Self::Fresh => false,
            Self::Lent(loan) => loan.ending == LoanEnding::Closing,
            Self::Down { closed } => *closed,
            Self::Closed(_) => true,
        }
    }

    /// Returns `true` if the mailbox waits for its next loan.
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self, Self::Fresh | Self::Down { .. })
    }
}
