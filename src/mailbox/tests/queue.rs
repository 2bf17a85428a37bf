//! A queue against a naive model: a list of numbers for everything.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::queue::MessageQueue;
use super::*;

#[derive(Clone, Copy, Debug)]
enum QueueStep {
    /// Pushes if there is room, and waits otherwise.
    Send,
    /// Takes from this part of all numbers on, in eighths: 0 holds nothing back.
    Take(u64),
    Lend(u64),
    Settle(prop::sample::Index),
    GiveBack(prop::sample::Index, bool),
    Evict,
    Leave(prop::sample::Index),
    Poll(prop::sample::Index),
    Release,
    DrainUndelivered,
    /// Drains, and admits senders as a caller of `drain` must do.
    Drain,
}

fn step() -> impl Strategy<Value = QueueStep> {
    let index = any::<prop::sample::Index>;
    let from = || prop_oneof![3 => Just(0), 1 => 0..9_u64];
    prop_oneof![
        8 => Just(QueueStep::Send),
        3 => from().prop_map(QueueStep::Take),
        4 => from().prop_map(QueueStep::Lend),
        2 => index().prop_map(QueueStep::Settle),
        3 => (index(), any::<bool>()).prop_map(|(which, failed)| QueueStep::GiveBack(which, failed)),
        1 => Just(QueueStep::Evict),
        2 => index().prop_map(QueueStep::Leave),
        2 => index().prop_map(QueueStep::Poll),
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
    /// The numbers of the senders that wait, and of those that are admitted.
    waiting: Vec<u64>,
    admitted: BTreeSet<u64>,
    senders: u64,
}

impl QueueModel {
    fn len(&self) -> usize {
        self.queued.len() + self.lent.len()
    }

    fn is_full(&self) -> bool {
        self.len() + self.admitted.len() >= self.capacity
    }

    fn push(&mut self, message: u32) {
        let id = self.next_id;
        self.next_id += 1;
        self.queued.insert(id, (message, ExpectedDelivery { id, ..ExpectedDelivery::default() }));
    }

    /// Returns how many senders are woken.
    fn admit(&mut self) -> usize {
        if self.is_full() || self.waiting.is_empty() {
            return 0;
        }
        self.admitted.insert(self.waiting.remove(0));
        1
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
                prop_assert_eq!(queue.is_full(), naive.is_full());
                if queue.is_full() {
                    prop_assert_eq!(queue.wait(Waker::noop().clone()), naive.senders);
                    naive.waiting.push(naive.senders);
                    naive.senders += 1;
                } else {
                    queue.push(Envelope::new(naive.sent));
                    naive.push(naive.sent);
                    naive.sent += 1;
                }
            }
            QueueStep::Take(eighths) => {
                let from = from(eighths);
                let taken = queue.take(from);
                let picked = naive.pick(from);
                let woken = if picked.is_some() { naive.admit() } else { 0 };
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
                prop_assert_eq!(usize::from(waker.is_some()), naive.admit());
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
                    naive.push(naive.sent);
                    naive.sent += 1;
                }
            }
            QueueStep::Leave(which) if naive.senders > 0 => {
                let number = which.index(usize::try_from(naive.senders).unwrap()) as u64;
                let (own, next) = queue.leave(number);
                prop_assert_eq!(own.is_some(), naive.waiting.contains(&number));
                naive.waiting.retain(|&it| it != number);
                let woken = if naive.admitted.remove(&number) { naive.admit() } else { 0 };
                prop_assert_eq!(usize::from(next.is_some()), woken);
            }
            // A sender that may send does so at once.
            QueueStep::Poll(which) if naive.senders > 0 => {
                let number = which.index(usize::try_from(naive.senders).unwrap()) as u64;
                let poll = queue.poll_wait(number, Waker::noop()).0;
                prop_assert_eq!(poll.is_pending(), naive.waiting.contains(&number));
                if naive.admitted.remove(&number) {
                    queue.push(Envelope::new(naive.sent));
                    naive.push(naive.sent);
                    naive.sent += 1;
                }
            }
            QueueStep::Release => {
                prop_assert_eq!(queue.release_senders().len(), naive.waiting.len());
                naive.waiting.clear();
                naive.admitted.clear();
            }
            // A caller that drains undelivered messages releases all senders.
            QueueStep::DrainUndelivered => {
                let fresh = naive.queued.values().filter(|(_, it)| it.attempts == 0);
                let fresh: Vec<_> = fresh.map(|it| it.0).collect();
                naive.queued.retain(|_, (_, it)| it.attempts > 0);
                prop_assert!(same(queue.drain_undelivered(), &fresh));
                prop_assert_eq!(queue.release_senders().len(), naive.waiting.len());
                naive.waiting.clear();
                naive.admitted.clear();
            }
            QueueStep::Drain => {
                let all: Vec<_> = std::mem::take(&mut naive.queued).into_values().collect();
                let all: Vec<_> = all.into_iter().map(|it| it.0).collect();
                prop_assert!(same(queue.drain(), &all));
                while queue.admit().is_some() {
                    prop_assert_eq!(naive.admit(), 1);
                }
                prop_assert_eq!(naive.admit(), 0);
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
        prop_assert_eq!(queue.next_id(), naive.next_id);
        prop_assert!(naive.len() + naive.admitted.len() <= capacity);
        prop_assert!(naive.waiting.is_empty() || queue.is_full());
    }
    Ok(())
}

proptest! {
    #[test]
    fn a_queue_behaves_like_its_naive_model(
        capacity in 1..5_usize,
        steps in prop::collection::vec(step(), 0..80),
    ) {
        run(capacity, steps)?;
    }
}

#[test]
fn of_thousands_of_senders_the_oldest_is_admitted_first_and_any_may_leave() {
    const SENDERS: u64 = 20_000;
    let mut queue = MessageQueue::new(1);
    queue.push(Envelope::new(0));
    for _ in 0..SENDERS {
        queue.wait(Waker::noop().clone());
    }
    for number in (0..SENDERS).filter(|it| it % 2 == 0) {
        assert!(queue.leave(number).0.is_some());
    }
    for number in (0..SENDERS).filter(|it| it % 2 == 1) {
        assert!(queue.poll_wait(number, Waker::noop()).0.is_pending());
        queue.take(0).unwrap();
        assert!(queue.poll_wait(number, Waker::noop()).0.is_ready());
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
