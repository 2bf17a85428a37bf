//! Messages while their child is up, down or stopping.

mod accounting;
mod asks;
mod batches;
mod closing;
#[path = "../common/mod.rs"]
mod common;
mod dead_letters;
mod delivery;
mod delivery_delay;
mod drain;
mod edges;
mod hangs;
mod life;
#[path = "../common/log.rs"]
mod log;
mod lost;
mod many_letters;
mod message_starts;
mod own_sends;
mod senders;
mod stops;
mod while_down;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::settle;
use tokio::time::Instant;
use verger::dead_letter::{DeadLetter, DeadLetterReason};
use verger::mailbox::{Address, Inbox, Mailbox, Reply};
use verger::status::Subscription;
use verger::{
    Backoff, ChildSpec, Context, Exit, Readiness, Supervisor, SupervisorBuilder, SupervisorHandle,
    mailbox, mailbox_with_capacity, worker_with_mailbox,
};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// The messages of these tests.
#[derive(Debug)]
enum Message {
    Note(u32),
    Ask(u32, Reply<String>),
    /// The reader fails.
    Fail,
    Panic,
    /// The reader ends normally.
    End,
    /// The reader fails over it, every time.
    Poison(u32),
}

use Message::{Ask, End, Fail, Note, Panic, Poison};

/// A child named `reader` that records its starts and the messages it reads.
#[derive(Clone, Default)]
struct Reader {
    inner: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    log: Vec<String>,
    /// The results of the next starts.
    starts: VecDeque<Begin>,
    /// Whether the reader takes deliveries and acknowledges them.
    acks: bool,
    began: Option<Instant>,
}

/// The result of a reader's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begin {
    Ok,
    /// Fails after this time, and reads nothing.
    Fail(Duration),
    /// Becomes ready after this time, and reads from the start.
    ReadyAfter(Duration),
}

impl Reader {
    fn new() -> Self {
        Self::default()
    }

    /// Returns a reader that takes deliveries and acknowledges them.
    fn that_acks() -> Self {
        let reader = Self::default();
        reader.inner.lock().unwrap().acks = true;
        reader
    }

    fn starts(&self, starts: impl IntoIterator<Item = Begin>) {
        self.inner.lock().unwrap().starts.extend(starts);
    }

    fn note(&self, what: String) {
        self.inner.lock().unwrap().log.push(what);
    }

    /// Returns the entries since the last call, such as `start#2`, and `7#2` for message 7 read by
    /// incarnation 2.
    fn log(&self) -> Vec<String> {
        std::mem::take(&mut self.inner.lock().unwrap().log)
    }

    /// Adds the time since this call to later entries, such as `1200: start#2`.
    fn timed(&self) {
        self.inner.lock().unwrap().began = Some(Instant::now());
    }

    fn spec(&self, mailbox: Mailbox<Message>) -> ChildSpec {
        let reader = self.clone();
        worker_with_mailbox("reader", mailbox, move |ctx, inbox| reader.clone().read(ctx, inbox))
            .readiness(Readiness::OnStart)
    }

    fn say(&self, what: &str, ctx: &Context) {
        let began = self.inner.lock().unwrap().began;
        let at = began.map(|began| format!("{}: ", began.elapsed().as_millis()));
        self.note(format!("{}{what}#{}", at.unwrap_or_default(), ctx.incarnation()));
    }

    async fn read(self, ctx: Context, inbox: Inbox<Message>) -> Exit {
        let (begin, acks) = {
            let mut state = self.inner.lock().unwrap();
            (state.starts.pop_front().unwrap_or(Begin::Ok), state.acks)
        };
        self.say("start", &ctx);
        match begin {
            Begin::Ok => ctx.ready(),
            Begin::Fail(after) => {
                tokio::time::sleep(after).await;
                return Err("no start".into());
            }
            Begin::ReadyAfter(after) => {
                let ready = ctx.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(after).await;
                    ready.ready();
                });
            }
        }
        if acks { self.deliver(ctx, inbox).await } else { self.receive(ctx, inbox).await }
    }

    async fn receive(self, ctx: Context, mut inbox: Inbox<Message>) -> Exit {
        while let Some(message) = inbox.recv().await {
            match message {
                Note(n) => self.say(&n.to_string(), &ctx),
                Ask(n, reply) => {
                    self.say(&format!("{n}?"), &ctx);
                    reply.send(format!("{n} by {}", ctx.incarnation()));
                }
                Fail => return Err("failed on request".into()),
                Panic => panic!("panicked on request"),
                End => return Ok(()),
                Poison(n) => return Err(format!("poison {n}").into()),
            }
        }
        self.say("none", &ctx);
        Ok(())
    }

    async fn deliver(self, ctx: Context, mut inbox: Inbox<Message>) -> Exit {
        while let Some(delivery) = inbox.deliver().await {
            let attempt = delivery.attempt();
            match &*delivery {
                Note(n) => self.say(&format!("{n} try {attempt}"), &ctx),
                Ask(n, _) => self.say(&format!("{n}? try {attempt}"), &ctx),
                Fail | Panic | End => {}
                Poison(n) => {
                    self.say(&format!("poison {n} try {attempt}"), &ctx);
                    return Err(format!("poison {n}").into());
                }
            }
            match delivery.ack() {
                Ask(n, reply) => reply.send(format!("{n} by {}", ctx.incarnation())),
                Fail => return Err("failed on request".into()),
                Panic => panic!("panicked on request"),
                End => return Ok(()),
                Note(_) | Poison(_) => {}
            }
        }
        self.say("none", &ctx);
        Ok(())
    }
}

