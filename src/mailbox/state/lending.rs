//! The loan of a mailbox to an incarnation, and the deliveries of its messages.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::task::Waker;
use std::time::Instant;

use super::{
    CurrentLoan, DrainHold, LoanEnding, MailboxEffects, MailboxPhase, MailboxState, NextMessage,
    Take,
};
use crate::child::ChildId;
use crate::clock::later;
use crate::dead_letter::DeadLetterReason;
use crate::mailbox::ask::OpenQuestion;
use crate::mailbox::options::{Closing, Drain, WhileDown};
use crate::mailbox::queue::Envelope;

impl<M: 'static> MailboxState<M> {
    /// Lends the mailbox to an incarnation and ends the loan before. Returns the number of the loan, and
    /// the deadline of its hold.
    pub(crate) fn lend(
        &mut self,
        incarnation: u32,
        now: Instant,
        fx: &mut MailboxEffects,
    ) -> (u64, Option<Instant>) {
        let hold = self.hold(now);
        let (hold, until) = if self.stop < LoanEnding::Leaving { hold } else { (None, None) };
        self.phase = MailboxPhase::Lent(CurrentLoan { hold, ending: self.stop, put_back: false });
        self.loans += 1;
        self.incarnation = incarnation;
        (self.notified, self.progress) = (false, false);
        fx.question = self.put_down();
        fx.receiver = self.receiver.take();
        (self.loans, until)
    }

    /// Decides what is kept back from the next incarnation, and until when: all messages while its
    /// backoff lasts, and older ones while it may still fail to start.
    fn hold(&mut self, now: Instant) -> (Option<DrainHold>, Option<Instant>) {
        let delivery_from = self.extras.as_mut().and_then(|extras| extras.delivery_from.take());
        let delivery_from = delivery_from.filter(|at| *at > now);
        let drain = self.options().drain.unwrap_or_else(|| self.binding.drain());
        let until_ready = drain == Drain::AtReady;
        let until = match drain {
            Drain::After(grace) => Some(later(now, grace)),
            Drain::AtReady | Drain::AtStart => None,
        };
        let until = until.max(delivery_from);
        let all = delivery_from.is_some();
        let has_messages = !self.queue.is_empty() || self.options().hold_new;
        if !all && (!has_messages || (until.is_none() && !until_ready)) {
            return (None, None);
        }
        let below = if self.options().overtake && !all { self.queue.next_id } else { u64::MAX };
        (Some(DrainHold { timed: until.is_some(), until_ready, below }), until)
    }

    /// The deadline of this loan's hold has passed.
    pub(crate) fn end_hold(&mut self, loan: u64) {
        if let Some(lent) = self.loan(loan)
            && let Some(hold) = &mut lent.hold
        {
            hold.timed = false;
        }
    }

    /// The incarnation is ready.
    pub(crate) fn mark_ready(&mut self, child: ChildId, incarnation: u32, fx: &mut MailboxEffects) {
        // Another supervisor's child, and an incarnation before the supervisor's restart, may have the
        // same number.
        if self.incarnation != incarnation || !self.binding.belongs_to(child) {
            return;
        }
        if let MailboxPhase::Lent(CurrentLoan { hold: Some(hold), .. }) = &mut self.phase
            && std::mem::take(&mut hold.until_ready)
        {
            fx.receiver = self.receiver.take();
        }
    }

    /// Returns the next message for this loan. If `awaits_stop`, a cancellation of its holder comes before all
    /// messages.
    pub(crate) fn next(
        &mut self,
        loan: u64,
        take: Take,
        awaits_stop: bool,
        waker: &Waker,
        fx: &mut MailboxEffects,
    ) -> NextMessage<M> {
        if self.loan(loan).is_none() {
            return NextMessage::End;
        }
        fx.question = self.put_down();
        if awaits_stop && self.stop != LoanEnding::No {
            return NextMessage::Stopping;
        }
        let Some(lent) = self.loan(loan) else { return NextMessage::End };
        if lent.ending == LoanEnding::Leaving || lent.put_back {
            return NextMessage::End;
        }
        lent.hold.take_if(|hold| !hold.timed && !hold.until_ready);
        let from = lent.hold.as_ref().map_or(0, |hold| hold.below);
        let closing = lent.ending == LoanEnding::Closing;
        let envelope = match take {
            Take::Deliver => self.queue.lend(from),
            Take::Receive => self.queue.take(from).map(|(envelope, sender)| {
                fx.sender = sender;
                self.progress = true;
                self.take_in_hand(envelope.asker.clone());
                envelope
            }),
        };
        if let Some(envelope) = envelope {
            let is_final = self.options().final_message.clone();
            return NextMessage::Message(envelope, is_final);
        }
        if closing && self.queue.is_empty() {
            return NextMessage::End;
        }
        if self.receiver.as_ref().is_none_or(|it| !it.will_wake(waker)) {
            fx.stale = self.receiver.replace(waker.clone());
        }
        NextMessage::None
    }

    /// The incarnation has received a message for good. No question is in hand.
    fn take_in_hand(&mut self, question: Option<OpenQuestion>) {
        self.in_hand = true;
        if question.is_some() {
            self.extras.get_or_insert_default().question = question;
        }
    }

    /// No message is in hand any more. Returns the question that was.
    pub(crate) fn put_down(&mut self) -> Option<OpenQuestion> {
        self.in_hand = false;
        self.extras.as_mut()?.question.take()
    }

    fn loan(&mut self, loan: u64) -> Option<&mut CurrentLoan> {
        match &mut self.phase {
            MailboxPhase::Lent(lent) if loan == self.loans => Some(lent),
            _ => None,
        }
    }

    /// The holder of the loan accepts no more messages.
    pub(crate) fn close_inbox(&mut self, loan: u64, fx: &mut MailboxEffects) {
        if self.loan(loan).is_some_and(|lent| lent.ending < LoanEnding::Leaving) {
            self.end_loan(LoanEnding::Closing, fx);
        }
    }

    /// The child was cancelled; `for_good` if it won't be restarted.
    pub(crate) fn begin_stop(&mut self, for_good: bool, fx: &mut MailboxEffects) {
        self.advance_stop(
            match self.options().closing {
                Closing::Manually => LoanEnding::Open,
                Closing::Immediately if for_good => LoanEnding::Closing,
                Closing::Immediately => LoanEnding::Leaving,
            },
            fx,
        );
    }

    /// The child was cancelled, and the time in which its mailbox may stay open is over.
    pub(crate) fn force_close(&mut self, fx: &mut MailboxEffects) {
        self.advance_stop(LoanEnding::Closing, fx);
    }

    fn advance_stop(&mut self, stop: LoanEnding, fx: &mut MailboxEffects) {
        if self.stop < stop {
            self.stop = stop;
            self.end_loan(stop, fx);
        }
    }

    /// Ends the loan, if there is one. A mailbox that isn't lent is closed to its senders.
    fn end_loan(&mut self, ending: LoanEnding, fx: &mut MailboxEffects) {
        if let MailboxPhase::Lent(lent) = &mut self.phase
            && lent.ending < ending
        {
            lent.ending = ending;
            lent.hold.take_if(|_| ending > LoanEnding::Open);
        }
        if ending == LoanEnding::Closing {
            fx.senders = self.queue.release_senders();
        }
        fx.receiver = self.receiver.take();
    }

    /// The inbox of the loan was dropped. Returns the messages that are diverted.
    pub(crate) fn end(
        &mut self,
        loan: u64,
        fx: &mut MailboxEffects,
    ) -> (VecDeque<Envelope<M>>, WhileDown<M>) {
        let Some(lent) = self.loan(loan) else { return Default::default() };
        let closed = lent.ending == LoanEnding::Closing;
        self.phase = MailboxPhase::Down { closed };
        let mut diverted = VecDeque::new();
        if self.diverts() && !closed {
            diverted = self.queue.drain_undelivered();
            fx.senders = self.queue.release_senders();
        }
        fx.receiver = self.receiver.take();
        self.notify_pending(false, fx);
        (diverted, self.options().while_down.clone())
    }

    /// A delivery was acknowledged. Returns `true` if no message is left that has failed before.
    pub(crate) fn ack(&mut self, envelope: &Envelope<M>, fx: &mut MailboxEffects) -> bool {
        self.progress = true;
        fx.sender = self.queue.settle(envelope);
        !self.queue.has_failed_before()
    }

    /// A delivery of this loan was dropped without an acknowledgement; `failed` if the attempt counts.
    /// Returns the message if it is a dead letter.
    pub(crate) fn put_back(
        &mut self,
        envelope: Envelope<M>,
        loan: u64,
        failed: bool,
        fx: &mut MailboxEffects,
    ) -> Option<(Envelope<M>, DeadLetterReason)> {
        let max = self.options().max_attempts;
        let is_last = |max: NonZeroU32| envelope.failed.saturating_add(1) >= max.get();
        let reason = match self.phase {
            _ if failed && max.is_some_and(is_last) => Some(DeadLetterReason::Poison),
            MailboxPhase::Closed(reason) => Some(reason),
            _ => None,
        };
        // With a limit, each failed attempt brings the message closer to being poison.
        self.progress |= reason.is_some() || (failed && max.is_some());
        if let Some(reason) = reason {
            fx.sender = self.queue.settle(&envelope);
            return Some((envelope, reason));
        }
        if !failed && let Some(lent) = self.loan(loan) {
            // Otherwise the holder would receive the same message again, and no attempt would count.
            lent.put_back = true;
        }
        self.queue.give_back(envelope, failed);
        fx.receiver = self.receiver.take();
        self.notify_pending(false, fx);
        None
    }
}
