//! Messages that arrive while the child is down.

use tracing::level_filters::LevelFilter;
use verger::dead_letter::{DeadLetterReason, DeadLetterStore};
use verger::mailbox::{Overflow, WhileDown};
use verger::policy::Jitter;

use super::*;
use crate::log::Log;

#[tokio::test(start_paused = true)]
async fn seed0_22_by_default_messages_are_stashed() {
    let mut tree = Tree::new(|mailbox| mailbox).await;
    tree.fail().await;
    tree.send([Note(1)]);
    tree.pass(WAIT + ms(50)).await;

    assert_eq!(tree.log(), ["start#1", "start#2", "1#2"]);
    assert!(tree.letters().is_empty());
}

#[tokio::test(start_paused = true)]
async fn seed0_24_a_stash_of_a_thousand_delivers_a_thousand_and_reports_the_next() {
    let mut tree = Tree::new(|mailbox| mailbox.overflow(Overflow::DropOldest)).await;
    assert_eq!(tree.address.capacity(), 1000, "the default");
    tree.fail().await;
    tree.log();

    tree.send((1..=1001).map(Note));
    tree.pass(WAIT + ms(50)).await;

    let expected: Vec<_> =
        ["start#2".to_owned()].into_iter().chain((2..=1001).map(|n| format!("{n}#2"))).collect();
    assert_eq!(tree.log(), expected);
    assert_eq!(tree.letters(), ["stash_overflow: 1"]);
}

#[tokio::test(start_paused = true)]
async fn seed0_34_a_stash_keeps_the_order() {
    let tree = Tree::new(|mailbox| mailbox).await;
    tree.send([Note(1), Fail, Note(2), Note(3)]);
    settle().await;
    assert_eq!(tree.log(), ["start#1", "1#1"]);

    tree.send([Note(4), Note(5)]);
    tree.pass(WAIT + ms(50)).await;

    let read = ["start#2", "2#2", "3#2", "4#2", "5#2"];
    assert_eq!(tree.log(), read, "what the last one left, and then what came");
}

