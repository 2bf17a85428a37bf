//! A mailbox and its model, which take the same steps.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Poll, Waker};

use proptest::prelude::*;

use super::model::{MailboxModel, ModelPhase, ModelStop, QueuedMessage};
use super::step::{Config, MailboxStep};
use crate::child::MailboxControl;
use crate::dead_letter::DeadLetterReason;
use crate::exit::ExitReason;
use crate::mailbox::address::SendError;
use crate::mailbox::options::{Closing, Drain, Overflow, WhileDown};
use crate::mailbox::queue::Envelope;
use crate::mailbox::state::{NextMessage, Take};
use crate::mailbox::tests::wakes::CountingWaker;
use crate::mailbox::tests::{BoundMailbox, INCARNATION};

use DeadLetterReason::{
    DroppedWhileDown, Evicted, HandlerError, MailboxFull, Poison, StashOverflow,
};

const CLOSED: DeadLetterReason = DeadLetterReason::UndeliveredAtStop;

/// See the [module](self).
pub(super) struct Comparison {
    mailbox: BoundMailbox<u32>,
    model: MailboxModel,
    counter: Arc<CountingWaker>,
    waker: Waker,
    senders: Arc<CountingWaker>,
    sender_waker: Waker,
    /// The last message that was sent.
    message: u32,
    /// The current loan.
    loan: u64,
}

impl Comparison {
    pub(super) fn new(config: Config) -> Self {
        let (counter, waker) = CountingWaker::new();
        let (senders, sender_waker) = CountingWaker::new();
        let (mailbox, model) = (mailbox(config), MailboxModel::new(config));
        Self { mailbox, model, counter, waker, senders, sender_waker, message: 0, loan: 0 }
    }

    /// Takes a step, unless it makes no sense in this state, and compares the outcome.
    pub(super) fn take(&mut self, step: MailboxStep) -> Result<(), TestCaseError> {
        match step {
            MailboxStep::Send | MailboxStep::Wait | MailboxStep::Retry(_) => self.send(step)?,
            MailboxStep::Leave(which) if !self.model.senders.is_empty() => self.leave(which),
            MailboxStep::Recv => self.next(Take::Receive)?,
            MailboxStep::Deliver => self.next(Take::Deliver)?,
            MailboxStep::StopOrRecv => self.stop_or_next(Take::Receive)?,
            MailboxStep::StopOrDeliver => self.stop_or_next(Take::Deliver)?,
            MailboxStep::RecvStale if self.loan > 0 => self.next_of_earlier_loan()?,
            MailboxStep::Ack(which) if !self.model.lent.is_empty() => self.ack(which)?,
            MailboxStep::Drop(which) if !self.model.lent.is_empty() => self.drop_delivered(which),
            MailboxStep::Lend if self.model.phase != ModelPhase::Closed => self.lend()?,
            MailboxStep::End => self.end(),
            MailboxStep::Fail { current } => self.fail(current),
            MailboxStep::Ready => self.mark_ready(),
            MailboxStep::CloseInbox => self.close_inbox(),
            MailboxStep::Stop { for_good } => self.begin_stop(for_good),
            MailboxStep::ForceClose => self.force_close(),
            MailboxStep::Close => self.close(),
            MailboxStep::Reopen => self.reopen(),
            MailboxStep::MarkIdle
                if self.model.config.start_on_message && self.model.phase != ModelPhase::Closed =>
            {
                self.mark_idle();
            }
            MailboxStep::Rebind => self.rebind(),
            MailboxStep::Leave(_)
            | MailboxStep::RecvStale
            | MailboxStep::Ack(_)
            | MailboxStep::Drop(_)
            | MailboxStep::Lend
            | MailboxStep::MarkIdle => {}
        }
        self.check()
    }

