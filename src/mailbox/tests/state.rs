//! A mailbox against one that is written down naively: what is said of it, who has it, and where each
//! message is.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use proptest::prelude::*;

use super::super::{Drain, Overflow, WhileDown};
use super::wakes::Bell;
use super::*;

use DeadLetterReason::{
    DroppedWhileDown, Evicted, HandlerError, MailboxFull, Poison, StashOverflow,
};

const AWAY: DeadLetterReason = DeadLetterReason::UndeliveredAtStop;

#[derive(Clone, Copy, Debug)]
enum Step {
    Send,
    Wait,
    /// A sender who had to wait tries again, or gives up.
    Retry(prop::sample::Index),
    Leave(prop::sample::Index),
    Recv,
    Deliver,
    /// A loan that is over asks for a message.
    RecvStale,
    Ack(prop::sample::Index),
    Drop(prop::sample::Index),
    Lend,
    Return,
    Ready,
    Close,
    Stop {
        for_good: bool,
    },
    Away,
    Reopen,
    Rest,
    Rebind,
}

fn step() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        8 => Just(Step::Send),
        3 => Just(Step::Wait),
        4 => index().prop_map(Step::Retry),
        1 => index().prop_map(Step::Leave),
        4 => Just(Step::Recv),
        6 => Just(Step::Deliver),
        1 => Just(Step::RecvStale),
        3 => index().prop_map(Step::Ack),
        4 => index().prop_map(Step::Drop),
        4 => Just(Step::Lend),
        3 => Just(Step::Return),
        2 => Just(Step::Ready),
        1 => Just(Step::Close),
        2 => any::<bool>().prop_map(|for_good| Step::Stop { for_good }),
        1 => Just(Step::Away),
        1 => Just(Step::Reopen),
        1 => Just(Step::Rest),
        1 => Just(Step::Rebind),
    ]
}

/// What is said of the mailbox.
#[derive(Clone, Copy, Debug)]
struct Said {
    capacity: usize,
    overflow: Overflow,
    most: Option<NonZeroU32>,
    diverts: bool,
    waits_for_ready: bool,
    overtakes: bool,
    on_message: bool,
}