#[tokio::test(start_paused = true)]
async fn seed0_35_the_overflow_rule_is_a_setting() {
    for (overflow, read, refused, letters) in [
        (Overflow::Reject, ["1#2", "2#2"], 1, vec![]),
        (Overflow::DropOldest, ["2#2", "3#2"], 0, vec!["stash_overflow: 1"]),
        (Overflow::DropNewest, ["1#2", "2#2"], 0, vec!["stash_overflow: 3"]),
    ] {
        let change = |mailbox: Mailbox<Message>| mailbox.overflow(overflow);
        let mut tree = Tree::with(Reader::new(), 2, change, |spec| spec).await;
        tree.fail().await;
        tree.log();

        let results = [1, 2, 3].map(|n| tree.address.try_send(Note(n)));
        let errors: Vec<_> = results.into_iter().filter_map(Result::err).collect();
        assert_eq!(errors.len(), refused, "{overflow:?}");
        for error in errors {
            assert_eq!(
                error.to_string(),
                "the mailbox of `app/reader` is full (capacity 2); wait for room with `send`, or raise the capacity"
            );
            assert!(matches!(error.into_message(), Note(3)));
        }
        tree.pass(WAIT + ms(50)).await;

        assert_eq!(tree.log(), [&["start#2"][..], &read].concat(), "{overflow:?}");
        assert_eq!(tree.letters(), letters, "{overflow:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn seed0_36_a_stashed_request_keeps_its_reply_channel() {
    let tree = Tree::new(|mailbox| mailbox).await;
    tree.fail().await;

    let (first, second) = tokio::join!(
        tree.address.ask(|reply| Ask(1, reply)),
        tree.address.ask(|reply| Ask(2, reply)),
    );

    assert_eq!((text_of(first), text_of(second)), ("1 by 2".into(), "2 by 2".into()));
}

#[tokio::test(start_paused = true)]
async fn seed0_37_a_dropped_message_is_counted_logged_at_debug_and_not_delivered() {
    let log = Log::at(LevelFilter::DEBUG);
    let store = DeadLetterStore::metrics_only();
    let reader = Reader::new();
    let (address, mailbox) = mailbox();
    let app =
        app().dead_letter_store(&store).child(reader.spec(mailbox.while_down(WhileDown::Drop)));
    let handle = app.build().unwrap().start().await.unwrap();
    let letters = handle.dead_letters();
    settle().await;
    let mut tree =
        Tree { reader, address, handle, letters, undelivered: Vec::new(), lost: Vec::new() };
    tree.fail().await;
    log.lines();

    tree.send((1..=5).map(Note));
    let dropped = "DEBUG verger::dead_letter: dead letter child=app/reader incarnation=1 \
                   reason=dropped_while_down event_type=\"mailbox::Message\"";
    assert_eq!(log.lines(), [dropped; 5], "nothing above the level of debug");
    tree.pass(WAIT + ms(50)).await;

    assert_eq!(tree.log(), ["start#1", "start#2"]);
    let expected: Vec<_> = (1..=5).map(|n| format!("dropped_while_down: {n}")).collect();
    assert_eq!(tree.letters(), expected);
    let counts = store.counts();
    // The message that made the reader fail was lost in that.
    let lost = counts.of(DeadLetterReason::LostInFailure);
    assert_eq!((counts.of(DeadLetterReason::DroppedWhileDown), lost, counts.total), (5, 1, 6));
}

#[tokio::test(start_paused = true)]
async fn seed0_38_a_dropped_request_fails_at_once() {
    let tree = Tree::new(|mailbox| mailbox.while_down(WhileDown::Drop)).await;
    tree.fail().await;

    let began = Instant::now();
    let answer = tree.address.ask(|reply| Ask(1, reply)).await;

    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(
        text_of(answer),
        "the question to `app/reader` was not delivered: dropped_while_down"
    );
}

#[tokio::test(start_paused = true)]
async fn seed4_23_unanswerable_requests_fail_when_the_child_fails() {
    // They aren't delivered after the restart.
    let mut tree = Tree::new(|mailbox| mailbox.while_down(WhileDown::DeadLetter)).await;
    let began = Instant::now();
    // The first waits in the mailbox of the child that fails, and the second comes later.
    tree.send([Fail]);
    let queued = tree.address.ask(|reply| Ask(1, reply)).await;
    let late = tree.address.ask(|reply| Ask(2, reply)).await;

    let refused = "the question to `app/reader` was not delivered: dropped_while_down";
    assert_eq!([text_of(queued), text_of(late)], [refused; 2]);
    assert_eq!(began.elapsed(), Duration::ZERO);
    tree.pass(WAIT + ms(50)).await;
    assert_eq!(tree.log(), ["start#1", "start#2"]);
    assert_eq!(tree.letters(), ["dropped_while_down: 1?", "dropped_while_down: 2?"]);
}

#[tokio::test(start_paused = true)]
async fn seed4_23_a_hundred_messages_during_the_delay_start_no_second_child() {
    for (rule, read, lost) in [(WhileDown::Stash, 100, 0), (WhileDown::DeadLetter, 0, 100)] {
        let change = |mailbox: Mailbox<Message>| mailbox.while_down(rule);
        // `start_on_message` stashes messages whatever the rule, so the second case does without it.
        let treat = |spec: ChildSpec| if lost == 0 { spec.start_on_message() } else { spec };
        let mut tree = Tree::with(Reader::new(), 1000, change, treat).await;
        tree.reader.timed();
        tree.send([Fail]);
        tree.pass(ms(50)).await;
        let begun = tree.log();
        assert_eq!(begun.len(), 1, "{begun:?}");
        tree.reader.timed();
        for n in 0..100 {
            tree.send([Note(n)]);
            tree.pass(ms(9)).await;
            let child = tree.handle.which_child("reader").await.unwrap();
            assert_eq!((child.lifecycle, child.incarnation), (verger::Lifecycle::Restarting, 1));
        }
        tree.pass(secs(60)).await;

        let restarted = if lost == 0 { 1000 } else { 950 };
        let mut expected = vec![format!("{restarted}: start#2")];
        expected.extend((0..read).map(|n| format!("1050: {n}#2")));
        assert_eq!(tree.log(), expected);
        let letters: Vec<_> = (0..lost).map(|n| format!("dropped_while_down: {n}")).collect();
        assert_eq!(tree.letters(), letters);
    }
}

#[tokio::test(start_paused = true)]
async fn kin_65_without_a_stash_each_incarnation_is_fresh_and_messages_between_are_dead_letters() {
    let reader = Reader::new();
    let (address, mailbox) = mailbox();
    let spec = reader.spec(mailbox.while_down(WhileDown::DeadLetter));
    let doubled = Backoff::exponential(secs(1), secs(60)).jitter(Jitter::None);
    let app = Supervisor::builder("app").unlimited_restarts().child(spec.backoff(doubled));
    let handle = app.build().unwrap().start().await.unwrap();
    let letters = handle.dead_letters();
    settle().await;
    reader.timed();
    reader.log();
    let mut tree = Tree::of(reader, address, handle, letters);

    for wait in [1, 2] {
        tree.fail().await;
        tree.send([Note(wait)]);
        tree.pass(secs(wait.into())).await;
    }

    assert_eq!(tree.log(), ["1000: start#2", "3000: start#3"]);
    assert_eq!(tree.letters(), ["dropped_while_down: 1", "dropped_while_down: 2"]);
}

#[tokio::test(start_paused = true)]
async fn kin_78_messages_queued_when_the_child_fails_are_dropped_promptly() {
    struct Guarded {
        _sender: tokio::sync::oneshot::Sender<()>,
    }

    let (address, mailbox) = mailbox::<Option<Guarded>>();
    let spec = worker_with_mailbox(
        "reader",
        mailbox.while_down(WhileDown::Drop),
        async |_ctx, mut inbox| -> Exit {
            while let Some(Some(_)) = inbox.recv().await {}
            Err("failed on request".into())
        },
    );
    let tree = app().child(spec).build().unwrap().start().await.unwrap();
    settle().await;
    let (guard, dropped) = tokio::sync::oneshot::channel();
    address.try_send(None).unwrap();
    address.try_send(Some(Guarded { _sender: guard })).unwrap();

    let began = Instant::now();
    assert!(dropped.await.is_err(), "the message is gone");
    assert_eq!(began.elapsed(), Duration::ZERO, "and not after the wait");
    tree.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_88_a_stashed_request_keeps_its_caller() {
    let tree =
        Tree::with(Reader::new(), 1000, |it| it, |spec| spec.backoff(Backoff::constant(ms(120))))
            .await;
    tree.fail().await;

    let answer = tree.address.ask_within(secs(1), |reply| Ask(42, reply)).await;

    assert_eq!(text_of(answer), "42 by 2");
}

#[tokio::test(start_paused = true)]
async fn kin_89_a_dropped_request_fails_and_later_requests_are_answered() {
    let tree = Tree::new(|mailbox| mailbox.while_down(WhileDown::Drop)).await;
    tree.fail().await;
    assert!(tree.address.ask_within(secs(9), |reply| Ask(1, reply)).await.is_err());

    tree.pass(WAIT).await;

    assert_eq!(text_of(tree.address.ask(|reply| Ask(99, reply)).await), "99 by 2");
}

#[tokio::test(start_paused = true)]
async fn kin_92_a_request_to_a_child_that_is_down_gets_a_fixed_answer_a_substitute_or_a_dead_letter()
 {
    // A fixed answer.
    let fixed = WhileDown::reply(|message| {
        if let Ask(_, reply) = message {
            reply.send("closed until further notice".to_owned());
        }
    });
    let mut tree = Tree::new(|mailbox| mailbox.while_down(fixed)).await;
    tree.fail().await;
    let answer = tree.address.ask(|reply| Ask(1, reply)).await;
    assert_eq!(text_of(answer), "closed until further notice");
    assert!(tree.letters().is_empty(), "it was dealt with");

    // A substitute child, which answers the caller.
    let second = Tree::new(|mailbox| mailbox).await;
    let elsewhere = WhileDown::Forward(second.address.clone());
    let mut tree = Tree::new(|mailbox| mailbox.while_down(elsewhere)).await;
    tree.fail().await;
    let answer = tree.address.ask(|reply| Ask(2, reply)).await;
    assert_eq!(text_of(answer), "2 by 1");
    assert_eq!(second.log(), ["start#1", "2?#1"]);
    assert!(tree.letters().is_empty());

    // Neither.
    let mut tree = Tree::new(|mailbox| mailbox.while_down(WhileDown::DeadLetter)).await;
    tree.fail().await;
    tree.send([Note(3)]);
    assert_eq!(tree.letters(), ["dropped_while_down: 3"]);
}

#[tokio::test(start_paused = true)]
async fn kin_93_a_message_that_overflows_the_stash_is_a_dead_letter_with_that_reason() {
    let change = |mailbox: Mailbox<Message>| mailbox.overflow(Overflow::DropNewest);
    let mut tree = Tree::with(Reader::new(), 2, change, |spec| spec).await;
    tree.fail().await;
    assert_eq!(tree.letters.try_next().unwrap().reason, DeadLetterReason::LostInFailure);
    tree.send((1..=4).map(Note));

    let first = tree.letters.try_next().unwrap();
    assert_eq!(first.reason.to_string(), "stash_overflow");
    assert_eq!((first.target.as_str(), first.incarnation), ("app/reader", 1));
    assert!(first.is::<Message>() && matches!(first.take(), Some(Note(3))));
    assert!(first.take::<Message>().is_none(), "it is taken once");
    assert_eq!(tree.letters(), ["stash_overflow: 4"]);
    tree.pass(WAIT + ms(50)).await;
    assert_eq!(tree.log(), ["start#1", "start#2", "1#2", "2#2"]);
}

#[tokio::test(start_paused = true)]
async fn messages_the_last_incarnation_has_not_read_follow_the_rule_for_later_messages() {
    let mut tree = Tree::new(|mailbox| mailbox.while_down(WhileDown::Drop)).await;
    tree.send([Fail, Note(1), Note(2)]);
    settle().await;

    assert_eq!(tree.letters(), ["dropped_while_down: 1", "dropped_while_down: 2"]);
    assert!(tree.address.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_message_is_forwarded_once() {
    // Each forwards to the other, and both are down.
    let (a, first) = mailbox::<Message>();
    let (b, second) = mailbox::<Message>();
    let (reader, other) = (Reader::new(), Reader::new());
    let first = reader.spec(first.while_down(WhileDown::Forward(b.clone())));
    let second = other.spec(second.while_down(WhileDown::Forward(a.clone()))).named("other");
    let tree = app().child(first).child(second).build().unwrap().start().await.unwrap();
    let mut letters = tree.dead_letters();
    settle().await;
    a.try_send(Fail).unwrap();
    b.try_send(Fail).unwrap();
    settle().await;

    let lost = [letters.try_next().unwrap(), letters.try_next().unwrap()];
    assert!(lost.iter().all(|letter| letter.reason == DeadLetterReason::LostInFailure));

    a.try_send(Note(1)).unwrap();

    let letter = letters.try_next().unwrap();
    assert_eq!(format!("{} {}", letter.target, letter.reason), "app/other dropped_while_down");
    assert!(letters.try_next().is_none());
    tree.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_answer_for_the_child_makes_a_dead_letter() {
    let panics = WhileDown::reply(|_: Message| panic!("no answer"));
    let mut tree = Tree::new(|mailbox| mailbox.while_down(panics)).await;
    tree.fail().await;

    let answer = tree.address.ask(|reply| Ask(1, reply)).await;

    let text = text_of(answer);
    assert!(text.starts_with("`app/reader` has read the question"), "{text}");
    assert_eq!(tree.letters(), ["handler_error: nothing"]);
}
