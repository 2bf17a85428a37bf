//! A mailbox that can deliver nothing, and the stores, subscribers and log that learn of it.

use std::any::{Any, type_name};
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Weak;
use std::task::{Context, Wake};
use std::time::Duration;

use tracing::Dispatch;
use tracing::subscriber::{DefaultGuard, NoSubscriber, set_default};

use super::*;
use crate::clock::now;
use crate::dead_letter::{DeadLetterReason, EntryId, Redeliver, Refused};
use crate::path::Path;
use crate::policy::DeadLetterLog;

/// A supervisor, as far as its dead letters go.
#[derive(Clone)]
struct TestSupervisor {
    path: Path,
    letters: Arc<DeadLetters>,
}

impl TestSupervisor {
    fn subscribe(&self) -> Subscription<DeadLetter> {
        self.letters.subscribe()
    }
}

/// A mailbox whose messages all become dead letters.
struct DeadMailbox {
    owner: TestSupervisor,
    quiet: bool,
    me: Weak<Self>,
}

impl DeadMailbox {
    fn of(owner: &TestSupervisor) -> Arc<Self> {
        let owner = owner.clone();
        Arc::new_cyclic(|me| Self { owner, quiet: false, me: Weak::clone(me) })
    }

    fn quiet(owner: &TestSupervisor) -> Arc<Self> {
        let owner = owner.clone();
        Arc::new_cyclic(|me| Self { owner, quiet: true, me: Weak::clone(me) })
    }

    fn send<M: Send + 'static>(&self, message: M) {
        self.dead_letter(type_name::<M>(), TypeId::of::<M>(), Box::new(message), None);
    }

    fn dead_letter(
        &self,
        event_type: &'static str,
        type_id: TypeId,
        payload: Box<dyn Any + Send>,
        entry: Option<EntryId>,
    ) {
        let undelivered = Undelivered {
            reason: DeadLetterReason::MailboxClosed,
            target: self.owner.path.join("a"),
            incarnation: 1,
            event_type,
            type_id,
            payload: Some(payload),
            error: None,
            quiet: self.quiet,
            entry,
            origin: Some(self.me.clone()),
        };
        self.owner.letters.undelivered(undelivered, now(), SystemTime::UNIX_EPOCH);
    }
}

impl Redeliver for DeadMailbox {
    fn redeliver(
        self: Arc<Self>,
        payload: Box<dyn Any + Send>,
        entry: EntryId,
        _: Instant,
    ) -> Result<(), (Box<dyn Any + Send>, Refused)> {
        self.dead_letter("again", (*payload).type_id(), payload, Some(entry));
        Ok(())
    }
}

fn root(options: DeadLetterOptions) -> TestSupervisor {
    let letters = DeadLetters::new(&options, None, &Path::root("app"), None);
    TestSupervisor { path: Path::root("app"), letters }
}

fn below(above: &TestSupervisor, name: &str, options: DeadLetterOptions) -> TestSupervisor {
    let letters = DeadLetters::new(&options, Some(Arc::clone(&above.letters)), &above.path, None);
    TestSupervisor { path: above.path.join(name), letters }
}

fn silent() -> DeadLetterOptions {
    DeadLetterOptions { log: Some(DeadLetterLog::off()), ..DeadLetterOptions::default() }
}

fn suppressing<M: 'static>() -> DeadLetterOptions {
    DeadLetterOptions { suppressed: vec![TypeId::of::<M>()], ..silent() }
}

fn kept_by(store: &DeadLetterStore) -> DeadLetterOptions {
    DeadLetterOptions { stores: vec![store.clone()], ..silent() }
}

/// Takes the numbers out of the letters that a subscriber has received.
fn types(letters: &mut Subscription<DeadLetter>) -> Vec<&'static str> {
    std::iter::from_fn(|| letters.try_next()).filter_map(|letter| letter.event_type).collect()
}

#[tokio::test(start_paused = true)]
async fn seed3_03_two_subscribers_both_receive_a_letter_and_one_takes_its_message() {
    let app = root(silent());
    let mut both = [app.subscribe(), app.subscribe()];
    DeadMailbox::of(&app).send(7_u32);
    let letters = both.each_mut().map(|letters| letters.try_next().unwrap());
    for letter in &letters {
        assert_eq!(letter.reason, DeadLetterReason::MailboxClosed);
        assert_eq!((letter.target.as_str(), letter.incarnation), ("app/a", 1));
        assert_eq!(letter.event_type, Some("u32"));
        assert!(letter.is::<u32>() && !letter.suppressed);
    }
    assert_eq!(letters.map(|letter| letter.take::<u32>()), [Some(7), None]);
    assert!(both.iter_mut().all(|letters| letters.try_next().is_none()));
}

