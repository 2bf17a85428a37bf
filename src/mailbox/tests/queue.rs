//! A queue against a naive model: a list of numbers for everything.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::queue::MessageQueue;
use super::*;

#[derive(Clone, Copy, Debug)]
enum QueueStep {
    /// Pushes if there is room behind the senders that wait, and waits otherwise.
    Send,
    /// Pushes if there is any room.
    TrySend,
    /// Takes from this part of all numbers on, in eighths: 0 holds nothing back.
    Take(u64),
    Lend(u64),
    Settle(prop::sample::Index),
    GiveBack(prop::sample::Index, bool),
    Evict,
    Leave(prop::sample::Index),
    /// A sender that had to wait, or was released, tries again.
    Poll(prop::sample::Index),
    Release,
    DrainUndelivered,
    /// Drains, and wakes senders as a caller of `drain` must do.
    Drain,
}

fn step() -> impl Strategy<Value = QueueStep> {
    let index = any::<prop::sample::Index>;
    let from = || prop_oneof![3 => Just(0), 1 => 0..9_u64];
    prop_oneof![
        8 => Just(QueueStep::Send),
        2 => Just(QueueStep::TrySend),
        3 => from().prop_map(QueueStep::Take),
        4 => from().prop_map(QueueStep::Lend),
        2 => index().prop_map(QueueStep::Settle),
        3 => (index(), any::<bool>()).prop_map(|(which, failed)| QueueStep::GiveBack(which, failed)),
        1 => Just(QueueStep::Evict),
        2 => index().prop_map(QueueStep::Leave),
        4 => index().prop_map(QueueStep::Poll),
        1 => Just(QueueStep::Release),
        1 => Just(QueueStep::DrainUndelivered),
        1 => Just(QueueStep::Drain),
    ]
}

/// The expected state of a message. The message itself is its number among all sent messages, which
/// differs from its number in the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct ExpectedDelivery {
    id: u64,
    attempts: u32,
    failed: u32,
}

#[derive(Default)]
struct QueueModel {
    capacity: usize,
    sent: u32,
    next_id: u64,
    /// By the number in the queue.
    queued: BTreeMap<u64, (u32, ExpectedDelivery)>,
    lent: Vec<Envelope<u32>>,
    /// The numbers of the senders that wait, in order, and those that were woken since their last poll.
    waiting: Vec<u64>,
    woken: BTreeSet<u64>,
    senders: u64,
}

impl QueueModel {
    fn len(&self) -> usize {
        self.queued.len() + self.lent.len()
    }

    /// Whether a sender may send: one that waits under this number, or a new one.
    fn has_room_for(&self, number: Option<u64>) -> bool {
        let before = self.waiting.iter().take_while(|&&it| Some(it) != number).count();
        self.len() + before < self.capacity
    }

    fn push(&mut self) {
        let message = self.sent;
        self.sent += 1;
        let id = self.next_id;
        self.next_id += 1;
        self.queued.insert(id, (message, ExpectedDelivery { id, ..ExpectedDelivery::default() }));
    }

    /// Wakes the senders that have room and were not woken. Returns how many.
    fn wake(&mut self) -> usize {
        let waiting = self.waiting.clone().into_iter();
        let with_room = waiting.filter(|&number| self.has_room_for(Some(number)));
        with_room.collect::<Vec<_>>().into_iter().filter(|it| self.woken.insert(*it)).count()
    }

    /// Removes a sender. Returns whether it waited, and was not woken.
    fn leave(&mut self, number: u64) -> bool {
        let waited = self.waiting.contains(&number);
        self.waiting.retain(|&it| it != number);
        !self.woken.remove(&number) && waited
    }

    /// Removes all senders. Returns how many were not woken.
    fn release(&mut self) -> usize {
        std::mem::take(&mut self.waiting).len() - std::mem::take(&mut self.woken).len()
    }

    fn pick(&mut self, from: u64) -> Option<(u32, ExpectedDelivery)> {
        let id = *self.queued.range(from..).next()?.0;
        self.queued.remove(&id)
    }