fn said() -> impl Strategy<Value = Said> {
    let overflow =
        prop_oneof![Just(Overflow::Reject), Just(Overflow::DropOldest), Just(Overflow::DropNewest)];
    let most = (0..4_u32).prop_map(NonZeroU32::new);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (1..5_usize, overflow, most, flags).prop_map(|(capacity, overflow, most, flags)| {
        let (diverts, waits_for_ready, overtakes, on_message) = flags;
        Said { capacity, overflow, most, diverts, waits_for_ready, overtakes, on_message }
    })
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    New,
    Lent { closing: bool, leaving: bool, done: bool, below: Option<u64> },
    Down { closed: bool },
    Away,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Known {
    message: u32,
    attempts: u32,
    failed: u32,
}

struct Naive {
    said: Said,
    phase: Phase,
    loans: u64,
    here: BTreeMap<u64, Known>,
    /// The message, the loan, and whether its reader was asked to stop.
    lent: Vec<(Envelope<u32>, u64, Arc<Reader>)>,
    /// All senders who had to wait, by their numbers; those whose turn it isn't yet; and those for
    /// whom room is kept.
    senders: Vec<(u64, u32)>,
    waiting: Vec<u64>,
    admitted: Vec<u64>,
    numbers: u64,
    next_id: u64,
    /// The supervisor was told.
    told: bool,
    progress: bool,
    // What happened in one step.
    letters: Vec<(DeadLetterReason, u32)>,
    wanted: usize,
    reader_waits: bool,
    reader_woken: bool,
}

impl Naive {
    fn len(&self) -> usize {
        self.here.len() + self.lent.len()
    }

    fn is_full(&self) -> bool {
        self.len() + self.admitted.len() >= self.said.capacity
    }

    fn is_closed(&self) -> bool {
        match self.phase {
            Phase::Away => true,
            Phase::Down { closed } => closed,
            Phase::Lent { closing, .. } => closing,
            Phase::New => false,
        }
    }

    fn is_down(&self) -> bool {
        matches!(self.phase, Phase::New | Phase::Down { .. })
    }

    fn wants(&mut self) {
        if self.is_down() && self.said.on_message && !self.here.is_empty() && !self.told {
            self.told = true;
            self.wanted += 1;
        }
    }

    fn wake(&mut self) {
        self.reader_woken |= std::mem::take(&mut self.reader_waits);
    }

    fn push(&mut self, message: u32) {
        self.here.insert(self.next_id, Known { message, attempts: 0, failed: 0 });
        self.next_id += 1;
        self.wake();
        self.wants();
    }

    fn admit(&mut self) {
        if !self.is_full() && !self.waiting.is_empty() {
            self.admitted.push(self.waiting.remove(0));
        }
    }

    fn release(&mut self) {
        self.waiting.clear();
        self.admitted.clear();
    }

    fn bury(&mut self, reason: DeadLetterReason, message: u32) {
        self.letters.push((reason, message));
    }

    fn bury_all(&mut self, reason: DeadLetterReason) {
        for known in std::mem::take(&mut self.here).into_values() {
            self.bury(reason, known.message);
        }
    }

    /// What a loan may have, for good if `lends` isn't set: `None` is nothing, and the error the end.
    fn next(&mut self, loan: u64, lends: bool) -> Result<Option<(u64, Known)>, ()> {
        let Phase::Lent { closing, leaving, done, below } = self.phase else { return Err(()) };
        if loan != self.loans || leaving || done {
            return Err(());
        }
        let Some((&id, _)) = self.here.range(below.unwrap_or(0)..).next() else {
            if closing && self.here.is_empty() {
                return Err(());
            }
            self.reader_waits = true;
            return Ok(None);
        };
        let mut known = self.here.remove(&id).unwrap();
        if lends {
            known.attempts += 1;
        } else {
            self.progress = true;
        }
        Ok(Some((id, known)))
    }
}

fn mailbox(said: Said) -> Post<u32> {
    let post = Post::of(said.capacity, said.on_message);
    post.shared.edit(|options| {
        options.overflow = said.overflow;
        options.max_attempts = said.most;
        options.overtakes = said.overtakes;
        options.drain = Some(if said.waits_for_ready { Drain::AtReady } else { Drain::AtStart });
        if said.diverts {
            options.while_down = WhileDown::DeadLetter;
        }
    });
    post
}

fn run(said: Said, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut post = mailbox(said);
    let mut naive = Naive {
        said,
        phase: Phase::New,
        loans: 0,
        here: BTreeMap::new(),
        lent: Vec::new(),
        senders: Vec::new(),
        waiting: Vec::new(),
        admitted: Vec::new(),
        numbers: 0,
        next_id: 0,
        told: false,
        progress: false,
        letters: Vec::new(),
        wanted: 0,
        reader_waits: false,
        reader_woken: false,
    };
    let (bell, waker) = Bell::new();
    let mut message = 0;
    let mut loan = 0;
    // The number of a loan that the mailbox has forgotten, and the present one.
    for step in steps {
        match step {
            Step::Send | Step::Wait | Step::Retry(_) => {
                let (mut sends, mut number) = (message + 1, None);
                match step {
                    Step::Retry(_) if naive.senders.is_empty() => continue,
                    Step::Retry(which) => {
                        let (kept, it) = naive.senders.remove(which.index(naive.senders.len()));
                        (sends, number) = (it, Some(kept));
                        naive.admitted.retain(|&it| it != kept);
                    }
                    _ => message = sends,
                }
                let waits = !matches!(step, Step::Send);
                let sent = if waits {
                    post.shared.poll_send(sends, number, Waker::noop())
                } else {
                    post.shared.send(sends, Origin::Sent, None, Patience::None).map(|()| None)
                };
                let stays_out = said.diverts && !said.on_message;
                let lent = matches!(naive.phase, Phase::Lent { .. });
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
                } else if stays_out && matches!(naive.phase, Phase::Down { .. }) {
                    prop_assert!(is_in);
                    naive.bury(DroppedWhileDown, sends);
                } else if !naive.is_full() {
                    prop_assert!(is_in);
                    naive.push(sends);
                } else if waits {
                    prop_assert_eq!(sent.unwrap(), Some((sends, naive.numbers)));
                    naive.waiting.push(naive.numbers);
                    naive.senders.push((naive.numbers, sends));
                    naive.numbers += 1;
                } else if said.overflow == Overflow::DropNewest {
                    prop_assert!(is_in);
                    naive.bury(full, sends);
                } else if said.overflow == Overflow::DropOldest && !naive.here.is_empty() {
                    prop_assert!(is_in);
                    let (_, oldest) = naive.here.pop_first().unwrap();
                    let reason = if oldest.attempts > 0 { Evicted } else { full };
                    naive.push(sends);
                    naive.bury(reason, oldest.message);
                } else {
                    let back = sent.unwrap_err();
                    let full = matches!(back, SendError::Full { .. });
                    prop_assert!(full);
                    prop_assert_eq!(back.into_message(), sends);
                }
            }
            Step::Leave(which) if !naive.senders.is_empty() => {
                let (number, _) = naive.senders.remove(which.index(naive.senders.len()));
                post.shared.leave(number);
                naive.waiting.retain(|&it| it != number);
                if naive.admitted.contains(&number) {
                    naive.admitted.retain(|&it| it != number);
                    naive.admit();
                }
            }
            Step::Recv | Step::Deliver => {
                let lends = matches!(step, Step::Deliver);
                let next = naive.next(loan, lends);
                match (post.next(loan, lends, &waker), next) {
                    (Poll::Ready(None), Err(())) | (Poll::Pending, Ok(None)) => {}
                    (Poll::Ready(Some(envelope)), Ok(Some((id, known)))) => {
                        let Envelope { message, attempts, failed, .. } = envelope;
                        prop_assert_eq!(Known { message, attempts, failed }, known);
                        prop_assert_eq!(envelope.id, id);
                        if lends {
                            naive.lent.push((envelope, loan, Arc::clone(&post.reader)));
                        } else {
                            naive.admit();
                        }
                    }
                    (real, _) => prop_assert!(false, "{next:?}, but {}", real.is_pending()),
                }
            }
            Step::RecvStale if loan > 0 => {
                prop_assert!(matches!(post.next(loan - 1, true, &waker), Poll::Ready(None)));
            }
            Step::Ack(which) if !naive.lent.is_empty() => {
                let (envelope, _, reader) = naive.lent.remove(which.index(naive.lent.len()));
                naive.progress = true;
                let before = reader.acked.load(Ordering::SeqCst);
                post.shared.acked(&envelope, &*reader);
                naive.admit();
                let here = naive.here.values().any(|it| it.failed > 0);
                let suspects = here || naive.lent.iter().any(|(it, ..)| it.failed > 0);
                let well = reader.acked.load(Ordering::SeqCst) > before;
                prop_assert_eq!(well, !suspects);
            }
            Step::Drop(which) if !naive.lent.is_empty() => {
                let (envelope, of, reader) = naive.lent.remove(which.index(naive.lent.len()));
                let Envelope { id, message, attempts, mut failed, .. } = envelope;
                let fails = !reader.is_stopping.load(Ordering::SeqCst);
                post.shared.came_back(envelope, of, &*reader);
                failed += u32::from(fails);
                let dead = if fails && said.most.is_some_and(|most| failed >= most.get()) {
                    Some(Poison)
                } else {
                    (naive.phase == Phase::Away).then_some(AWAY)
                };
                naive.progress |= dead.is_some() || (fails && said.most.is_some());
                if let Some(reason) = dead {
                    naive.bury(reason, message);
                    naive.admit();
                } else {
                    if let (false, true, Phase::Lent { done, .. }) =
                        (fails, of == naive.loans, &mut naive.phase)
                    {
                        *done = true;
                    }
                    naive.here.insert(id, Known { message, attempts, failed });
                    naive.wake();
                    if naive.progress {
                        naive.wants();
                    }
                }
            }
            // An incarnation is begun only when the last is gone, as far as the supervisor knows.
            Step::Lend if naive.phase != Phase::Away => {
                loan = post.loan();
                naive.loans += 1;
                prop_assert_eq!(loan, naive.loans);
                let below = if said.overtakes { naive.next_id } else { u64::MAX };
                let below = (said.waits_for_ready && !naive.here.is_empty()).then_some(below);
                naive.phase = Phase::Lent { closing: false, leaving: false, done: false, below };
                (naive.told, naive.progress) = (false, false);
                naive.wake();
            }
            Step::Return => {
                post.shared.returned(loan);
                if let Phase::Lent { closing, .. } = naive.phase {
                    naive.phase = Phase::Down { closed: closing };
                    if said.diverts && !said.on_message && !closing {
                        let here = std::mem::take(&mut naive.here);
                        for (id, known) in here {
                            if known.attempts > 0 {
                                naive.here.insert(id, known);
                            } else {
                                naive.bury(DroppedWhileDown, known.message);
                            }
                        }
                        naive.release();
                    }
                    naive.wake();
                    if naive.progress {
                        naive.wants();
                    }
                }
            }
            Step::Ready => {
                post.shared.ready(post.spot(), 1);
                if let Phase::Lent { below: below @ Some(_), .. } = &mut naive.phase {
                    *below = None;
                    naive.wake();
                }
            }
            Step::Close | Step::Stop { .. } => {
                let for_good = match step {
                    Step::Stop { for_good } => {
                        post.reader.is_stopping.store(true, Ordering::SeqCst);
                        post.shared.stopping(for_good);
                        for_good
                    }
                    _ => {
                        post.shared.close(loan);
                        true
                    }
                };
                let by_itself = matches!(step, Step::Close);
                if let Phase::Lent { closing, leaving, below, .. } = &mut naive.phase
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
            Step::Away => {
                post.shared.away(AWAY);
                naive.phase = Phase::Away;
                naive.loans += 1;
                (naive.told, loan) = (false, naive.loans - 1);
                naive.release();
                naive.wake();
                naive.bury_all(AWAY);
            }
            Step::Reopen => {
                post.shared.reopen();
                if !matches!(naive.phase, Phase::Lent { .. }) {
                    naive.phase = Phase::New;
                }
            }
            Step::Rest if said.on_message && naive.phase != Phase::Away => {
                post.shared.rest();
                if matches!(naive.phase, Phase::Lent { .. }) {
                    naive.loans += 1;
                    loan = naive.loans - 1;
                    naive.wake();
                }
                naive.phase = Phase::Down { closed: false };
                if naive.progress {
                    naive.wants();
                }
                if !naive.told {
                    naive.bury_all(HandlerError);
                    for _ in 0..naive.waiting.len() {
                        naive.admit();
                    }
                }
            }
            Step::Rebind => {
                post.shared.unbind();
                post.bind(said.on_message);
                naive.told = false;
                if naive.phase == Phase::Away {
                    naive.phase = Phase::New;
                }
                naive.wants();
            }
            Step::Leave(_)
            | Step::RecvStale
            | Step::Ack(_)
            | Step::Drop(_)
            | Step::Lend
            | Step::Rest => {}
        }
        prop_assert_eq!(post.office.letters::<u32>(), std::mem::take(&mut naive.letters));
        prop_assert_eq!(post.office.wanted(), std::mem::take(&mut naive.wanted), "wanted");
        prop_assert_eq!(bell.rings() > 0, std::mem::take(&mut naive.reader_woken), "woken");
        prop_assert_eq!(post.shared.load().0, naive.len());
        prop_assert!(naive.len() <= said.capacity);
        prop_assert_eq!(post.shared.is_closed(), naive.is_closed());
        prop_assert!(naive.waiting.is_empty() || naive.is_full(), "somebody waits for nothing");
    }
    Ok(())
}

proptest! {
    #[test]
    fn a_mailbox_is_what_a_list_of_everything_says(
        said in said(),
        steps in prop::collection::vec(step(), 0..60),
    ) {
        run(said, steps)?;
    }
}
