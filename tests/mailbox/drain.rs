//! When an incarnation gets the messages that arrived before its start.

use verger::mailbox::Drain;

use super::*;
use crate::common::killed;

async fn tree(
    change: impl FnOnce(Mailbox<Message>) -> Mailbox<Message>,
    treat: impl FnOnce(ChildSpec) -> ChildSpec,
) -> Tree {
    let tree = Tree::with(Reader::new(), 1000, change, treat).await;
    tree.log();
    tree
}

#[tokio::test(start_paused = true)]
async fn seed0_25_the_drain_grace_is_50_ms_or_a_shorter_first_delay() {
    for (wait, grace) in [(20, 20), (200, 50), (50, 50)] {
        let spec = |spec: ChildSpec| spec.backoff(Backoff::constant(ms(wait)));
        let tree = tree(|mailbox| mailbox, spec).await;
        tree.reader.timed();
        tree.send([Fail, Note(1)]);
        tree.pass(secs(1)).await;

        let (start, read) = (format!("{wait}: start#2"), format!("{}: 1#2", wait + grace));
        assert_eq!(tree.log(), [start, read]);
    }
}

#[tokio::test(start_paused = true)]
async fn seed0_14_a_stop_in_the_grace_cancels_the_pending_drain() {
    let mut tree = tree(|mailbox| mailbox.drain(Drain::After(ms(300))), |spec| spec).await;
    tree.send([Fail, Note(1), Note(2)]);
    tree.pass(WAIT + ms(299)).await;
    assert_eq!(tree.log(), ["start#2"]);

    let called = Instant::now();
    tree.handle.stop("enough").await.unwrap();
    assert_eq!(called.elapsed(), Duration::ZERO, "the stop doesn't wait for the drain");
    tree.pass(secs(60)).await;
    let read = ["1#2", "2#2", "none#2"];
    assert_eq!(tree.log(), read, "a child that is stopped reads the rest, once");
    assert!(tree.letters().is_empty());
}

#[tokio::test(start_paused = true)]
async fn seed0_14_a_stop_in_the_grace_of_a_child_that_reads_no_more_leaves_dead_letters() {
    let change = |mailbox: Mailbox<Message>| mailbox.drain(Drain::After(ms(300)));
    let mut tree = tree(change, |spec| spec).await;
    tree.send([Fail, Note(1), Note(2)]);
    tree.reader.starts([Begin::Fail(secs(60))]);
    tree.pass(WAIT + ms(299)).await;

    tree.handle.stop("enough").await.or_else(killed).unwrap();
    tree.pass(secs(60)).await;
    assert_eq!(tree.log(), ["start#2"]);
    assert_eq!(tree.letters(), ["undelivered_at_stop: 1", "undelivered_at_stop: 2"]);
}

#[tokio::test(start_paused = true)]
async fn seed0_26_in_the_grace_new_messages_are_read_at_once_if_none_are_stashed() {
    let tree = tree(|mailbox| mailbox, |spec| spec).await;
    tree.fail().await;
    tree.pass(WAIT).await;
    tree.reader.timed();

    tree.send([Note(1)]);
    settle().await;

    assert_eq!(tree.log(), ["start#2", "0: 1#2"]);
}

#[tokio::test(start_paused = true)]
async fn seed0_44_a_stash_is_read_at_the_end_of_the_grace_and_not_before() {
    let tree = tree(|mailbox| mailbox.drain(Drain::After(ms(300))), |spec| spec).await;
    tree.send([Fail, Note(1)]);
    tree.pass(WAIT + ms(299)).await;
    assert_eq!(tree.log(), ["start#2"]);

    tree.pass(ms(1)).await;
    assert_eq!(tree.log(), ["1#2"]);
}

#[tokio::test(start_paused = true)]
async fn seed0_45_overtaking_messages_reach_an_incarnation_that_may_not_survive() {
    let change = |mailbox: Mailbox<Message>| mailbox.allow_overtake();
    let mut tree = tree(change, |spec| spec).await;
    tree.fail().await;
    tree.send([Note(1)]);
    tree.pass(WAIT).await;

    tree.lost();

    tree.send([Note(2), Poison(3)]);
    settle().await;
    assert_eq!(tree.log(), ["start#2", "2#2"], "ahead of the first, to one that fails at once");
    assert_eq!(tree.lost(), ["#2 failed: poison 3"], "a dead letter, without the message");
    tree.pass(WAIT + ms(50)).await;

    assert_eq!(tree.log(), ["start#3", "1#3"], "what had waited was safe");
    assert!(tree.letters().is_empty(), "what was read before was delivered");
}

