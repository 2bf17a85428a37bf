//! Random scripts of mailbox operations, under paused time, against a ledger of all messages.
//!
//! A [`Script`] is read from the input: the options of a mailbox and of its child, and a list of
//! operations. The senders are futures that the script polls and drops one by one.
//!
//! # Invariants
//!
//! 1. Each message that was accepted meets one fate: it is handled, taken by a handler, or a dead
//!    letter; or else it is still queued or lent. A message that was not accepted meets none.
//! 2. At the end of the tree, no accepted message is without a fate, and every message is dropped.
//! 3. Unless overtaking is allowed, the messages of one sender are received in the order in which they
//!    were sent. Redeliveries keep it, too, as far as they are first attempts.
//! 4. The attempts of a message count up from 1, and at most as many fail as are allowed.
//! 5. A question is answered as its message fared: with the answer, with the reason of its dead letter,
//!    or with an error that says that it was never accepted.
//! 6. A future whose waker was not woken is still pending. Senders get room in the order in which they
//!    began to wait.
//! 7. The length of a mailbox is the number of accepted messages without a fate, and at most its
//!    capacity.

#[path = "mailbox_scripts/ledger.rs"]
mod ledger;
#[path = "mailbox_scripts/reader.rs"]
mod reader;
#[path = "mailbox_scripts/script.rs"]
mod script;
#[path = "mailbox_scripts/senders.rs"]
mod senders;

use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use arbitrary::{Arbitrary, Unstructured};
use tokio::task::{unconstrained, yield_now};
use tokio::time::{sleep, timeout};
use verger::dead_letter::{DeadLetter, DeadLetterReason};
use verger::mailbox::{Address, AskError, SendError};
use verger::status::Subscription;
use verger::{
    Backoff, Context, Strategy, Supervisor, SupervisorHandle, mailbox_with_capacity, worker,
    worker_with_mailbox,
};

use self::ledger::{Fate, Ledger, Message};
use self::reader::{other, reader};
use self::script::{Script, Step, Then};
use self::senders::{Pending, Sent};

/// The operations of a script. The rest of a longer one is ignored.
const MOST_STEPS: usize = 60;
/// A call that takes longer hangs. Graces and backoffs are far shorter.
const PATIENCE: Duration = Duration::from_secs(86_400);

/// See the [module](self).
pub(crate) fn run(data: &[u8]) {
    let Ok(script) = Script::arbitrary_take_rest(Unstructured::new(data)) else { return };
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(play(&script));
}

struct Play<'a> {
    script: &'a Script,
    ledger: Arc<Ledger>,
    address: Address<Message>,
    other: Address<Message>,
    tree: SupervisorHandle,
    letters: Subscription<DeadLetter>,
    pending: Vec<Pending>,
    sent: u32,
}

