//! The child restarts at once, and its messages are delayed.

use verger::mailbox::Delay;
use verger::policy::{Jitter, Preset, Reset};

use super::*;

fn doubled() -> Backoff {
    Backoff::exponential(secs(1), secs(60)).jitter(Jitter::None).reset(Reset::OnAck)
}

async fn tree() -> Tree {
    let change = |mailbox: Mailbox<Message>| mailbox.delay(Delay::Delivery);
    let tree = Tree::with(Reader::that_acks(), 1000, change, |spec| spec.backoff(doubled())).await;
    tree.log();
    tree.reader.timed();
    tree
}

#[tokio::test(start_paused = true)]
async fn seed2_14_without_failures_there_is_no_delay() {
    let tree = tree().await;
    tree.send([Note(1)]);
    settle().await;
    assert_eq!(tree.log(), ["0: 1 try 1#1"]);
}

#[tokio::test(start_paused = true)]
async fn seed2_15_messages_that_arrive_in_the_delay_are_read_at_its_end() {
    let tree = tree().await;
    tree.send([Fail]);
    settle().await;
    for n in 1..=10 {
        tree.pass(ms(50)).await;
        tree.send([Note(n)]);
    }
    tree.pass(ms(499)).await;
    assert_eq!(tree.log(), ["0: start#2"]);

    tree.pass(ms(1)).await;
    let at_the_end: Vec<_> = (1..=10).map(|n| format!("1000: {n} try 1#2")).collect();
    assert_eq!(tree.log(), at_the_end, "one delay for all of them");
    tree.pass(secs(60)).await;
    assert!(tree.log().is_empty(), "and no second one");
}

#[tokio::test(start_paused = true)]
async fn seed2_15_the_delay_is_that_of_the_last_failure() {
    let tree = tree().await;
    tree.send([Poison(0)]);
    settle().await;
    tree.pass(ms(400)).await;
    tree.send([Note(1)]);
    tree.pass(ms(600)).await;
    assert_eq!(
        tree.log(),
        ["0: poison 0 try 1#1", "0: start#2", "1000: poison 0 try 2#2", "1000: start#3"]
    );

    // The first message is delivered again two seconds later, and the second one stays behind it.
    tree.send([Note(2)]);
    tree.pass(ms(1_999)).await;
    assert!(tree.log().is_empty());
    tree.pass(ms(1)).await;
    assert_eq!(tree.log(), ["3000: poison 0 try 3#3", "3000: start#4"]);
}

#[tokio::test(start_paused = true)]
async fn seed2_16_the_child_restarts_at_once_and_its_messages_are_delivered_after_the_delay() {
    let tree = tree().await;
    tree.send([Poison(1), Note(2)]);
    tree.pass(secs(8)).await;

    assert_eq!(
        tree.log(),
        [
            "0: poison 1 try 1#1",
            "0: start#2",
            "1000: poison 1 try 2#2",
            "1000: start#3",
            "3000: poison 1 try 3#3",
            "3000: start#4",
            "7000: poison 1 try 4#4",
            "7000: start#5",
        ],
        "waits of 1, 2, 4, 8 seconds, for the messages only"
    );
}

#[tokio::test(start_paused = true)]
async fn seed2_18_an_acknowledgement_resets_the_delays() {
    let tree = tree().await;
    tree.send([Fail]);
    settle().await;
    tree.send([Note(1)]);
    tree.pass(secs(1)).await;
    assert_eq!(tree.log(), ["0: start#2", "1000: 1 try 1#2"]);

    tree.send([Note(2), Fail, Note(3)]);
    tree.pass(ms(999)).await;
    assert_eq!(tree.log(), ["1000: 2 try 1#2", "1000: start#3"], "the next is read at once");
    tree.pass(ms(1)).await;
    assert_eq!(tree.log(), ["2000: 3 try 1#3"], "the wait is the first one again");
}

#[tokio::test(start_paused = true)]
async fn seed2_18_an_acknowledgement_of_another_message_leaves_the_delays_of_a_poison_message() {
    // Acknowledging other messages doesn't reset the delay.
    let (address, mailbox) = mailbox::<u32>();
    let reader = Reader::new();
    let log = reader.clone();
    let run = move |ctx: Context, mut inbox: Inbox<u32>| {
        let log = log.clone();
        async move {
            let poison = inbox.deliver().await.unwrap();
            for _ in 0..2 {
                inbox.deliver().await.unwrap().ack();
            }
            log.say(&format!("{} try {}", *poison, poison.attempt()), &ctx);
            Exit::Err("poison".into())
        }
    };
    let spec = worker_with_mailbox("reader", mailbox, run).backoff(doubled());
    let tree = app().child(spec).build().unwrap().start().await.unwrap();
    reader.timed();
    (0..10).for_each(|n| address.try_send(n).unwrap());
    tokio::time::sleep(secs(8)).await;
    settle().await;

    assert_eq!(
        reader.log(),
        ["0: 0 try 1#1", "1050: 0 try 2#2", "3100: 0 try 3#3", "7150: 0 try 4#4"]
    );
    tree.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_ready_after_its_delay_reads_when_it_is_ready() {
    for (ready, read) in [(secs(3), 3000), (ms(200), 1000)] {
        let change = |mailbox: Mailbox<Message>| mailbox.delay(Delay::Delivery);
        let treat = |spec: ChildSpec| spec.backoff(doubled()).readiness(Readiness::Signal);
        let tree = Tree::with(Reader::that_acks(), 1000, change, treat).await;
        tree.log();
        tree.reader.timed();
        tree.reader.starts([Begin::ReadyAfter(ready)]);
        tree.send([Fail, Note(1)]);
        tree.pass(secs(4)).await;

        assert_eq!(tree.log(), ["0: start#2".to_owned(), format!("{read}: 1 try 1#2")]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_that_cannot_start_is_attempted_once_per_delay() {
    let tree = tree().await;
    tree.reader.starts([Begin::Fail(Duration::ZERO); 3]);
    tree.fail().await;
    tree.pass(secs(8)).await;

    assert_eq!(tree.log(), ["0: start#2", "1000: start#3", "3000: start#4", "7000: start#5"]);
}

#[tokio::test(start_paused = true)]
async fn seed2_10_the_defaults_of_the_sender_are_slots_of_10_ms_and_a_ceiling_of_ten() {
    let (_address, mailbox) = mailbox();
    let reader = Reader::new();
    reader.starts([Begin::Fail(Duration::ZERO); 12]);
    let spec = reader.spec(mailbox.delay(Delay::Delivery));
    let app =
        Supervisor::builder("app").preset(Preset::xebia()).random(|| || 0.999_999).child(spec);
    reader.timed();
    let tree = app.build().unwrap().start().await.unwrap();
    tokio::time::sleep(secs(20)).await;
    settle().await;

    // Each starts when the previous delay is over: 1, 3, 7, … 511 slots; then the delays restart.
    let mut at = 0;
    let mut expected = vec![0, 0];
    for slots in [1, 3, 7, 15, 31, 63, 127, 255, 511, 0, 1] {
        at += slots * 10;
        expected.push(at);
    }
    let expected: Vec<_> = (1..).zip(expected).map(|(n, at)| format!("{at}: start#{n}")).collect();
    assert_eq!(reader.log(), expected);
    tree.stop("enough").await.unwrap();
}