    /// Sends a message, or polls a sender that waits.
    fn send(&mut self, step: MailboxStep) -> Result<(), TestCaseError> {
        let (mut sends, mut number) = (self.message + 1, None);
        match step {
            MailboxStep::Retry(_) if self.model.senders.is_empty() => return Ok(()),
            MailboxStep::Retry(which) => {
                let (kept, it) = self.model.senders.remove(which.index(self.model.senders.len()));
                (sends, number) = (it, Some(kept));
            }
            _ => self.message = sends,
        }
        let waits = !matches!(step, MailboxStep::Send);
        let sent = if waits {
            self.mailbox.poll_send(sends, number, &self.sender_waker)
        } else {
            self.mailbox.try_send(sends).map(|()| None)
        };
        let stays_out = self.model.config.diverts && !self.model.config.start_on_message;
        let lent = matches!(self.model.phase, ModelPhase::Lent { .. });
        let full = if lent { MailboxFull } else { StashOverflow };
        let is_in = matches!(sent, Ok(None));
        let has_room = if waits { self.model.has_room_for(number) } else { !self.model.is_full() };
        let waited = number.filter(|it| self.model.waiting.contains(it));
        if self.model.is_closed() {
            prop_assert!(waited.is_none(), "all senders were released");
            let back = sent.unwrap_err();
            let closed = matches!(back, SendError::Closed { .. });
            prop_assert!(closed);
            prop_assert_eq!(back.into_message(), sends);
        } else if stays_out && matches!(self.model.phase, ModelPhase::Down { .. }) {
            prop_assert!(is_in);
            self.model.dead_letter(DroppedWhileDown, sends);
        } else if has_room {
            prop_assert!(is_in);
            waited.into_iter().for_each(|number| self.model.leave(number));
            self.model.push(sends);
        } else if let Some(number) = waited {
            prop_assert_eq!(sent.unwrap(), Some((sends, number)));
            self.model.senders.push((number, sends));
            self.model.woken.remove(&number);
        } else if waits {
            prop_assert_eq!(sent.unwrap(), Some((sends, self.model.numbers)));
            self.model.waiting.push(self.model.numbers);
            self.model.senders.push((self.model.numbers, sends));
            self.model.numbers += 1;
        } else if self.model.config.overflow == Overflow::DropNewest {
            prop_assert!(is_in);
            self.model.dead_letter(full, sends);
        } else if self.model.config.overflow == Overflow::DropOldest
            && !self.model.queued.is_empty()
        {
            prop_assert!(is_in);
            let (_, oldest) = self.model.queued.pop_first().unwrap();
            let reason = if oldest.attempts > 0 { Evicted } else { full };
            self.model.push(sends);
            self.model.dead_letter(reason, oldest.message);
        } else {
            let back = sent.unwrap_err();
            let full = matches!(back, SendError::Full { .. });
            prop_assert!(full);
            prop_assert_eq!(back.into_message(), sends);
        }
        Ok(())
    }

    /// Drops a sender that had to wait.
    fn leave(&mut self, which: prop::sample::Index) {
        let (number, _) = self.model.senders.remove(which.index(self.model.senders.len()));
        self.mailbox.leave(number);
        self.model.leave(number);
    }

    /// Takes the next message of the current loan.
    fn next(&mut self, take: Take) -> Result<(), TestCaseError> {
        let shared = Arc::clone(&self.mailbox.shared);
        self.compare_next(take, |loan, waker| shared.next(loan, take, false, waker))
    }

    fn compare_next(
        &mut self,
        take: Take,
        next: impl FnOnce(u64, &Waker) -> NextMessage<u32>,
    ) -> Result<(), TestCaseError> {
        let expected = self.model.next(self.loan, take);
        match (next(self.loan, &self.waker), expected) {
            (NextMessage::End, Err(())) | (NextMessage::None, Ok(None)) => {}
            (NextMessage::Message(envelope, _), Ok(Some((id, expected)))) => {
                let Envelope { message, attempts, failed, .. } = envelope;
                prop_assert_eq!(QueuedMessage { message, attempts, failed }, expected);
                prop_assert_eq!(envelope.id, id);
                if take == Take::Deliver {
                    self.model.lent.push((envelope, self.loan, Arc::clone(&self.mailbox.holder)));
                }
            }
            (real, _) => {
                let pending = matches!(real, NextMessage::None);
                prop_assert!(false, "{expected:?}, but {pending}");
            }
        }
        Ok(())
    }

    /// Learns that the incarnation is cancelled, or takes the next message.
    fn stop_or_next(&mut self, take: Take) -> Result<(), TestCaseError> {
        let lent = matches!(self.model.phase, ModelPhase::Lent { .. });
        if !lent || self.model.stop == ModelStop::No {
            let shared = Arc::clone(&self.mailbox.shared);
            return self.compare_next(take, |loan, waker| shared.next(loan, take, true, waker));
        }
        let next = self.mailbox.shared.next(self.loan, take, true, &self.waker);
        prop_assert!(matches!(next, NextMessage::Stopping));
        self.model.in_hand = false;
        Ok(())
    }

    /// Takes the next message of an earlier loan, which has ended.
    fn next_of_earlier_loan(&mut self) -> Result<(), TestCaseError> {
        prop_assert!(matches!(
            self.mailbox.next(self.loan - 1, Take::Deliver, &self.waker),
            Poll::Ready(None)
        ));
        Ok(())
    }

