//! No message is lost silently: each is handled, a dead letter, or still queued.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

use verger::RestartType;
use verger::mailbox::{Overflow, WhileDown};
use verger::policy::Random;
use verger::testing::Lcg;

use super::*;

/// A message with a number that records its drop.
struct Counted {
    n: u64,
    books: Arc<Books>,
    /// What the reader does with it.
    then: Then,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    GoOn,
    Fail,
    Panic,
    End,
    /// The reader takes a while, and is interrupted if it is cancelled meanwhile.
    Dawdle,
    /// The delivery is dropped.
    PutBack,
}

#[derive(Default)]
struct Books {
    handled: Mutex<HashSet<u64>>,
    live: AtomicU64,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.books.live.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Counted {
    fn handled(&self) {
        let twice = !self.books.handled.lock().unwrap().insert(self.n);
        assert!(!twice, "{} was handled twice", self.n);
    }
}

async fn read(mut inbox: Inbox<Counted>, acks: bool) -> Exit {
    loop {
        let then = if acks {
            let Some(delivery) = inbox.deliver().await else { return Ok(()) };
            let then = delivery.then;
            match then {
                Then::PutBack => drop(delivery),
                Then::Fail => return Err("failed on request".into()),
                Then::Panic => panic!("panicked on request"),
                Then::GoOn | Then::End | Then::Dawdle => {
                    if then == Then::Dawdle {
                        tokio::time::sleep(ms(300)).await;
                    }
                    delivery.handled();
                    delivery.ack();
                }
            }
            then
        } else {
            let Some(message) = inbox.recv().await else { return Ok(()) };
            // A received message counts as handled, whatever the reader does.
            message.handled();
            message.then
        };
        match then {
            Then::GoOn | Then::PutBack => {}
            Then::Dawdle => tokio::time::sleep(ms(300)).await,
            Then::Fail => return Err("failed on request".into()),
            Then::Panic => panic!("panicked on request"),
            Then::End => return Ok(()),
        }
    }
}

/// Random choices from a seed.
struct Draws(Lcg);

impl Draws {
    fn below(&mut self, n: u32) -> u32 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is small")]
        let drawn = (self.0.unit() * f64::from(n)) as u32;
        drawn
    }

    fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(u32::try_from(choices.len()).unwrap()) as usize].clone()
    }
}

#[tokio::test(start_paused = true)]
async fn every_message_is_handled_a_dead_letter_or_still_queued() {
    for seed in 0..400 {
        script(seed).await;
    }
}

async fn script(seed: u64) {
    let mut draws = Draws(Lcg::new(seed));
    let books = Arc::new(Books::default());
    let acks = draws.below(2) == 0;
    let capacity = draws.of(&[1, 2, 5, 1000]);
    let (address, mailbox) = mailbox_with_capacity::<Counted>(capacity);
    let overflow = draws.of(&[Overflow::Reject, Overflow::DropOldest, Overflow::DropNewest]);
    let while_down = match draws.below(4) {
        0 | 1 => WhileDown::Stash,
        2 => WhileDown::Drop,
        _ => WhileDown::DeadLetter,
    };
    let mailbox = mailbox.overflow(overflow).while_down(while_down).max_attempts(3);
    let spec = worker_with_mailbox("reader", mailbox, move |_ctx, inbox| read(inbox, acks));
    let spec = spec.restart(draws.of(&[RestartType::Permanent, RestartType::Transient]));
    let starts_on_message = draws.below(3) == 0;
    let spec = if starts_on_message { spec.start_on_message() } else { spec };
    let tree = app().child(spec).build().unwrap().start().await.unwrap();
    let mut letters = tree.dead_letters().with_suppressed();

    let (mut sent, mut next) = (HashSet::new(), 0);
    let mut waiting: Vec<(u64, tokio::task::JoinHandle<bool>)> = Vec::new();
    for _ in 0..60 {
        match draws.below(12) {
            0..=6 => {
                let then = draws.of(&[
                    Then::GoOn,
                    Then::GoOn,
                    Then::GoOn,
                    Then::Fail,
                    Then::Panic,
                    Then::End,
                    Then::Dawdle,
                    Then::PutBack,
                ]);
                next += 1;
                books.live.fetch_add(1, Ordering::Relaxed);
                let message = Counted { n: next, books: Arc::clone(&books), then };
                if draws.below(4) == 0 {
                    let address = address.clone();
                    let sending = async move { address.send(message).await.is_ok() };
                    waiting.push((next, tokio::spawn(sending)));
                } else if address.try_send(message).is_ok() {
                    sent.insert(next);
                }
            }
            7 => settle().await,
            8 => tokio::time::sleep(ms(u64::from(draws.below(1500)))).await,
            9 => drop(tree.stop_child("reader").await),
            10 => drop(tree.otp().restart_child("reader").await),
            _ => match draws.below(3) {
                0 => drop(tree.restart("reader").await),
                1 => drop(tree.kill("reader").await),
                _ => {
                    if let Some((n, sending)) = waiting.pop() {
                        sending.abort();
                        if let Ok(true) = sending.await {
                            sent.insert(n);
                        }
                    }
                }
            },
        }
    }
    settle().await;
    for (n, sending) in waiting {
        // A sender that waits for room hasn't sent.
        sending.abort();
        if let Ok(true) = sending.await {
            sent.insert(n);
        }
    }
    settle().await;

    let mut buried = HashSet::new();
    while let Some(letter) = letters.try_next() {
        if let Some(message) = letter.take::<Counted>() {
            assert!(buried.insert(message.n), "seed {seed}: {} was buried twice", message.n);
        }
    }
    assert_eq!(letters.missed(), 0);
    let handled = books.handled.lock().unwrap().clone();
    let both: Vec<_> = handled.intersection(&buried).collect();
    assert!(both.is_empty(), "seed {seed}: handled, and dead letters: {both:?}");
    let gone: HashSet<_> = handled.union(&buried).copied().collect();
    let unsent: Vec<_> = gone.difference(&sent).collect();
    assert!(unsent.is_empty(), "seed {seed}: handled or buried, and never sent: {unsent:?}");
    assert_eq!(sent.len(), gone.len() + address.len(), "seed {seed}: capacity {capacity}, {acks}");

    tree.stop("enough").await.unwrap();
    while let Some(letter) = letters.next().await {
        if let Some(message) = letter.take::<Counted>() {
            assert!(buried.insert(message.n), "seed {seed}: {} was buried twice", message.n);
        }
    }
    let handled = books.handled.lock().unwrap().clone();
    assert_eq!(sent.len(), handled.len() + buried.len(), "seed {seed}: after the end");
    assert_eq!(books.live.load(Ordering::Relaxed), 0, "seed {seed}: a message is kept somewhere");
}
