//! A store together with a simple mailbox, and letters about the messages that it refuses.

use std::any::TypeId;
use std::collections::{BTreeMap, VecDeque};
use std::time::SystemTime;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::dead_letter::DeadLetterReason::{GaveUp, MailboxClosed, Poison};
use crate::dead_letter::payload::AnyMessage;
use crate::dead_letter::{DeadLetter, Provenance, Refused, Undelivered};
use crate::path::Path;

/// A mailbox of messages, each with the entry that it was replayed from.
#[derive(Default)]
struct TestMailbox {
    messages: Mutex<VecDeque<(u32, EntryId)>>,
    refuses: Mutex<Option<Refused>>,
    /// Turns each message into a dead letter at once.
    bounces: Mutex<Option<DeadLetterStore>>,
    me: Weak<Self>,
}

impl TestMailbox {
    fn new() -> Arc<Self> {
        Arc::new_cyclic(|me| Self { me: Weak::clone(me), ..Self::default() })
    }

    fn origin(&self) -> Weak<dyn Redeliver> {
        self.me.clone()
    }

    fn read(&self) -> Option<(u32, EntryId)> {
        self.messages.lock().pop_front()
    }
}

impl Redeliver for TestMailbox {
    fn redeliver(
        self: Arc<Self>,
        message: AnyMessage,
        entry: EntryId,
        _: Instant,
    ) -> Result<(), (AnyMessage, Refused)> {
        if let Some(why) = *self.refuses.lock() {
            return Err((message, why));
        }
        let message = *message.downcast::<u32>().map_err(|other| (other, Refused::OtherType))?;
        match &*self.bounces.lock() {
            Some(store) => {
                capture(store, &self, "app/a", message, Some(entry));
            }
            None => self.messages.lock().push_back((message, entry)),
        }
        Ok(())
    }
}

fn path(text: &str) -> Path {
    let mut names = text.split('/');
    let root = Path::root(names.next().unwrap());
    names.fold(root, |path, name| path.join(name))
}

/// Captures a message that a mailbox could not deliver.
fn capture(
    store: &DeadLetterStore,
    mailbox: &TestMailbox,
    target: &str,
    message: u32,
    entry: Option<EntryId>,
) -> DeadLetter {
    let undelivered = Undelivered {
        reason: if entry.is_some() { Poison } else { MailboxClosed },
        target: path(target),
        incarnation: 1,
        event_type: "u32",
        type_id: TypeId::of::<u32>(),
        payload: Some(Box::new(message)),
        error: None,
        quiet: false,
        entry,
        origin: Some(mailbox.origin()),
    };
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(message.into());
    let (letter, from) = DeadLetter::about_message(undelivered, at, false);
    store.capture(&letter, &from, now());
    letter
}

/// The number, the target, the replays, and whether it is in quarantine.
fn kept(entries: &[DeadLetterEntry]) -> Vec<(u64, &str, u32, bool)> {
    let mut rows = Vec::new();
    for entry in entries {
        let target = entry.letter.target.as_str();
        rows.push((entry.id.number(), target, entry.replays, entry.quarantined));
    }
    rows
}

fn numbers(entries: &[DeadLetterEntry]) -> Vec<u64> {
    entries.iter().map(|entry| entry.id.number()).collect()
}

fn only(store: &DeadLetterStore) -> DeadLetterEntry {
    let mut entries = store.entries();
    assert_eq!(entries.len(), 1, "{entries:?}");
    entries.remove(0)
}

#[tokio::test(start_paused = true)]
async fn kin_131_a_store_for_metrics_counts_and_keeps_nothing() {
    let (store, mailbox) = (DeadLetterStore::metrics_only(), TestMailbox::new());
    let letter = capture(&store, &mailbox, "app/a", 1, None);
    capture(&store, &mailbox, "app/b", 2, None);
    assert_eq!(numbers(&store.entries()), [] as [u64; 0]);
    let counts = store.counts();
    assert_eq!((counts.total, counts.of(MailboxClosed), counts.of(Poison)), (2, 2, 0));
    assert_eq!(counts.forgotten, 0, "nothing was kept that could be");
    assert_eq!(Arc::strong_count(letter.payload.as_ref().unwrap()), 1, "only ours is left");
}