    /// Acknowledges a delivered message.
    fn ack(&mut self, which: prop::sample::Index) -> Result<(), TestCaseError> {
        let (envelope, _, holder) = self.model.lent.remove(which.index(self.model.lent.len()));
        self.model.progress = true;
        let before = holder.acks.load(Ordering::SeqCst);
        self.mailbox.shared.ack(&envelope, &*holder);
        let queued = self.model.queued.values().any(|it| it.failed > 0);
        let failed_before = queued || self.model.lent.iter().any(|(it, ..)| it.failed > 0);
        let reported = holder.acks.load(Ordering::SeqCst) > before;
        prop_assert_eq!(reported, !failed_before);
        Ok(())
    }

    /// Drops a delivered message without an acknowledgement.
    fn drop_delivered(&mut self, which: prop::sample::Index) {
        let (envelope, of, holder) = self.model.lent.remove(which.index(self.model.lent.len()));
        let Envelope { id, message, attempts, mut failed, .. } = envelope;
        let fails = !holder.is_cancelled.load(Ordering::SeqCst);
        self.mailbox.put_back(envelope, of, &holder);
        failed += u32::from(fails);
        let dead = if fails && self.model.config.most.is_some_and(|most| failed >= most.get()) {
            Some(Poison)
        } else {
            (self.model.phase == ModelPhase::Closed).then_some(CLOSED)
        };
        self.model.progress |= dead.is_some() || (fails && self.model.config.most.is_some());
        if let Some(reason) = dead {
            self.model.dead_letter(reason, message);
        } else {
            if let (false, true, ModelPhase::Lent { put_back, .. }) =
                (fails, of == self.model.loans, &mut self.model.phase)
            {
                *put_back = true;
            }
            self.model.queued.insert(id, QueuedMessage { message, attempts, failed });
            self.model.wake();
            if self.model.progress {
                self.model.notify();
            }
        }
    }

    /// Lends the mailbox to the next incarnation.
    fn lend(&mut self) -> Result<(), TestCaseError> {
        (self.loan, _) = self.mailbox.loan();
        self.model.loans += 1;
        prop_assert_eq!(self.loan, self.model.loans);
        let below = if self.model.config.overtakes { self.model.next_id } else { u64::MAX };
        let ending = self.model.stop;
        let holds = self.model.config.waits_for_ready && ending < ModelStop::Leaving;
        let below = (holds && !self.model.queued.is_empty()).then_some(below);
        self.model.phase = ModelPhase::Lent { ending, put_back: false, below };
        (self.model.notified, self.model.progress) = (false, false);
        self.model.in_hand = false;
        self.model.wake();
        Ok(())
    }

    /// Ends the current loan.
    fn end(&mut self) {
        self.mailbox.shared.end(self.loan, self.mailbox.now);
        if let ModelPhase::Lent { ending, .. } = self.model.phase {
            let closing = ending == ModelStop::Closing;
            self.model.phase = ModelPhase::Down { closed: closing };
            if self.model.config.diverts && !self.model.config.start_on_message && !closing {
                let queued = std::mem::take(&mut self.model.queued);
                for (id, expected) in queued {
                    if expected.attempts > 0 {
                        self.model.queued.insert(id, expected);
                    } else {
                        self.model.dead_letter(DroppedWhileDown, expected.message);
                    }
                }
                self.model.release();
            }
            self.model.wake();
            if self.model.progress {
                self.model.notify();
            }
        }
    }

    /// The incarnation fails, or a late failure of another one is reported.
    fn fail(&mut self, current: bool) {
        let incarnation = if current { INCARNATION } else { INCARNATION + 1 };
        let error = Arc::new(ExitReason::Aborted);
        Arc::clone(&self.mailbox.shared).lose(incarnation, &error, self.mailbox.now);
        // The number of the incarnation is known since its first loan.
        self.model.lost += usize::from(current && std::mem::take(&mut self.model.in_hand));
    }

    /// Marks the incarnation as ready.
    fn mark_ready(&mut self) {
        self.mailbox.shared.mark_ready(self.mailbox.child(), INCARNATION);
        if let ModelPhase::Lent { below: below @ Some(_), .. } = &mut self.model.phase {
            *below = None;
            self.model.wake();
        }
    }

    /// Begins the stop of the incarnation.
    fn begin_stop(&mut self, for_good: bool) {
        self.mailbox.holder.is_cancelled.store(true, Ordering::SeqCst);
        self.mailbox.shared.begin_stop(for_good);
        self.advance_stop(match (self.model.config.manual, for_good) {
            (true, _) => ModelStop::Open,
            (false, true) => ModelStop::Closing,
            (false, false) => ModelStop::Leaving,
        });
    }