#[tokio::test(start_paused = true)]
async fn seed0_46_messages_held_until_the_end_of_the_grace_arrive_in_order() {
    let change = |mailbox: Mailbox<Message>| mailbox.hold_until(Drain::After(ms(100)));
    let tree = tree(change, |spec| spec).await;
    tree.reader.starts([Begin::Fail(ms(60)); 3]);
    tree.pass(ms(100)).await;
    tree.fail().await;
    tree.send([Note(1)]);
    for n in 2..=4 {
        tree.pass(WAIT).await;
        tree.send([Note(n)]);
        tree.pass(ms(60)).await;
    }
    tree.reader.timed();
    tree.pass(WAIT + ms(100)).await;

    assert_eq!(
        tree.log(),
        [
            "start#2",
            "start#3",
            "start#4",
            "1000: start#5",
            "1100: 1#5",
            "1100: 2#5",
            "1100: 3#5",
            "1100: 4#5"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn hold_until_holds_new_messages_even_with_an_empty_stash() {
    let change = |mailbox: Mailbox<Message>| mailbox.hold_until(Drain::After(ms(100)));
    let tree = tree(change, |spec| spec).await;
    tree.fail().await;
    tree.pass(ms(100) + WAIT + ms(40)).await;
    tree.send([Note(1)]);
    tree.pass(ms(59)).await;
    assert_eq!(tree.log(), ["start#2"]);
    tree.pass(ms(1)).await;
    assert_eq!(tree.log(), ["1#2"]);
}

#[tokio::test(start_paused = true)]
async fn seed0_47_a_stash_is_kept_if_the_child_dies_in_the_grace() {
    let tree = tree(|mailbox| mailbox, |spec| spec).await;
    tree.reader.starts([Begin::Fail(ms(10)), Begin::Fail(ms(20)), Begin::Fail(ms(49))]);
    tree.send([Fail, Note(1), Note(2)]);
    tree.pass(secs(5)).await;

    let log = ["start#2", "start#3", "start#4", "start#5", "1#5", "2#5"];
    assert_eq!(tree.log(), log);
}

#[tokio::test(start_paused = true)]
async fn seed0_48_without_a_grace_a_stash_is_read_at_the_start() {
    let changes: [fn(Mailbox<Message>) -> Mailbox<Message>; 3] = [
        |mailbox| mailbox.drain(Drain::AtStart),
        |mailbox| mailbox.hold_until(Drain::AtStart),
        |mailbox| mailbox.hold_until(Drain::After(Duration::ZERO)).allow_overtake(),
    ];
    for change in changes {
        let tree = tree(change, |spec| spec).await;
        tree.reader.timed();
        tree.send([Fail, Note(1)]);
        tree.pass(WAIT).await;
        tree.send([Note(2)]);
        settle().await;
        assert_eq!(tree.log(), ["1000: start#2", "1000: 1#2", "1000: 2#2"]);
    }
}

#[tokio::test(start_paused = true)]
async fn seed0_49_no_message_overtakes_another_unless_that_is_allowed() {
    for (overtakes, read) in [(false, ["1#2", "2#2"]), (true, ["2#2", "1#2"])] {
        let change = |mailbox: Mailbox<Message>| {
            if overtakes { mailbox.allow_overtake() } else { mailbox }
        };
        let tree = tree(change, |spec| spec).await;
        tree.send([Fail, Note(1)]);
        tree.pass(WAIT + ms(10)).await;
        tree.send([Note(2)]);
        tree.pass(ms(40)).await;

        assert_eq!(tree.log(), [&["start#2"][..], &read].concat());
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_that_signals_readiness_reads_its_stash_then() {
    let tree = tree(|mailbox| mailbox, |spec| spec.readiness(Readiness::Signal)).await;
    tree.reader.starts([Begin::ReadyAfter(ms(700))]);
    tree.reader.timed();
    tree.send([Fail, Note(1)]);
    tree.pass(secs(2)).await;

    assert_eq!(tree.log(), ["1000: start#2", "1700: 1#2"]);
}

#[tokio::test(start_paused = true)]
async fn kin_90_requests_wait_for_a_start_that_survives() {
    let change = |mailbox: Mailbox<Message>| mailbox.hold_until(Drain::After(ms(50)));
    let tree = tree(change, |spec| spec).await;
    tree.reader.starts([Begin::Fail(ms(1)), Begin::Fail(ms(1))]);
    tree.pass(ms(50)).await;
    tree.fail().await;

    let answers = tokio::join!(
        tree.address.ask(|reply| Ask(1, reply)),
        tree.address.ask(|reply| Ask(2, reply)),
        tree.address.ask(|reply| Ask(3, reply)),
    );

    let answers = [text_of(answers.0), text_of(answers.1), text_of(answers.2)];
    assert_eq!(answers, ["1 by 4", "2 by 4", "3 by 4"]);
}

#[tokio::test(start_paused = true)]
async fn kin_91_a_message_is_forwarded_at_once_only_if_it_overtakes_none() {
    // actor-ts forwards a message in the grace at once; verger only when none is stashed.
    let tree = tree(|mailbox| mailbox, |spec| spec).await;
    tree.send([Fail, Note(1)]);
    tree.pass(WAIT).await;
    tree.send([Note(2)]);
    settle().await;
    assert_eq!(tree.log(), ["start#2"]);
    tree.pass(ms(50)).await;
    assert_eq!(tree.log(), ["1#2", "2#2"]);
}

#[tokio::test(start_paused = true)]
async fn kin_94_messages_left_when_an_incarnation_fails_over_its_stash_are_kept_in_order() {
    let tree = tree(|mailbox| mailbox, |spec| spec).await;
    tree.send([Fail, Fail, Note(1), Note(2)]);
    tree.pass(WAIT + ms(50)).await;
    assert_eq!(tree.log(), ["start#2"], "the first of its stash was its end");

    tree.pass(WAIT + ms(50)).await;
    assert_eq!(tree.log(), ["start#3", "1#3", "2#3"]);
}

#[tokio::test(start_paused = true)]
async fn kin_95_a_stash_outlives_failed_starts() {
    let treat = |spec: ChildSpec| spec.readiness(Readiness::Signal);
    let tree = tree(|mailbox| mailbox, treat).await;
    tree.reader.starts([Begin::Fail(ms(500)), Begin::Fail(ms(500))]);
    tree.send([Fail, Note(1), Note(2)]);
    tree.pass(secs(5)).await;

    assert_eq!(tree.log(), ["start#2", "start#3", "start#4", "1#4", "2#4"]);
}