#[tokio::test(start_paused = true)]
async fn kin_131_the_oldest_entry_is_removed_when_the_store_is_full() {
    let (store, mailbox) = (DeadLetterStore::ring(2), TestMailbox::new());
    for message in 1..=3 {
        capture(&store, &mailbox, "app/a", message, None);
    }
    assert_eq!(numbers(&store.entries()), [2, 3]);
    assert_eq!(store.entries()[0].letter.take(), Some(2_u32));
    assert_eq!((store.counts().total, store.counts().forgotten), (3, 1));
    assert!(store.entry(1).is_none() && store.entry(2).is_some());
}

#[tokio::test(start_paused = true)]
async fn by_default_a_thousand_letters_are_kept_for_an_hour() {
    let (store, mailbox) = (DeadLetterStore::default(), TestMailbox::new());
    for message in 0..1001 {
        capture(&store, &mailbox, "app/a", message, None);
    }
    assert_eq!(numbers(&store.entries()), (2..=1001).collect::<Vec<_>>());
    tokio::time::advance(Duration::from_secs(3600) - Duration::from_millis(1)).await;
    assert_eq!(store.entries().len(), 1000);
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(store.entries().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn kin_131_entries_that_are_too_old_are_removed() {
    let mailbox = TestMailbox::new();
    let minute = Duration::from_secs(60);
    let store = DeadLetterStore::ring(10).retention(minute);
    let first = capture(&store, &mailbox, "app/a", 1, None);
    tokio::time::advance(minute / 2).await;
    capture(&store, &mailbox, "app/a", 2, None);
    let id = store.entries()[0].id;
    tokio::time::advance(minute / 2).await;

    // A minute is over exactly at its end, whichever method is called.
    assert!(store.entry(1).is_none());
    assert_eq!(numbers(&store.entries()), [2]);
    assert_eq!(store.replay(id), Err(ReplayError::UnknownEntry { id }));
    assert!(store.remove(id).is_none());
    assert_eq!(store.counts().forgotten, 1);
    assert_eq!(Arc::strong_count(first.payload.as_ref().unwrap()), 1, "only ours is left");

    let store = DeadLetterStore::ring(10).retention(Duration::MAX);
    capture(&store, &mailbox, "app/a", 1, None);
    tokio::time::advance(Duration::from_secs(1 << 30)).await;
    assert_eq!(numbers(&store.entries()), [1]);
}

#[tokio::test(start_paused = true)]
async fn kin_131_letters_are_listed_by_subtree_and_time() {
    let (store, mailbox) = (DeadLetterStore::default(), TestMailbox::new());
    let targets = ["app/a", "app/ab", "app/a/x", "app/b", "app", "app/a#1"];
    for (second, target) in (1..).zip(targets) {
        capture(&store, &mailbox, target, second, None);
    }
    let under = |path: &str| numbers(&store.under(path));
    assert_eq!(under("app/a"), [1, 3]);
    assert_eq!(under("app/a/x"), [3]);
    assert_eq!(under("app"), [1, 2, 3, 4, 5, 6]);
    assert_eq!(under("app/c"), [0; 0]);
    assert_eq!(under("ap"), [0; 0]);
    assert_eq!(numbers(&store.under(path("app/b"))), [4], "a path will do as well");
    let mut late = store.under("app/a");
    late.retain(|entry| entry.letter.at > SystemTime::UNIX_EPOCH + Duration::from_secs(2));
    assert_eq!(numbers(&late), [3]);
}

#[tokio::test(start_paused = true)]
async fn kin_132_a_replayed_message_is_in_its_old_mailbox_and_its_entry_is_removed() {
    let (store, mailbox) = (DeadLetterStore::default(), TestMailbox::new());
    let letter = capture(&store, &mailbox, "app/a", 7, None);
    let id = only(&store).id;
    assert_eq!(store.replay(id), Ok(()));
    assert_eq!(mailbox.read(), Some((7, id)));
    assert_eq!(store.entries().len(), 0);
    assert_eq!(letter.take::<u32>(), None, "there is one message");
    let counts = store.counts();
    assert_eq!((counts.total, counts.replayed, counts.forgotten), (1, 1, 0));

    assert_eq!(store.replay(id), Err(ReplayError::UnknownEntry { id }), "once");
}

#[tokio::test(start_paused = true)]
async fn kin_132_replaying_an_unknown_entry_is_an_error() {
    let (store, other, mailbox) =
        (DeadLetterStore::default(), DeadLetterStore::default(), TestMailbox::new());
    capture(&store, &mailbox, "app/a", 1, None);
    capture(&other, &mailbox, "app/a", 2, None);
    let id = only(&other).id;
    assert_eq!(id.number(), only(&store).id.number());
    assert_ne!(id, only(&store).id);
    let error = store.replay(id).unwrap_err();
    assert_eq!(error, ReplayError::UnknownEntry { id });
    assert_eq!(
        error.to_string(),
        "there is no dead letter 1 in this store; `entries()` lists the letters, and a larger \
         `ring` or a longer `retention` keeps them longer"
    );
    assert!(store.remove(id).is_none());
    assert_eq!(mailbox.read(), None);
}

#[tokio::test(start_paused = true)]
async fn kin_132_a_letter_whose_mailbox_is_gone_is_kept_and_can_be_replayed_to_another() {
    let (store, mailbox) = (DeadLetterStore::default(), TestMailbox::new());
    capture(&store, &mailbox, "app/a", 1, None);
    drop(mailbox);
    let id = only(&store).id;
    let error = store.replay(id).unwrap_err();
    assert_eq!(error, ReplayError::Unresolved { id, path: path("app/a") });
    assert_eq!(
        error.to_string(),
        "the mailbox of `app/a` is gone; replay dead letter 1 to another address"
    );
    assert_eq!(only(&store).replays, 0);

    let other = TestMailbox::new();
    assert_eq!(store.replay_into(id, other.clone(), now()), Ok(()));
    assert_eq!(other.read(), Some((1, id)));
    assert_eq!(store.entries().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_refused_letter_is_kept_and_no_replay_is_counted() {
    let (store, mailbox) = (DeadLetterStore::default().max_replays(1), TestMailbox::new());
    capture(&store, &mailbox, "app/a", 1, None);
    let id = only(&store).id;
    let table = [
        (Refused::Full, "is full; replay the message when there is room"),
        (
            Refused::Closed,
            "is closed; start its child again, or replay the message to another address",
        ),
        (
            Refused::OtherType,
            "is for messages of another type; replay it to an address of its own type",
        ),
    ];
    for (why, text) in table {
        *mailbox.refuses.lock() = Some(why);
        let error = store.replay(id).unwrap_err();
        assert_eq!(error, ReplayError::Refused { id, path: path("app/a"), why });
        let before = "dead letter 1 for `app/a` was not replayed: the mailbox ";
        assert_eq!(format!("{error:?}"), format!("{before}{text}"));
        assert_eq!(kept(&store.entries()), [(1, "app/a", 0, false)]);
    }
    assert_eq!(store.counts().replayed, 0);
    *mailbox.refuses.lock() = None;
    assert_eq!(store.replay(id), Ok(()));
    assert_eq!(mailbox.read(), Some((1, id)));
}

#[tokio::test(start_paused = true)]
async fn kin_132_poison_becomes_the_same_entry_again_and_then_is_in_quarantine() {
    let (store, mailbox) = (DeadLetterStore::default(), TestMailbox::new());
    capture(&store, &mailbox, "app/a", 666, None);
    capture(&store, &mailbox, "app/b", 1, None);
    let id = store.entries()[0].id;
    for replays in 1..=3 {
        assert_eq!(store.replay(id), Ok(()));
        assert_eq!(kept(&store.entries()), [(2, "app/b", 0, false)]);
        let (message, entry) = mailbox.read().unwrap();
        tokio::time::advance(Duration::from_secs(1)).await;
        capture(&store, &mailbox, "app/a", message, Some(entry));
        let expected = [(2, "app/b", 0, false), (1, "app/a", replays, replays == 3)];
        assert_eq!(kept(&store.entries()), expected);
        assert_eq!(store.entries()[1].id, id);
        assert_eq!(store.entries()[1].letter.reason, Poison, "the new reason");
    }
    let error = store.replay(id).unwrap_err();
    assert_eq!(error, ReplayError::Quarantined { id, path: path("app/a"), replays: 3 });
    assert_eq!(
        error.to_string(),
        "dead letter 1 for `app/a` was replayed 3 times and is in quarantine; `take` its message \
         and `remove` it, or allow more with `max_replays`"
    );
    assert_eq!(mailbox.read(), None);
    let counts = store.counts();
    assert_eq!((counts.of(MailboxClosed), counts.of(Poison), counts.total), (2, 3, 5));

    // A message in quarantine can be inspected.
    assert_eq!(store.remove(id).unwrap().letter.take(), Some(666_u32));
    assert_eq!(kept(&store.entries()), [(2, "app/b", 0, false)]);
}

#[tokio::test(start_paused = true)]
async fn the_age_of_a_letter_replayed_in_vain_counts_from_its_return() {
    let (mailbox, second) = (TestMailbox::new(), Duration::from_secs(1));
    let store = DeadLetterStore::ring(2).retention(10 * second);
    capture(&store, &mailbox, "app/a", 1, None);
    tokio::time::advance(9 * second).await;
    store.replay(only(&store).id).unwrap();
    let (message, entry) = mailbox.read().unwrap();
    // It was in a mailbox for longer than it would have been kept.
    tokio::time::advance(9 * second).await;
    capture(&store, &mailbox, "app/b", 2, None);
    tokio::time::advance(second).await;
    capture(&store, &mailbox, "app/a", message, Some(entry));
    assert_eq!(kept(&store.entries()), [(2, "app/b", 0, false), (1, "app/a", 1, false)]);
    capture(&store, &mailbox, "app/c", 3, None);
    assert_eq!(numbers(&store.entries()), [1, 3], "the older one was removed");
}

#[tokio::test(start_paused = true)]
async fn a_message_may_become_a_letter_again_before_its_replay_has_returned() {
    let (store, mailbox) = (DeadLetterStore::default(), TestMailbox::new());
    *mailbox.bounces.lock() = Some(store.clone());
    capture(&store, &mailbox, "app/a", 1, None);
    let id = only(&store).id;
    for replays in 1..=3 {
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(store.replay(id), Ok(()));
        assert_eq!(kept(&store.entries()), [(1, "app/a", replays, replays == 3)]);
        assert_eq!(store.shared.ring.lock().numbers().count(), 1, "invariant 2");
    }
    assert_eq!(only(&store).letter.take(), Some(1_u32));
    assert_eq!((store.counts().total, store.counts().replayed), (4, 3));
}

#[tokio::test(start_paused = true)]
async fn a_message_that_was_taken_cannot_be_replayed() {
    let (store, mailbox) = (DeadLetterStore::default(), TestMailbox::new());
    let letter = capture(&store, &mailbox, "app/a", 1, None);
    assert_eq!(letter.take(), Some(1_u32));
    let id = only(&store).id;
    let error = store.replay(id).unwrap_err();
    assert_eq!(error, ReplayError::NoPayload { id, path: path("app/a") });
    assert_eq!(
        error.to_string(),
        "dead letter 1 for `app/a` has no message: a subscriber has taken it, it is being \
         replayed, or the letter is about the child itself; `remove` it if it is of no use"
    );
    let error = Arc::new(crate::ExitReason::Normal);
    let about = DeadLetter::about_child(GaveUp, path("app/b"), 1, error, letter.at);
    store.capture(&about, &Provenance::default(), now());
    let id = store.entries()[1].id;
    assert_eq!(store.replay(id), Err(ReplayError::NoPayload { id, path: path("app/b") }));
}

#[tokio::test(start_paused = true)]
async fn without_replays_every_letter_is_in_quarantine() {
    let (store, mailbox) = (DeadLetterStore::default().max_replays(0), TestMailbox::new());
    capture(&store, &mailbox, "app/a", 1, None);
    let id = only(&store).id;
    let quarantined = ReplayError::Quarantined { id, path: path("app/a"), replays: 0 };
    assert_eq!(store.replay(id), Err(quarantined));
}

#[cfg(feature = "serde")]
#[tokio::test(start_paused = true)]
async fn an_entry_is_displayed_and_serialised_with_its_number() {
    let (store, mailbox) = (DeadLetterStore::default(), TestMailbox::new());
    capture(&store, &mailbox, "app/a", 1, None);
    let entry = only(&store);
    assert_eq!(entry.id.to_string(), "1");
    let json = serde_json::json!({
        "id": 1,
        "letter": {
            "reason": "mailbox_closed",
            "target": "app/a",
            "incarnation": 1,
            "event_type": "u32",
            "error": null,
            "at_ms": 1000,
            "suppressed": false,
        },
        "replays": 0,
        "quarantined": false,
    });
    assert_eq!(serde_json::to_value(&entry).unwrap(), json);
    let json = serde_json::json!({
        "total": 1, "by_reason": { "mailbox_closed": 1 }, "replayed": 0, "forgotten": 0,
    });
    assert_eq!(serde_json::to_value(store.counts()).unwrap(), json);
    assert_eq!(format!("{store:?}"), "DeadLetterStore { total: 1, .. }");
}

#[derive(Clone, Copy, Debug)]
enum StoreStep {
    /// A message is lost, for the first time.
    Lose,
    Replay(usize),
    Remove(usize),
    /// The first message in the mailbox is lost again, or received for good.
    Read {
        lost: bool,
    },
    Wait(u64),
}

fn step() -> impl Strategy<Value = StoreStep> {
    prop_oneof![
        3 => Just(StoreStep::Lose),
        3 => (0_usize..6).prop_map(StoreStep::Replay),
        1 => (0_usize..6).prop_map(StoreStep::Remove),
        3 => any::<bool>().prop_map(|lost| StoreStep::Read { lost }),
        1 => (0_u64..8).prop_map(StoreStep::Wait),
    ]
}

proptest! {
    #![proptest_config(crate::random_cases::cases(64))]

    /// Every letter is kept, replayed, removed or forgotten, and no message exists twice.
    #[test]
    fn no_letter_is_lost_or_doubled(capacity in 1_usize..5, steps in vec(step(), 0..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let retention = Duration::from_secs(10);
            let store = DeadLetterStore::ring(capacity).retention(retention);
            let mailbox = TestMailbox::new();
            let (mut message, mut removed) = (0, 0);
            let mut replays = BTreeMap::<u64, u32>::new();
            for step in steps {
                let entry = |index: usize| store.entries().get(index).cloned();
                match step {
                    StoreStep::Lose => {
                        message += 1;
                        capture(&store, &mailbox, "app/a", message, None);
                    }
                    StoreStep::Replay(index) => {
                        let Some(entry) = entry(index) else { continue };
                        let result = store.replay(entry.id);
                        if entry.quarantined {
                            let quarantined = matches!(result, Err(ReplayError::Quarantined { .. }));
                            prop_assert!(quarantined, "{:?}", result);
                        } else {
                            prop_assert_eq!(result, Ok(()));
                            *replays.entry(entry.id.number()).or_default() += 1;
                        }
                    }
                    StoreStep::Remove(index) => {
                        let Some(entry) = entry(index) else { continue };
                        prop_assert!(store.remove(entry.id).is_some());
                        removed += 1;
                    }
                    StoreStep::Read { lost } => {
                        let Some((message, entry)) = mailbox.read() else { continue };
                        if lost {
                            capture(&store, &mailbox, "app/a", message, Some(entry));
                        }
                    }
                    StoreStep::Wait(seconds) => {
                        tokio::time::advance(Duration::from_secs(seconds)).await;
                    }
                }
                let (entries, counts) = (store.entries(), store.counts());
                prop_assert!(entries.len() <= capacity);
                let gone = counts.replayed + counts.forgotten + removed;
                prop_assert_eq!(counts.total, entries.len() as u64 + gone);
                let mut here: Vec<_> = entries.iter().map(|entry| entry.id.number()).collect();
                here.extend(mailbox.messages.lock().iter().map(|(_, id)| id.number()));
                here.sort_unstable();
                prop_assert!(here.is_sorted_by(|a, b| a < b), "twice: {:?}", here);
                for entry in &entries {
                    let expected = replays.get(&entry.id.number()).copied().unwrap_or_default();
                    prop_assert_eq!(entry.replays, expected);
                    prop_assert_eq!(entry.quarantined, expected >= 3);
                }
                let ring = store.shared.ring.lock();
                prop_assert!(ring.numbers().all(|number| ring.get(number).is_some()));
                prop_assert_eq!(ring.numbers().count(), ring.len(), "invariant 2");
            }
            Ok(())
        })?;
    }
}