    /// The time for an ordered stop is over.
    fn force_close(&mut self) {
        self.mailbox.holder.is_cancelled.store(true, Ordering::SeqCst);
        self.mailbox.shared.force_close();
        self.advance_stop(ModelStop::Closing);
    }

    fn advance_stop(&mut self, stop: ModelStop) {
        if self.model.stop < stop {
            self.model.stop = stop;
            self.end_loan(stop);
        }
    }

    /// Closes the inbox.
    fn close_inbox(&mut self) {
        let loan = self.loan;
        self.mailbox.shared.step(|state, fx| state.close_inbox(loan, fx));
        if let ModelPhase::Lent { ending: ModelStop::No | ModelStop::Open, .. } = self.model.phase {
            self.end_loan(ModelStop::Closing);
        }
    }

    fn end_loan(&mut self, to: ModelStop) {
        if let ModelPhase::Lent { ending, below, .. } = &mut self.model.phase {
            *ending = to.max(*ending);
            if to > ModelStop::Open {
                *below = None;
            }
        }
        if to == ModelStop::Closing {
            self.model.release();
        }
        self.model.wake();
    }

    /// Closes the mailbox.
    fn close(&mut self) {
        self.mailbox.close(CLOSED);
        self.model.phase = ModelPhase::Closed;
        self.model.loans += 1;
        (self.model.notified, self.loan) = (false, self.model.loans - 1);
        self.model.release();
        self.model.wake();
        self.model.all_dead(CLOSED);
    }

    /// Reopens the mailbox.
    fn reopen(&mut self) {
        self.mailbox.shared.reopen();
        self.model.in_hand = false;
        self.model.stop = ModelStop::No;
        if !matches!(self.model.phase, ModelPhase::Lent { .. }) {
            self.model.phase = ModelPhase::Fresh;
        }
    }

    /// Marks the child as idle.
    fn mark_idle(&mut self) {
        self.mailbox.mark_idle();
        self.model.stop = ModelStop::No;
        if matches!(self.model.phase, ModelPhase::Lent { .. }) {
            self.model.loans += 1;
            self.loan = self.model.loans - 1;
            self.model.wake();
        }
        self.model.phase = ModelPhase::Down { closed: false };
        if self.model.progress {
            self.model.notify();
        }
        if !self.model.notified {
            self.model.all_dead(HandlerError);
        }
    }

    /// Binds the mailbox to its child again.
    fn rebind(&mut self) {
        self.mailbox.shared.unbind();
        self.mailbox.bind(self.model.config.start_on_message);
        self.model.notified = false;
        self.model.stop = ModelStop::No;
        if self.model.phase == ModelPhase::Closed {
            self.model.phase = ModelPhase::Fresh;
        }
        self.model.notify();
    }

    /// Compares everything that shows after a step.
    fn check(&mut self) -> Result<(), TestCaseError> {
        prop_assert_eq!(
            self.mailbox.owner.letters::<u32>(),
            std::mem::take(&mut self.model.letters)
        );
        prop_assert_eq!(self.mailbox.owner.lost(), std::mem::take(&mut self.model.lost), "lost");
        prop_assert_eq!(
            self.mailbox.owner.notifications(),
            std::mem::take(&mut self.model.notifications),
            "notifications"
        );
        prop_assert_eq!(
            self.counter.wakes() > 0,
            std::mem::take(&mut self.model.inbox_woken),
            "woken"
        );
        prop_assert_eq!(self.mailbox.shared.load().0, self.model.len());
        prop_assert!(self.model.len() <= self.model.config.capacity);
        prop_assert_eq!(self.mailbox.shared.state().is_closed(), self.model.is_closed());
        self.model.wake_senders();
        prop_assert_eq!(
            self.senders.wakes(),
            std::mem::take(&mut self.model.sender_wakes),
            "senders"
        );
        Ok(())
    }
}

fn mailbox(config: Config) -> BoundMailbox<u32> {
    let mailbox = BoundMailbox::with(config.capacity, config.start_on_message);
    mailbox.shared.set_option(|options| {
        options.overflow = config.overflow;
        options.max_attempts = config.most;
        options.overtake = config.overtakes;
        options.closing = if config.manual { Closing::Manually } else { Closing::Immediately };
        options.drain = Some(if config.waits_for_ready { Drain::AtReady } else { Drain::AtStart });
        if config.diverts {
            options.while_down = WhileDown::DeadLetter;
        }
    });
    mailbox
}