    fn has_failed_before(&self) -> bool {
        let queued = self.queued.values().any(|(_, known)| known.failed > 0);
        queued || self.lent.iter().any(|it| it.failed > 0)
    }
}

fn known(envelope: &Envelope<u32>) -> (u32, ExpectedDelivery) {
    let &Envelope { id, message, attempts, failed, .. } = envelope;
    (message, ExpectedDelivery { id, attempts, failed })
}

fn same(real: impl IntoIterator<Item = Envelope<u32>>, naive: &[u32]) -> bool {
    real.into_iter().map(|it| it.message).eq(naive.iter().copied())
}

fn run(capacity: usize, steps: Vec<QueueStep>) -> Result<(), TestCaseError> {
    let mut queue = MessageQueue::new(capacity);
    let mut naive = QueueModel { capacity, ..QueueModel::default() };
    for step in steps {
        let from = |eighths: u64| naive.next_id * eighths / 8;
        match step {
            QueueStep::Send => {
                prop_assert_eq!(queue.has_room_for(None), naive.has_room_for(None));
                if queue.has_room_for(None) {
                    queue.push(Envelope::new(naive.sent));
                    naive.push();
                } else {
                    prop_assert_eq!(queue.wait(None, Waker::noop()).0, naive.senders);
                    naive.waiting.push(naive.senders);
                    naive.senders += 1;
                }
            }
            QueueStep::TrySend => {
                prop_assert_eq!(queue.is_full(), naive.len() >= capacity);
                if !queue.is_full() {
                    queue.push(Envelope::new(naive.sent));
                    naive.push();
                }
            }
            QueueStep::Take(eighths) => {
                let from = from(eighths);
                let taken = queue.take(from);
                let picked = naive.pick(from);
                let woken = naive.wake();
                prop_assert_eq!(taken.as_ref().map(|(it, _)| known(it)), picked);
                let waker = taken.and_then(|(_, waker)| waker);
                prop_assert_eq!(usize::from(waker.is_some()), woken);
            }
            QueueStep::Lend(eighths) => {
                let from = from(eighths);
                let lent = queue.lend(from);
                let picked = naive.pick(from).map(|(message, known)| {
                    (message, ExpectedDelivery { attempts: known.attempts + 1, ..known })
                });
                prop_assert_eq!(lent.as_ref().map(known), picked);
                naive.lent.extend(lent);
            }
            QueueStep::Settle(which) if !naive.lent.is_empty() => {
                let envelope = naive.lent.remove(which.index(naive.lent.len()));
                let waker = queue.settle(&envelope);
                prop_assert_eq!(usize::from(waker.is_some()), naive.wake());
            }
            QueueStep::GiveBack(which, failed) if !naive.lent.is_empty() => {
                let envelope = naive.lent.remove(which.index(naive.lent.len()));
                let (message, mut known) = known(&envelope);
                queue.give_back(envelope, failed);
                known.failed += u32::from(failed);
                naive.queued.insert(known.id, (message, known));
            }
            // A caller that evicts pushes at once.
            QueueStep::Evict if queue.is_full() => {
                let evicted = queue.evict();
                prop_assert_eq!(evicted.as_ref().map(known), naive.pick(0));
                if evicted.is_some() {
                    queue.push(Envelope::new(naive.sent));
                    naive.push();
                }
            }
            QueueStep::Leave(which) if naive.senders > 0 => {
                let number = which.index(usize::try_from(naive.senders).unwrap()) as u64;
                let (own, next) = queue.leave(number);
                prop_assert_eq!(own.is_some(), naive.leave(number));
                prop_assert_eq!(usize::from(next.is_some()), naive.wake());
            }
            // A sender that may send does so at once.
            QueueStep::Poll(which) if naive.senders > 0 => {
                let number = which.index(usize::try_from(naive.senders).unwrap()) as u64;
                let has_room = naive.has_room_for(Some(number));
                prop_assert_eq!(queue.has_room_for(Some(number)), has_room);
                if has_room {
                    let kept = queue.end_wait(number);
                    prop_assert_eq!(kept.is_some(), naive.leave(number));
                    queue.push(Envelope::new(naive.sent));
                    naive.push();
                } else if naive.waiting.contains(&number) {
                    prop_assert_eq!(queue.wait(Some(number), Waker::noop()).0, number);
                    naive.woken.remove(&number);
                } else {
                    prop_assert_eq!(queue.wait(Some(number), Waker::noop()).0, naive.senders);
                    naive.waiting.push(naive.senders);
                    naive.senders += 1;
                }
            }
            QueueStep::Release => {
                prop_assert_eq!(queue.release_senders().len(), naive.release());
            }
            // A caller that drains undelivered messages releases all senders.
            QueueStep::DrainUndelivered => {
                let fresh = naive.queued.values().filter(|(_, it)| it.attempts == 0);
                let fresh: Vec<_> = fresh.map(|it| it.0).collect();
                naive.queued.retain(|_, (_, it)| it.attempts > 0);
                prop_assert!(same(queue.drain_undelivered(), &fresh));
                prop_assert_eq!(queue.release_senders().len(), naive.release());
            }
            QueueStep::Drain => {
                let all: Vec<_> = std::mem::take(&mut naive.queued).into_values().collect();
                let all: Vec<_> = all.into_iter().map(|it| it.0).collect();
                prop_assert!(same(queue.drain(), &all));
                prop_assert_eq!(queue.wake_all().len(), naive.wake());
            }
            QueueStep::Settle(_)
            | QueueStep::GiveBack(..)
            | QueueStep::Evict
            | QueueStep::Leave(_)
            | QueueStep::Poll(_) => {}
        }
        prop_assert_eq!(queue.len(), naive.len());
        prop_assert!(queue.len() <= capacity);
        prop_assert_eq!(queue.is_empty(), naive.queued.is_empty());
        prop_assert_eq!(queue.has_failed_before(), naive.has_failed_before());
        prop_assert_eq!(queue.next_id, naive.next_id);
        prop_assert_eq!(naive.wake(), 0, "a sender that has room was not woken");
    }
    Ok(())
}