impl Play<'_> {
    fn message(&mut self, then: Then) -> Message {
        self.sent += 1;
        self.ledger.live.fetch_add(1, Ordering::Relaxed);
        Message { number: self.sent, then, ledger: Arc::clone(&self.ledger), reply: None }
    }

    fn send(&mut self, then: Then) {
        let (address, message) = (self.address.clone(), self.message(then));
        let number = message.number;
        let future = async move { Sent::Message(address.send(message).await) };
        self.begin(number, true, Box::pin(unconstrained(future)));
    }

    fn ask(&mut self, then: Then, within: Option<u8>) {
        let (address, mut message) = (self.address.clone(), self.message(then));
        let number = message.number;
        let question = move |reply| {
            message.reply = Some(reply);
            message
        };
        let future = async move {
            Sent::Answer(match within {
                Some(ms) => address.ask_within(Duration::from_millis(ms.into()), question).await,
                None => address.ask(question).await,
            })
        };
        // A question is accepted by the first poll, or never.
        self.ledger.entry(number, |entry| (entry.accepted, entry.in_order) = (Some(true), true));
        self.begin(number, false, Box::pin(unconstrained(future)));
    }

    fn try_send(&mut self, then: Then) {
        let message = self.message(then);
        let number = message.number;
        // A handler may be called, and a message be evicted, before this returns.
        self.ledger.entry(number, |entry| entry.in_order = true);
        let sent = self.address.try_send(message);
        self.accept(number, sent);
    }

    fn begin(
        &mut self,
        number: u32,
        waits_for_room: bool,
        future: Pin<Box<dyn Future<Output = Sent> + Send>>,
    ) {
        if waits_for_room {
            // Whether it waits is known after the first poll.
            self.ledger.entry(number, |entry| entry.in_order = true);
        }
        let mut pending = Pending { number, future, flag: Arc::default(), waits_for_room };
        match pending.poll() {
            (Poll::Ready(sent), _) => self.finish(number, sent),
            (Poll::Pending, _) => {
                if waits_for_room {
                    self.ledger.entry(number, |entry| entry.in_order = false);
                }
                self.pending.push(pending);
            }
        }
    }

    fn accept(&self, number: u32, sent: Result<(), SendError<Message>>) {
        let accepted = sent.is_ok();
        if let Err(error) = sent {
            let message = error.into_message();
            if message.number != number {
                self.ledger.violation(format!("{} was returned for {number}", message.number));
            }
        }
        self.ledger.entry(number, |entry| entry.accepted = Some(accepted));
    }

    fn finish(&mut self, number: u32, sent: Sent) {
        let answer = match sent {
            Sent::Message(sent) => return self.accept(number, sent),
            Sent::Answer(answer) => answer,
        };
        // Letters arrive before the error of a question.
        self.bury();
        if let Err(AskError::Full { .. } | AskError::Closed { .. }) = &answer {
            self.ledger.entry(number, |entry| entry.accepted = Some(false));
        }
        let (fate, answered) = self.ledger.entry(number, |entry| (entry.fate, entry.answered));
        let fits = match &answer {
            Ok(answer) => *answer == number && answered,
            Err(AskError::Undelivered { reason, .. }) => match fate {
                Some(Fate::DeadLetter(letter)) => letter == *reason,
                // The letter of a handler that panicked has no message.
                Some(Fate::Diverted) => *reason == DeadLetterReason::HandlerError,
                _ => false,
            },
            Err(AskError::NoReply { .. }) => !answered,
            Err(AskError::Full { .. } | AskError::Closed { .. }) => fate.is_none(),
            Err(AskError::TimedOut { .. }) => true,
            Err(_) => false,
        };
        if !fits {
            self.ledger.violation(format!(
                "question {number} got {answer:?}, but is {fate:?}, answered: {answered}"
            ));
        }
    }

    /// Polls all futures that were woken, and checks that the others are pending.
    fn poll_all(&mut self) {
        let mut index = 0;
        while index < self.pending.len() {
            self.poll_one(index);
            index += 1;
        }
        self.pending.retain(|pending| pending.number != 0);
    }

    /// Polls a future. One that has completed stays in the list under number 0, until it is removed.
    fn poll_one(&mut self, index: usize) {
        let Some(pending) = self.pending.get_mut(index) else { return };
        if pending.number == 0 {
            return;
        }
        let (number, waits_for_room) = (pending.number, pending.waits_for_room);
        let (Poll::Ready(sent), woken) = pending.poll() else { return };
        if !woken {
            self.ledger.violation(format!("sender {number} was not woken"));
        }
        let eager = !self.script.options.lazy;
        if eager && waits_for_room && matches!(sent, Sent::Message(Ok(()))) {
            let earlier = self.pending[..index].iter();
            let asleep = earlier.filter(|it| it.number != 0 && it.waits_for_room && !it.is_woken());
            for it in asleep {
                self.ledger.violation(format!("sender {number} got room before {}", it.number));
            }
        }
        self.pending[index].number = 0;
        self.finish(number, sent);
    }

    /// Drops a future. Whether a question was accepted is known already.
    fn drop_one(&mut self, index: u8) {
        if self.pending.is_empty() {
            return;
        }
        let index = usize::from(index) % self.pending.len();
        let dropped = self.pending.remove(index);
        if dropped.waits_for_room {
            self.ledger.entry(dropped.number, |entry| entry.accepted = Some(false));
        }
    }

    /// Takes the messages out of the dead letters.
    fn bury(&mut self) {
        while let Some(letter) = self.letters.try_next() {
            self.bury_one(&letter);
        }
    }

    fn bury_one(&self, letter: &DeadLetter) {
        if let Some(message) = letter.take::<Message>() {
            self.ledger.fate(message.number, Fate::DeadLetter(letter.reason));
            let attempts = self.ledger.entry(message.number, |entry| entry.attempts);
            let max = self.script.options.max_attempts().unwrap_or(u32::MAX);
            if letter.reason == DeadLetterReason::Poison && attempts < max {
                self.ledger.violation(format!("message {} is poison too early", message.number));
            }
        }
    }

    async fn step(&mut self, step: Step) {
        let tree = self.tree.clone();
        match step {
            Step::TrySend(then) => self.try_send(then),
            Step::Send(then) => self.send(then),
            Step::Ask(then) => self.ask(then, None),
            Step::AskWithin(then, ms) => self.ask(then, Some(ms)),
            Step::Poll(index) if !self.pending.is_empty() => {
                self.poll_one(usize::from(index) % self.pending.len());
                self.pending.retain(|pending| pending.number != 0);
            }
            Step::Poll(_) => {}
            Step::DropFuture(index) => self.drop_one(index),
            Step::PollAll => self.poll_all(),
            Step::Settle => settle().await,
            Step::Yield => yield_now().await,
            Step::Sleep(tens) => sleep(Duration::from_millis(10 * u64::from(tens))).await,
            Step::Terminate => answered("stop_child", tree.stop_child("reader")).await,
            Step::RestartStopped => {
                answered("restart_child", tree.otp().restart_child("reader")).await
            }
            Step::Restart => answered("restart", tree.restart("reader")).await,
            Step::Kill => answered("kill", tree.kill("reader")).await,
            Step::Resume => answered("resume", tree.resume("reader")).await,
            Step::KillSibling => answered("kill", tree.kill("sibling")).await,
        }
    }

    /// Checks what holds between two steps.
    fn check(&mut self, when: &str) {
        if !self.script.options.lazy {
            self.poll_all();
        }
        self.bury();
        let (len, capacity) = (self.address.len(), self.address.capacity());
        if len > capacity {
            self.ledger.violation(format!("{len} messages, and a capacity of {capacity}"));
        }
        let (open, len) = (self.ledger.open(), len + self.other.len());
        if open.len() != len {
            self.ledger.violation(format!("{open:?} are open, and {len} messages are queued"));
        }
        self.ledger.check(when, self.script);
    }
}

