//! Dead letters of messages, from end to end.

use verger::dead_letter::{DeadLetterReason, DeadLetterStore, ReplayError};
use verger::mailbox::WhileDown;

use super::*;

/// A tree with a store, whose reader drops messages while it is down.
async fn stored(store: &DeadLetterStore) -> Tree {
    let reader = Reader::new();
    let (address, mailbox) = mailbox();
    let spec = reader.spec(mailbox.while_down(WhileDown::DeadLetter));
    let app = app().dead_letter_store(store).child(spec);
    let handle = app.build().unwrap().start().await.unwrap();
    let letters = handle.dead_letters();
    settle().await;
    Tree::of(reader, address, handle, letters)
}

/// Fails the reader over a message, which is lost, and removes the letter about that.
async fn fail(tree: &Tree, store: &DeadLetterStore) {
    tree.fail().await;
    let [lost] = &store.entries()[..] else { panic!("it is one entry") };
    assert_eq!(lost.letter.reason, DeadLetterReason::LostInFailure);
    store.remove(lost.id);
}

#[tokio::test(start_paused = true)]
async fn kin_129_messages_left_at_a_childs_end_are_dead_letters_and_later_sends_are_refused() {
    // In actor-ts, both are dead letters; here, the second is returned to its sender.
    let (address, mailbox) = mailbox::<u32>();
    let spec = worker_with_mailbox("reader", mailbox, async |_ctx, mut inbox| {
        inbox.recv().await;
    });
    let spec = spec.restart(verger::RestartType::Transient);
    let tree = app().child(spec).build().unwrap().start().await.unwrap();
    let mut letters = tree.dead_letters();
    address.try_send(0).unwrap();
    address.try_send(1).unwrap();
    settle().await;

    let letter = letters.try_next().unwrap();
    assert_eq!((letter.target.as_str(), letter.incarnation), ("app/reader", 1));
    assert_eq!(letter.event_type, Some("u32"));
    assert_eq!(letter.take::<u32>(), Some(1));
    assert_eq!(address.try_send(2).unwrap_err().into_message(), 2);
    assert!(letters.try_next().is_none());
    tree.stop("enough").await.unwrap();

    // Including a mailbox that belongs to no child.
    let (address, mailbox) = verger::mailbox::<Message>();
    let request = tokio::spawn({
        let address = address.clone();
        async move { text_of(address.ask(|reply| Ask(1, reply)).await) }
    });
    settle().await;
    drop(mailbox);
    let text =
        "the question to a child whose tree was not started was not delivered: mailbox_closed";
    assert_eq!(request.await.unwrap(), text);
    assert!(address.is_closed() && address.try_send(Note(2)).is_err());
}