proptest! {
    #![proptest_config(crate::random_cases::cases(64))]

    #[test]
    fn a_queue_behaves_like_its_naive_model(
        capacity in 1..5_usize,
        steps in prop::collection::vec(step(), 0..80),
    ) {
        run(capacity, steps)?;
    }
}

#[test]
fn of_thousands_of_senders_the_oldest_sends_first_and_any_may_leave() {
    const SENDERS: u64 = 20_000;
    let mut queue = MessageQueue::new(1);
    queue.push(Envelope::new(0));
    for _ in 0..SENDERS {
        queue.wait(None, Waker::noop());
    }
    for number in (0..SENDERS).filter(|it| it % 2 == 0) {
        assert!(queue.leave(number).0.is_some());
    }
    for number in (0..SENDERS).filter(|it| it % 2 == 1) {
        assert!(!queue.has_room_for(Some(number)));
        let (_, woken) = queue.take(0).unwrap();
        assert!(woken.is_some());
        assert!(queue.has_room_for(Some(number)) && !queue.has_room_for(Some(number + 2)));
        assert!(queue.end_wait(number).is_none());
        queue.push(Envelope::new(number));
    }
    assert_eq!(queue.len(), 1);
}

#[test]
fn the_counts_of_attempts_saturate() {
    let mut queue = MessageQueue::new(1);
    queue.push(Envelope::new(()));
    let lent = queue.lend(0).unwrap();
    queue.give_back(lent, true);

    let mut lent = queue.lend(0).unwrap();
    (lent.attempts, lent.failed) = (u32::MAX, u32::MAX);
    queue.give_back(lent, true);
    let lent = queue.lend(0).unwrap();
    queue.give_back(lent, true);

    let (envelope, _) = queue.take(0).unwrap();
    assert_eq!((envelope.attempts, envelope.failed), (u32::MAX, u32::MAX));
}