/// Awaits a call. Its answer may be an error, but it has one.
async fn answered<T: Debug, E: Debug>(call: &str, answer: impl Future<Output = Result<T, E>>) {
    let answer = timeout(PATIENCE, answer).await;
    assert!(answer.is_ok(), "{call} was not answered");
}

/// Lets all tasks run, without letting time pass.
async fn settle() {
    for _ in 0..30 {
        yield_now().await;
    }
}

async fn play(script: &Script) {
    let ledger = Arc::new(Ledger { keeps_order: !script.options.overtake, ..Ledger::default() });
    let (address, mailbox) = mailbox_with_capacity(script.options.capacity());
    let (other_address, other_mailbox) = mailbox_with_capacity(2);
    let mailbox = reader::mailbox(&script.options, mailbox, &ledger, &other_address);
    let reader = reader(&script.options, mailbox, &ledger);
    let forwarded = Arc::clone(&ledger);
    let other = worker_with_mailbox("other", other_mailbox, move |_ctx, inbox| {
        other(Arc::clone(&forwarded), inbox)
    });
    let app = Supervisor::builder("app").unlimited_restarts();
    let app = app.defaults(|child| child.backoff(Backoff::constant(Duration::from_millis(100))));
    let group = if script.options.in_group { Strategy::RestForOne } else { Strategy::OneForOne };
    let sibling = worker("sibling", async |ctx: Context| ctx.cancelled().await);
    let app = app.strategy(group).child(other).child(sibling).child(reader);
    let tree = app.build().expect("a valid tree");
    let tree = timeout(PATIENCE, tree.start()).await.expect("a start that ends");
    let tree = tree.expect("a tree that starts");
    let letters = tree.dead_letters().with_suppressed();
    let mut play = Play {
        script,
        ledger,
        address,
        other: other_address,
        tree,
        letters,
        pending: Vec::new(),
        sent: 0,
    };

    for (index, step) in script.steps.iter().take(MOST_STEPS).enumerate() {
        play.step(*step).await;
        play.check(&format!("after step {index}, {step:?}"));
    }
    finish(play).await;
}

/// Stops the tree and checks that nothing is left.
async fn finish(mut play: Play<'_>) {
    settle().await;
    play.check("before the stop");
    assert!(timeout(PATIENCE, play.tree.stop("done")).await.is_ok(), "the stop did not end");
    // Tasks that were handed a delivery outlive the tree.
    sleep(Duration::from_millis(100)).await;
    while let Some(letter) = play.letters.next().await {
        play.bury_one(&letter);
    }
    play.poll_all();
    let (left, open) = (play.pending.len(), play.ledger.open());
    assert_eq!(play.letters.missed(), 0);
    assert_eq!(left, 0, "futures are pending after the end\n{:#?}", play.script);
    assert!(open.is_empty(), "{open:?} are lost\n{:#?}", play.script);
    play.ledger.check("after the stop", play.script);
    let Play { ledger, script, .. } = play;
    let live = ledger.live.load(Ordering::Relaxed);
    assert_eq!(live, 0, "messages are kept somewhere\n{script:#?}");
}
