//! A mailbox against a naive model: its options, its loan, and where each message is.

mod model;
mod step;

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::wakes::CountingWaker;
use super::*;
use crate::mailbox::options::{Diversion, Drain, Overflow};
use model::{MailboxModel, ModelPhase, QueuedMessage};
use step::{Config, MailboxStep, config, step};

use DeadLetterReason::{
    DroppedWhileDown, Evicted, HandlerError, MailboxFull, Poison, StashOverflow,
};

const CLOSED: DeadLetterReason = DeadLetterReason::UndeliveredAtStop;

fn mailbox(config: Config) -> BoundMailbox<u32> {
    let mailbox = BoundMailbox::with(config.capacity, config.start_on_message);
    mailbox.shared.set_option(|options| {
        options.overflow = config.overflow;
        options.max_attempts = config.most;
        options.overtake = config.overtakes;
        options.drain = Some(if config.waits_for_ready { Drain::AtReady } else { Drain::AtStart });
        if config.diverts {
            options.while_down = Diversion::DeadLetter;
        }
    });
    mailbox
}

fn run(config: Config, steps: Vec<MailboxStep>) -> Result<(), TestCaseError> {
    let mut mailbox = mailbox(config);
    let mut naive = MailboxModel {
        config,
        phase: ModelPhase::Fresh,
        loans: 0,
        queued: BTreeMap::new(),
        lent: Vec::new(),
        senders: Vec::new(),
        waiting: Vec::new(),
        admitted: Vec::new(),
        numbers: 0,
        next_id: 0,
        notified: false,
        progress: false,
        letters: Vec::new(),
        notifications: 0,
        inbox_waits: false,
        inbox_woken: false,
    };
    let (counter, waker) = CountingWaker::new();
    let mut message = 0;
    let mut loan = 0;
    for step in steps {
        match step {
            MailboxStep::Send | MailboxStep::Wait | MailboxStep::Retry(_) => {
                let (mut sends, mut number) = (message + 1, None);
                match step {
                    MailboxStep::Retry(_) if naive.senders.is_empty() => continue,
                    MailboxStep::Retry(which) => {
                        let (kept, it) = naive.senders.remove(which.index(naive.senders.len()));
                        (sends, number) = (it, Some(kept));
                        naive.admitted.retain(|&it| it != kept);
                    }
                    _ => message = sends,
                }
                let waits = !matches!(step, MailboxStep::Send);
                let sent = if waits {
                    mailbox.poll_send(sends, number, Waker::noop())
                } else {
                    mailbox.try_send(sends).map(|()| None)
                };
                let stays_out = config.diverts && !config.start_on_message;
                let lent = matches!(naive.phase, ModelPhase::Lent { .. });
                let full = if lent { MailboxFull } else { StashOverflow };
                let is_in = matches!(sent, Ok(None));
                if let Some(number) = number.filter(|it| naive.waiting.contains(it)) {
                    prop_assert_eq!(sent.unwrap(), Some((sends, number)));
                    naive.senders.push((number, sends));
                } else if naive.is_closed() {
                    let back = sent.unwrap_err();
                    let closed = matches!(back, SendError::Closed { .. });
                    prop_assert!(closed);
                    prop_assert_eq!(back.into_message(), sends);
                } else if stays_out && matches!(naive.phase, ModelPhase::Down { .. }) {
                    prop_assert!(is_in);
                    naive.dead_letter(DroppedWhileDown, sends);
                } else if !naive.is_full() {
                    prop_assert!(is_in);
                    naive.push(sends);
                } else if waits {
                    prop_assert_eq!(sent.unwrap(), Some((sends, naive.numbers)));
                    naive.waiting.push(naive.numbers);
                    naive.senders.push((naive.numbers, sends));
                    naive.numbers += 1;
                } else if config.overflow == Overflow::DropNewest {
                    prop_assert!(is_in);
                    naive.dead_letter(full, sends);
                } else if config.overflow == Overflow::DropOldest && !naive.queued.is_empty() {
                    prop_assert!(is_in);
                    let (_, oldest) = naive.queued.pop_first().unwrap();
                    let reason = if oldest.attempts > 0 { Evicted } else { full };
                    naive.push(sends);
                    naive.dead_letter(reason, oldest.message);
                } else {
                    let back = sent.unwrap_err();
                    let full = matches!(back, SendError::Full { .. });
                    prop_assert!(full);
                    prop_assert_eq!(back.into_message(), sends);
                }
            }
            MailboxStep::Leave(which) if !naive.senders.is_empty() => {
                let (number, _) = naive.senders.remove(which.index(naive.senders.len()));
                mailbox.leave(number);
                naive.waiting.retain(|&it| it != number);
                if naive.admitted.contains(&number) {
                    naive.admitted.retain(|&it| it != number);
                    naive.admit();
                }
            }
            MailboxStep::Recv | MailboxStep::Deliver => {
                let take = if matches!(step, MailboxStep::Deliver) {
                    Take::Deliver
                } else {
                    Take::Receive
                };
                let next = naive.next(loan, take);
                match (mailbox.next(loan, take, &waker), next) {
                    (Poll::Ready(None), Err(())) | (Poll::Pending, Ok(None)) => {}
                    (Poll::Ready(Some(envelope)), Ok(Some((id, known)))) => {
                        let Envelope { message, attempts, failed, .. } = envelope;
                        prop_assert_eq!(QueuedMessage { message, attempts, failed }, known);
                        prop_assert_eq!(envelope.id, id);
                        if take == Take::Deliver {
                            naive.lent.push((envelope, loan, Arc::clone(&mailbox.holder)));
                        } else {
                            naive.admit();
                        }
                    }
                    (real, _) => prop_assert!(false, "{next:?}, but {}", real.is_pending()),
                }
            }
            MailboxStep::RecvStale if loan > 0 => {
                prop_assert!(matches!(
                    mailbox.next(loan - 1, Take::Deliver, &waker),
                    Poll::Ready(None)
                ));
            }
            MailboxStep::Ack(which) if !naive.lent.is_empty() => {
                let (envelope, _, holder) = naive.lent.remove(which.index(naive.lent.len()));
                naive.progress = true;
                let before = holder.acks.load(Ordering::SeqCst);
                mailbox.shared.ack(&envelope, &*holder);
                naive.admit();
                let queued = naive.queued.values().any(|it| it.failed > 0);
                let failed_before = queued || naive.lent.iter().any(|(it, ..)| it.failed > 0);
                let well = holder.acks.load(Ordering::SeqCst) > before;
                prop_assert_eq!(well, !failed_before);
            }
            MailboxStep::Drop(which) if !naive.lent.is_empty() => {
                let (envelope, of, holder) = naive.lent.remove(which.index(naive.lent.len()));
                let Envelope { id, message, attempts, mut failed, .. } = envelope;
                let fails = !holder.is_cancelled.load(Ordering::SeqCst);
                mailbox.put_back(envelope, of, &holder);
                failed += u32::from(fails);
                let dead = if fails && config.most.is_some_and(|most| failed >= most.get()) {
                    Some(Poison)
                } else {
                    (naive.phase == ModelPhase::Closed).then_some(CLOSED)
                };
                naive.progress |= dead.is_some() || (fails && config.most.is_some());
                if let Some(reason) = dead {
                    naive.dead_letter(reason, message);
                    naive.admit();
                } else {
                    if let (false, true, ModelPhase::Lent { put_back, .. }) =
                        (fails, of == naive.loans, &mut naive.phase)
                    {
                        *put_back = true;
                    }
                    naive.queued.insert(id, QueuedMessage { message, attempts, failed });
                    naive.wake();
                    if naive.progress {
                        naive.notify();
                    }
                }
            }
            MailboxStep::Lend if naive.phase != ModelPhase::Closed => {
                (loan, _) = mailbox.loan();
                naive.loans += 1;
                prop_assert_eq!(loan, naive.loans);
                let below = if config.overtakes { naive.next_id } else { u64::MAX };
                let below = (config.waits_for_ready && !naive.queued.is_empty()).then_some(below);
                naive.phase =
                    ModelPhase::Lent { closing: false, leaving: false, put_back: false, below };
                (naive.notified, naive.progress) = (false, false);
                naive.wake();
            }
            MailboxStep::End => {
                mailbox.shared.end(loan, mailbox.now);
                if let ModelPhase::Lent { closing, .. } = naive.phase {
                    naive.phase = ModelPhase::Down { closed: closing };
                    if config.diverts && !config.start_on_message && !closing {
                        let queued = std::mem::take(&mut naive.queued);
                        for (id, known) in queued {
                            if known.attempts > 0 {
                                naive.queued.insert(id, known);
                            } else {
                                naive.dead_letter(DroppedWhileDown, known.message);
                            }
                        }
                        naive.release();
                    }
                    naive.wake();
                    if naive.progress {
                        naive.notify();
                    }
                }
            }
            MailboxStep::Ready => {
                mailbox.shared.mark_ready(mailbox.child(), 1);
                if let ModelPhase::Lent { below: below @ Some(_), .. } = &mut naive.phase {
                    *below = None;
                    naive.wake();
                }
            }
            MailboxStep::CloseInbox | MailboxStep::Stop { .. } => {
                let for_good = match step {
                    MailboxStep::Stop { for_good } => {
                        mailbox.holder.is_cancelled.store(true, Ordering::SeqCst);
                        mailbox.shared.begin_stop(for_good);
                        for_good
                    }
                    _ => {
                        mailbox.shared.step(|state, fx| state.close_inbox(loan, fx));
                        true
                    }
                };
                let by_itself = matches!(step, MailboxStep::CloseInbox);
                if let ModelPhase::Lent { closing, leaving, below, .. } = &mut naive.phase
                    && !*closing
                    && !(by_itself && *leaving)
                {
                    (*closing, *leaving, *below) = (for_good, !for_good, None);
                    if for_good {
                        naive.release();
                    }
                    naive.wake();
                }
            }
            MailboxStep::Close => {
                mailbox.close(CLOSED);
                naive.phase = ModelPhase::Closed;
                naive.loans += 1;
                (naive.notified, loan) = (false, naive.loans - 1);
                naive.release();
                naive.wake();
                naive.all_dead(CLOSED);
            }
            MailboxStep::Reopen => {
                mailbox.shared.reopen();
                if !matches!(naive.phase, ModelPhase::Lent { .. }) {
                    naive.phase = ModelPhase::Fresh;
                }
            }
            MailboxStep::MarkIdle
                if config.start_on_message && naive.phase != ModelPhase::Closed =>
            {
                mailbox.mark_idle();
                if matches!(naive.phase, ModelPhase::Lent { .. }) {
                    naive.loans += 1;
                    loan = naive.loans - 1;
                    naive.wake();
                }
                naive.phase = ModelPhase::Down { closed: false };
                if naive.progress {
                    naive.notify();
                }
                if !naive.notified {
                    naive.all_dead(HandlerError);
                    for _ in 0..naive.waiting.len() {
                        naive.admit();
                    }
                }
            }
            MailboxStep::Rebind => {
                mailbox.shared.unbind();
                mailbox.bind(config.start_on_message);
                naive.notified = false;
                if naive.phase == ModelPhase::Closed {
                    naive.phase = ModelPhase::Fresh;
                }
                naive.notify();
            }
            MailboxStep::Leave(_)
            | MailboxStep::RecvStale
            | MailboxStep::Ack(_)
            | MailboxStep::Drop(_)
            | MailboxStep::Lend
            | MailboxStep::MarkIdle => {}
        }
        prop_assert_eq!(mailbox.owner.letters::<u32>(), std::mem::take(&mut naive.letters));
        prop_assert_eq!(
            mailbox.owner.notifications(),
            std::mem::take(&mut naive.notifications),
            "notifications"
        );
        prop_assert_eq!(counter.wakes() > 0, std::mem::take(&mut naive.inbox_woken), "woken");
        prop_assert_eq!(mailbox.shared.load().0, naive.len());
        prop_assert!(naive.len() <= config.capacity);
        prop_assert_eq!(mailbox.shared.is_closed(), naive.is_closed());
        prop_assert!(
            naive.waiting.is_empty() || naive.is_full(),
            "a sender waits although there is room"
        );
    }
    Ok(())
}

proptest! {
    #[test]
    fn a_mailbox_behaves_like_its_naive_model(
        config in config(),
        steps in prop::collection::vec(step(), 0..60),
    ) {
        run(config, steps)?;
    }
}