#[tokio::test(start_paused = true)]
async fn kin_130_dead_letters_sent_to_a_dead_mailbox_create_no_letters() {
    let (address, mailbox) = mailbox::<DeadLetter>();
    let spec = worker_with_mailbox(
        "office",
        mailbox.while_down(WhileDown::DeadLetter),
        async |_ctx, mut inbox| -> Exit {
            inbox.recv().await;
            Err("the office burns".into())
        },
    );
    let office = app().child(spec).build().unwrap().start().await.unwrap();
    let mut of_office = office.dead_letters();
    let mut tree = Tree::new(|mailbox| mailbox.while_down(WhileDown::DeadLetter)).await;
    tree.fail().await;
    tree.send([Note(1), Note(2), Note(3)]);
    while let Some(letter) = tree.letters.try_next() {
        address.try_send(letter).unwrap();
    }
    settle().await;

    assert!(of_office.try_next().is_none());
    office.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_132_a_letter_is_replayed_to_the_current_incarnation() {
    let store = DeadLetterStore::ring(10);
    let tree = stored(&store).await;
    fail(&tree, &store).await;
    tree.send([Note(1)]);
    let entries = store.under("app/reader");
    let [entry] = &entries[..] else { panic!("{entries:?}") };

    // The child is still down, so the letter returns as the same entry.
    store.replay(entry.id).unwrap();
    let [again] = &store.entries()[..] else { panic!("it is one entry") };
    assert_eq!((again.id, again.replays), (entry.id, 1));

    tree.pass(WAIT).await;
    store.replay(again.id).unwrap();
    settle().await;
    assert_eq!(tree.log(), ["start#1", "start#2", "1#2"]);
    assert!(store.entries().is_empty());
    let unknown = store.replay(entry.id).unwrap_err();
    assert!(matches!(unknown, ReplayError::UnknownEntry { .. }), "{unknown}");
}

#[tokio::test(start_paused = true)]
async fn kin_132_a_letter_is_replayed_to_a_substitute_child() {
    let store = DeadLetterStore::ring(10);
    let tree = stored(&store).await;
    let other = Tree::new(|mailbox| mailbox).await;
    fail(&tree, &store).await;
    tree.send([Note(1)]);
    let id = store.entries()[0].id;
    let (numbers, mailbox) = mailbox_with_capacity::<u32>(10);

    let wrong = store.replay_to(id, &numbers).unwrap_err();
    assert!(wrong.to_string().contains("another type"), "{wrong}");
    store.replay_to(id, &other.address).unwrap();
    settle().await;

    assert_eq!(other.log(), ["start#1", "1#1"]);
    assert!(store.entries().is_empty());
    drop(mailbox);
}

#[tokio::test(start_paused = true)]
async fn kin_132_a_letter_that_returns_three_times_is_quarantined() {
    let store = DeadLetterStore::ring(10);
    let tree = stored(&store).await;
    fail(&tree, &store).await;
    tree.send([Note(1)]);
    let id = store.entries()[0].id;
    for _ in 0..3 {
        store.replay(id).unwrap();
    }

    let error = store.replay(id).unwrap_err();
    assert!(matches!(error, ReplayError::Quarantined { replays: 3, .. }), "{error}");
    assert!(store.entries()[0].quarantined);
}

#[tokio::test(start_paused = true)]
async fn kin_135_messages_of_a_suppressed_type_reach_only_subscribers_that_ask_for_them() {
    struct Heartbeat;

    let (beats, beat) = mailbox_with_capacity::<Heartbeat>(10);
    let reader = Reader::new();
    let (notes, note) = mailbox_with_capacity::<Message>(10);
    let reads_one = async |_ctx: Context, mut inbox: Inbox<Heartbeat>| {
        inbox.recv().await;
    };
    let transient = verger::RestartType::Transient;
    let tree = app()
        .suppress_dead_letters::<Heartbeat>()
        .child(worker_with_mailbox("monitor", beat, reads_one).restart(transient))
        .child(reader.spec(note).restart(transient));
    let tree = tree.build().unwrap().start().await.unwrap();
    let mut normal = tree.dead_letters();
    let mut suppressed = tree.dead_letters().only_suppressed();
    let mut all = tree.dead_letters().with_suppressed();
    beats.try_send(Heartbeat).unwrap();
    beats.try_send(Heartbeat).unwrap();
    notes.try_send(End).unwrap();
    notes.try_send(Note(1)).unwrap();
    settle().await;

    let count = |letters: &mut Subscription<DeadLetter>| {
        let letters: Vec<_> = std::iter::from_fn(|| letters.try_next()).collect();
        let beats = letters.iter().filter(|letter| letter.is::<Heartbeat>()).count();
        (letters.len() - beats, beats)
    };
    assert_eq!(count(&mut normal), (1, 0));
    assert_eq!(count(&mut suppressed), (0, 1));
    assert_eq!(count(&mut all), (1, 1));
    tree.stop("enough").await.unwrap();
}

/// A `match` over all reasons needs an arm for reasons to come; without one of them, or with the enum
/// closed, this doesn't compile.
#[test]
#[deny(unreachable_patterns)]
fn seed3_05_reasons_may_be_added_and_their_words_stay() {
    use DeadLetterReason as Reason;
    let word = |reason| match reason {
        Reason::HandlerError => "handler_error",
        Reason::MailboxFull => "mailbox_full",
        Reason::MailboxClosed => "mailbox_closed",
        Reason::StashOverflow => "stash_overflow",
        Reason::DroppedWhileDown => "dropped_while_down",
        Reason::Evicted => "evicted",
        Reason::Poison => "poison",
        Reason::UndeliveredAtStop => "undelivered_at_stop",
        Reason::GaveUp => "gave_up",
        _ => "a later one",
    };
    for reason in [Reason::HandlerError, Reason::MailboxFull, Reason::Evicted, Reason::GaveUp] {
        assert_eq!(reason.to_string(), word(reason));
    }
}
