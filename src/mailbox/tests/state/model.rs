//! A naive model of a mailbox: a map of its messages, and lists of its senders.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::step::Config;
use crate::dead_letter::DeadLetterReason;
use crate::mailbox::queue::Envelope;
use crate::mailbox::state::Take;
use crate::mailbox::tests::TestHolder;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ModelPhase {
    Fresh,
    Lent { ending: ModelStop, put_back: bool, below: Option<u64> },
    Down { closed: bool },
    Closed,
}

/// How far the stop of an incarnation, or the end of a loan, is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ModelStop {
    No,
    /// The mailbox stays open.
    Open,
    Leaving,
    Closing,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct QueuedMessage {
    pub(super) message: u32,
    pub(super) attempts: u32,
    pub(super) failed: u32,
}

pub(super) struct MailboxModel {
    pub(super) config: Config,
    pub(super) phase: ModelPhase,
    pub(super) stop: ModelStop,
    pub(super) loans: u64,
    pub(super) queued: BTreeMap<u64, QueuedMessage>,
    /// The message, the loan, and its holder.
    pub(super) lent: Vec<(Envelope<u32>, u64, Arc<TestHolder>)>,
    /// All senders that had to wait, by their numbers; those that still wait, in order; and those of them
    /// that were woken since their last poll.
    pub(super) senders: Vec<(u64, u32)>,
    pub(super) waiting: Vec<u64>,
    pub(super) woken: BTreeSet<u64>,
    pub(super) numbers: u64,
    pub(super) next_id: u64,
    /// The supervisor was notified.
    pub(super) notified: bool,
    pub(super) progress: bool,
    /// The incarnation has received a message and has not polled its inbox again.
    pub(super) in_hand: bool,
    // What happened in one step.
    pub(super) letters: Vec<(DeadLetterReason, u32)>,
    pub(super) lost: usize,
    pub(super) notifications: usize,
    pub(super) inbox_waits: bool,
    pub(super) inbox_woken: bool,
    pub(super) sender_wakes: usize,
}

impl MailboxModel {
    /// The model of a mailbox that was never lent.
    pub(super) fn new(config: Config) -> Self {
        Self {
            config,
            phase: ModelPhase::Fresh,
            stop: ModelStop::No,
            loans: 0,
            queued: BTreeMap::new(),
            lent: Vec::new(),
            senders: Vec::new(),
            waiting: Vec::new(),
            woken: BTreeSet::new(),
            numbers: 0,
            next_id: 0,
            notified: false,
            progress: false,
            in_hand: false,
            lost: 0,
            letters: Vec::new(),
            notifications: 0,
            inbox_waits: false,
            inbox_woken: false,
            sender_wakes: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.queued.len() + self.lent.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.len() >= self.config.capacity
    }

    /// Whether a sender that may wait can send: one that waits under this number, or a new one.
    pub(super) fn has_room_for(&self, number: Option<u64>) -> bool {
        let before = self.waiting.iter().take_while(|&&it| Some(it) != number).count();
        self.len() + before < self.config.capacity
    }

    pub(super) fn is_closed(&self) -> bool {
        match self.phase {
            _ if self.stop == ModelStop::Closing => true,
            ModelPhase::Closed => true,
            ModelPhase::Down { closed } => closed,
            ModelPhase::Lent { ending, .. } => ending == ModelStop::Closing,
            ModelPhase::Fresh => false,
        }
    }

    pub(super) fn is_down(&self) -> bool {
        matches!(self.phase, ModelPhase::Fresh | ModelPhase::Down { .. })
    }

    pub(super) fn notify(&mut self) {
        if self.is_down()
            && self.config.start_on_message
            && !self.queued.is_empty()
            && !self.notified
        {
            self.notified = true;
            self.notifications += 1;
        }
    }

    pub(super) fn wake(&mut self) {
        self.inbox_woken |= std::mem::take(&mut self.inbox_waits);
    }

    pub(super) fn push(&mut self, message: u32) {
        self.queued.insert(self.next_id, QueuedMessage { message, attempts: 0, failed: 0 });
        self.next_id += 1;
        self.wake();
        self.notify();
    }

    /// Wakes the senders that have room and were not woken.
    pub(super) fn wake_senders(&mut self) {
        for number in self.waiting.clone() {
            if self.has_room_for(Some(number)) && self.woken.insert(number) {
                self.sender_wakes += 1;
            }
        }
    }

    /// A sender sends, or goes.
    pub(super) fn leave(&mut self, number: u64) {
        self.waiting.retain(|&it| it != number);
        self.woken.remove(&number);
    }

    pub(super) fn release(&mut self) {
        self.sender_wakes += self.waiting.len() - self.woken.len();
        self.waiting.clear();
        self.woken.clear();
    }

    pub(super) fn dead_letter(&mut self, reason: DeadLetterReason, message: u32) {
        self.letters.push((reason, message));
    }

    pub(super) fn all_dead(&mut self, reason: DeadLetterReason) {
        for queued in std::mem::take(&mut self.queued).into_values() {
            self.dead_letter(reason, queued.message);
        }
    }

    /// Returns the next message of a loan. `None` is no message, and the error is the end.
    pub(super) fn next(
        &mut self,
        loan: u64,
        take: Take,
    ) -> Result<Option<(u64, QueuedMessage)>, ()> {
        let ModelPhase::Lent { ending, put_back, below } = self.phase else {
            return Err(());
        };
        if loan != self.loans {
            return Err(());
        }
        self.in_hand = false;
        if ending == ModelStop::Leaving || put_back {
            return Err(());
        }
        let Some((&id, _)) = self.queued.range(below.unwrap_or(0)..).next() else {
            if ending == ModelStop::Closing && self.queued.is_empty() {
                return Err(());
            }
            self.inbox_waits = true;
            return Ok(None);
        };
        let mut queued = self.queued.remove(&id).unwrap();
        if take == Take::Deliver {
            queued.attempts += 1;
        } else {
            self.progress = true;
            self.in_hand = true;
        }
        Ok(Some((id, queued)))
    }
}