#[tokio::test(start_paused = true)]
async fn kin_131_without_a_store_nothing_is_kept() {
    let app = root(silent());
    let message = Arc::new(());
    DeadMailbox::of(&app).send(Arc::clone(&message));
    assert_eq!(Arc::strong_count(&message), 1, "it was dropped");
}

#[tokio::test(start_paused = true)]
async fn a_letter_reaches_every_store_and_subscriber_above_and_no_other() {
    let (of_app, of_mid) = (DeadLetterStore::default(), DeadLetterStore::default());
    let app = root(kept_by(&of_app));
    // The store of the supervisor above is named again, which makes no difference.
    let stores = vec![of_mid.clone(), of_app.clone()];
    let mid = below(&app, "mid", DeadLetterOptions { stores, ..silent() });
    let low = below(&mid, "low", silent());
    let beside = below(&app, "beside", silent());
    let mut at = [&app, &mid, &low, &beside].map(|it| it.subscribe());
    DeadMailbox::of(&low).send(7_u32);
    DeadMailbox::of(&beside).send(8_u32);
    let targets = at.each_mut().map(|letters| {
        let letters = std::iter::from_fn(|| letters.try_next());
        letters.map(|letter| letter.target.to_string()).collect::<Vec<_>>()
    });
    let (a, b) = ("app/mid/low/a", "app/beside/a");
    assert_eq!(targets, [vec![a, b], vec![a], vec![a], vec![b]]);
    let kept = |store: &DeadLetterStore| store.entries().len();
    assert_eq!([kept(&of_app), kept(&of_mid)], [2, 1]);
    assert_eq!(of_app.under("app/mid").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn kin_130_forwarding_letters_to_a_dead_mailbox_does_not_loop() {
    let store = DeadLetterStore::default();
    let app = root(kept_by(&store));
    let (mut letters, forwarded_to) = (app.subscribe(), DeadMailbox::of(&app));
    DeadMailbox::of(&app).send(7_u32);
    let mut forwarded = 0;
    while let Some(letter) = letters.try_next() {
        forwarded_to.send(letter);
        forwarded += 1;
    }
    assert_eq!(forwarded, 1);
    assert_eq!(store.counts().total, 1, "there is no letter about a letter");
}

#[tokio::test(start_paused = true)]
async fn kin_135_each_subscriber_receives_the_letters_that_it_asks_for() {
    let store = DeadLetterStore::default();
    let app = root(kept_by(&store));
    let mid = below(&app, "mid", suppressing::<u64>());
    let low = below(&mid, "low", silent());
    let mut normal = app.subscribe();
    let mut suppressed = app.subscribe().only_suppressed();
    let mut all = app.subscribe().with_suppressed();
    DeadMailbox::of(&low).send(1_u32);
    DeadMailbox::of(&low).send(2_u64);
    assert_eq!(types(&mut normal), ["u32"]);
    assert_eq!(types(&mut suppressed), ["u64"]);
    assert_eq!(types(&mut all), ["u32", "u64"]);

    // They are suppressed below that supervisor only.
    DeadMailbox::of(&app).send(3_u64);
    assert_eq!(types(&mut normal), ["u64"]);
    assert_eq!(types(&mut suppressed), [""; 0]);
    assert_eq!(types(&mut all), ["u64"]);

    assert_eq!(store.counts().total, 3, "the store has all of them");
    let flags: Vec<_> = store.entries().iter().map(|entry| entry.letter.suppressed).collect();
    assert_eq!(flags, [false, true, false]);
    let next = normal.next();
    DeadMailbox::of(&low).send(4_u64);
    DeadMailbox::of(&low).send(5_u32);
    assert_eq!(next.await.unwrap().take(), Some(5_u32), "a suppressed letter completes no wait");
}

#[tokio::test(start_paused = true)]
async fn a_lagging_subscriber_learns_how_many_letters_it_has_missed() {
    let app = root(suppressing::<u64>());
    let (mut letters, dead) = (app.subscribe(), DeadMailbox::of(&app));
    dead.send(0_u64);
    for number in 1..=1034_u32 {
        dead.send(number);
    }
    assert!(letters.next().await.unwrap().is::<u32>());
    assert_eq!(letters.missed(), 11, "the suppressed one is one of them");
    let rest: Vec<_> = std::iter::from_fn(|| letters.try_next()).collect();
    assert_eq!(rest.len(), 1023);
    let taken: Vec<u32> = rest.iter().filter_map(DeadLetter::take).collect();
    assert_eq!(taken, (907..=1034).collect::<Vec<_>>(), "the messages of the last 128");
    assert_eq!(letters.missed(), 11);
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_that_does_not_read_holds_the_messages_of_the_last_letters_only() {
    let app = root(silent());
    let sub = below(&app, "sub", DeadLetterOptions::default());
    let (mut letters, message) = (app.subscribe(), Arc::new(1));
    for _ in 0..200 {
        DeadMailbox::of(&sub).send(Arc::clone(&message));
    }
    assert_eq!(Arc::strong_count(&message), 1 + 128);
    let taken: Vec<_> = std::iter::from_fn(|| letters.try_next())
        .map(|letter| letter.take::<Arc<i32>>().is_some())
        .collect();
    assert_eq!(taken, [vec![false; 72], vec![true; 128]].concat(), "the letters are all there");

    let store = DeadLetterStore::ring(500);
    let app = root(kept_by(&store));
    for _ in 0..200 {
        DeadMailbox::of(&app).send(Arc::clone(&message));
    }
    assert_eq!(Arc::strong_count(&message), 1 + 200, "a store keeps what it has room for");
}

#[tokio::test(start_paused = true)]
async fn kin_132_a_replay_that_ends_as_a_letter_again_is_the_same_entry() {
    let store = DeadLetterStore::default();
    let app = root(kept_by(&store));
    let mut letters = app.subscribe();
    let dead = DeadMailbox::of(&app);
    dead.send(7_u32);
    let id = store.entries()[0].id;
    for replays in 1..=3 {
        assert_eq!(store.replay(id), Ok(()));
        let entries = store.entries();
        assert_eq!((entries.len(), entries[0].id, entries[0].replays), (1, id, replays));
    }
    assert!(matches!(
        store.replay(id),
        Err(crate::dead_letter::ReplayError::Quarantined { replays: 3, .. })
    ));
    assert_eq!(types(&mut letters), ["u32", "again", "again", "again"], "each is published");
    drop(dead);
    assert!(store.entries()[0].letter.take::<u32>().is_some());
}

/// Reads the count of a store whenever it is woken.
struct Watch {
    store: DeadLetterStore,
    seen: Mutex<Vec<u64>>,
}

impl Wake for Watch {
    fn wake(self: Arc<Self>) {
        let total = self.store.counts().total;
        self.seen.lock().push(total);
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_has_a_letter_before_subscribers_receive_it() {
    let store = DeadLetterStore::metrics_only();
    let app = root(kept_by(&store));
    let watch = Arc::new(Watch { store, seen: Mutex::default() });
    let waker = Arc::clone(&watch).into();
    let mut letters = app.subscribe();
    let mut next = pin!(letters.next());
    assert!(next.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    DeadMailbox::of(&app).send(7_u32);
    assert_eq!(*watch.seen.lock(), [1]);
    assert_eq!(next.await.unwrap().take(), Some(7_u32));
}

/// Sends another message that is lost when it is dropped.
struct SendsLostMessage(Arc<DeadMailbox>);

impl Drop for SendsLostMessage {
    fn drop(&mut self) {
        self.0.send("lost");
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_a_message_may_send_messages() {
    let store = DeadLetterStore::ring(1);
    let app = root(kept_by(&store));
    let (letters, dead) = (app.subscribe(), DeadMailbox::of(&app));
    // It is dropped by the store, by the channel, or with the last subscription.
    for _ in 0..2000 {
        dead.send(SendsLostMessage(Arc::clone(&dead)));
    }
    drop(letters);
    assert_eq!(store.counts().total, 4000);
    assert_eq!(Arc::strong_count(&dead), 1);
    dead.send(SendsLostMessage(Arc::clone(&dead)));
    store.remove(store.entries()[0].id);
}

#[tokio::test(start_paused = true)]
async fn dropping_a_slow_subscription_may_send_messages() {
    let app = root(silent());
    let (mut quick, slow, dead) = (app.subscribe(), app.subscribe(), DeadMailbox::of(&app));
    for _ in 0..100 {
        dead.send(SendsLostMessage(Arc::clone(&dead)));
    }
    while quick.try_next().is_some() {}
    drop(slow);
    assert_eq!(types(&mut quick).len(), 100, "each has sent one more");
    assert_eq!(Arc::strong_count(&dead), 1);
}

/// Collects the log of this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Collects lines from now on. The second dispatcher keeps tracing from caching that a call site,
    /// first reached by a thread without subscriber, is disabled.
    fn listen(&self) -> (DefaultGuard, Dispatch) {
        let writer = self.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::level_filters::LevelFilter::DEBUG)
            .without_time()
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        let second = Dispatch::new(NoSubscriber::new());
        (set_default(subscriber), second)
    }

    /// Takes the lines since the last call, without the fields that all lines have.
    fn lines(&self) -> Vec<String> {
        let text = String::from_utf8(std::mem::take(&mut *self.0.lock())).unwrap();
        let same = "child=app/a incarnation=1 reason=mailbox_closed ";
        text.lines().map(|line| line.trim_start().replace(same, "")).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn seed3_07_kin_134_letters_are_logged_as_warnings_until_a_pause_and_then_with_the_number_unlogged()
 {
    let log = Log::default();
    let _listening = log.listen();
    let pause = Duration::from_secs(2);
    let of_app = DeadLetterLog::default().first(4).pause(pause);
    let app = root(DeadLetterOptions { log: Some(of_app), ..DeadLetterOptions::default() });
    let dead = DeadMailbox::of(&app);
    (1..=6_u32).for_each(|number| dead.send(number));
    let line = |text: &str, count: &str| {
        format!("WARN verger::dead_letter: dead letter{text} event_type=\"u32\" {count}")
    };
    assert_eq!(
        log.lines(),
        [
            line("", "count=1"),
            line("", "count=2"),
            line("", "count=3"),
            line("; no more are logged for a while", "count=4 pause=2s"),
        ]
    );
    tokio::time::advance(pause).await;
    (7..=8_u32).for_each(|number| dead.send(number));
    let resumed = "; some before were not logged, and counting begins again";
    assert_eq!(log.lines(), [line(resumed, "total=7 unlogged=2"), line("", "count=1")]);
}

#[tokio::test(start_paused = true)]
async fn a_supervisor_without_log_options_shares_the_throttle_of_the_nearest_above() {
    let log = Log::default();
    let _listening = log.listen();
    let every =
        DeadLetterOptions { log: Some(DeadLetterLog::every()), ..DeadLetterOptions::default() };
    let app = root(DeadLetterOptions::default());
    let mid = below(&app, "mid", every);
    let low = below(&mid, "low", DeadLetterOptions::default());
    let beside = below(&app, "beside", DeadLetterOptions::default());
    [&app, &mid, &low, &beside].into_iter().for_each(|it| DeadMailbox::of(it).send(0_u32));
    let counts: Vec<_> =
        log.lines().iter().map(|line| line.rsplit_once(' ').unwrap().1.to_owned()).collect();
    assert_eq!(counts, ["count=1", "count=1", "count=2", "count=2"]);
}

#[tokio::test(start_paused = true)]
async fn suppressed_and_quiet_letters_and_letters_about_letters_are_no_warnings_and_are_not_counted()
 {
    let log = Log::default();
    let _listening = log.listen();
    let app = root(DeadLetterOptions { log: None, ..suppressing::<u64>() });
    let mut letters = app.subscribe();
    let (dead, quiet) = (DeadMailbox::of(&app), DeadMailbox::quiet(&app));
    dead.send(1_u64);
    assert_eq!(log.lines(), [""; 0]);
    (0..20_u32).for_each(|number| quiet.send(number));
    let debug = "DEBUG verger::dead_letter: dead letter event_type=\"u32\"";
    assert_eq!(log.lines(), [debug; 20], "each of them");
    dead.send(letters.try_next().unwrap());
    assert_eq!(
        log.lines(),
        ["DEBUG verger::dead_letter: a dead letter that was not delivered: dropped \
          child=app/a incarnation=1 reason=mailbox_closed"]
    );
    dead.send(2_u32);
    let counted = "WARN verger::dead_letter: dead letter event_type=\"u32\" count=1";
    assert_eq!(log.lines(), [counted]);
}

#[tokio::test(start_paused = true)]
async fn a_letter_about_a_child_itself_is_not_logged() {
    let log = Log::default();
    let _listening = log.listen();
    let every =
        DeadLetterOptions { log: Some(DeadLetterLog::every()), ..DeadLetterOptions::default() };
    let app = root(every);
    let mut letters = app.subscribe();
    let error = Arc::new(crate::ExitReason::Normal);
    let at = SystemTime::UNIX_EPOCH;
    let reason = DeadLetterReason::GaveUp;
    let letter = DeadLetter::about_child(reason, app.path.join("a"), 1, error, at);
    app.letters.child(&letter, now());
    assert_eq!(letters.try_next().unwrap().target.as_str(), "app/a");
    assert_eq!(log.lines(), [""; 0]);
}