/// A tree with the reader in it, which waits a second before each restart.
struct Tree {
    reader: Reader,
    address: Address<Message>,
    handle: SupervisorHandle,
    letters: Subscription<DeadLetter>,
    undelivered: Vec<DeadLetter>,
    lost: Vec<DeadLetter>,
}

const WAIT: Duration = Duration::from_secs(1);

fn app() -> SupervisorBuilder {
    let wait = Backoff::constant(WAIT);
    Supervisor::builder("app").unlimited_restarts().defaults(|child| child.backoff(wait))
}

impl Tree {
    /// Returns a tree whose mailbox has the default capacity, changed by `change`.
    async fn new(change: impl FnOnce(Mailbox<Message>) -> Mailbox<Message>) -> Self {
        let (address, mailbox) = mailbox();
        Self::start(Reader::new(), address, change(mailbox), |spec| spec).await
    }

    async fn with(
        reader: Reader,
        capacity: usize,
        change: impl FnOnce(Mailbox<Message>) -> Mailbox<Message>,
        treat: impl FnOnce(ChildSpec) -> ChildSpec,
    ) -> Self {
        let (address, mailbox) = mailbox_with_capacity(capacity);
        Self::start(reader, address, change(mailbox), treat).await
    }

    async fn start(
        reader: Reader,
        address: Address<Message>,
        mailbox: Mailbox<Message>,
        treat: impl FnOnce(ChildSpec) -> ChildSpec,
    ) -> Self {
        let spec = treat(reader.spec(mailbox));
        let handle = app().child(spec).build().unwrap().start().await.unwrap();
        let letters = handle.dead_letters();
        settle().await;
        Self::of(reader, address, handle, letters)
    }

    fn of(
        reader: Reader,
        address: Address<Message>,
        handle: SupervisorHandle,
        letters: Subscription<DeadLetter>,
    ) -> Self {
        Self { reader, address, handle, letters, undelivered: Vec::new(), lost: Vec::new() }
    }

    fn send(&self, messages: impl IntoIterator<Item = Message>) {
        for message in messages {
            self.address.try_send(message).unwrap();
        }
    }

    /// Fails the reader, which then waits for its restart.
    async fn fail(&self) {
        self.send([Fail]);
        settle().await;
    }

    /// Lets time pass.
    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
        settle().await;
    }

    fn log(&self) -> Vec<String> {
        self.reader.log()
    }

    /// Returns the dead letters since the last call, such as `mailbox_full: 3` for a note.
    ///
    /// Not those about messages that were [lost](Self::lost): each message that makes the reader fail is.
    fn letters(&mut self) -> Vec<String> {
        self.sort_letters();
        let texts = std::mem::take(&mut self.undelivered).into_iter().map(|letter| {
            let what = match letter.take::<Message>() {
                Some(Note(n) | Poison(n)) => n.to_string(),
                Some(Ask(n, _)) => format!("{n}?"),
                Some(other) => format!("{other:?}"),
                None => "nothing".to_owned(),
            };
            format!("{}: {what}", letter.reason)
        });
        texts.collect()
    }

    /// Returns which incarnations have lost a message since the last call, and how they failed, such as
    /// `#2 failed: poison 3`.
    fn lost(&mut self) -> Vec<String> {
        self.sort_letters();
        let texts = std::mem::take(&mut self.lost).into_iter().map(|letter| {
            let error = letter.error.as_ref().expect("how it failed");
            format!("#{} {error}", letter.incarnation)
        });
        texts.collect()
    }

    fn sort_letters(&mut self) {
        while let Some(letter) = self.letters.try_next() {
            let is_lost = letter.reason == DeadLetterReason::LostInFailure;
            if is_lost { &mut self.lost } else { &mut self.undelivered }.push(letter);
        }
    }
}

/// Returns the answer or the error of a request as text.
fn text_of<T: std::fmt::Display, E: std::fmt::Display>(result: Result<T, E>) -> String {
    match result {
        Ok(answer) => answer.to_string(),
        Err(error) => error.to_string(),
    }
}
