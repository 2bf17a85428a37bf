//! At-least-once delivery: unacknowledged messages are redelivered.

use super::*;

async fn tree() -> Tree {
    Tree::with(Reader::that_acks(), 1000, |it| it, |spec| spec).await
}

#[tokio::test(start_paused = true)]
async fn seed2_11_a_crash_ends_the_child_and_a_new_one_gets_the_message() {
    let tree = tree().await;
    tree.send([Note(1), Poison(2), Note(3)]);
    settle().await;
    assert_eq!(tree.log(), ["start#1", "1 try 1#1", "poison 2 try 1#1"]);

    tree.pass(WAIT + ms(50)).await;
    assert_eq!(tree.log(), ["start#2", "poison 2 try 2#2"], "first, and before the third");
}

#[tokio::test(start_paused = true)]
async fn seed2_12_each_message_has_a_number_of_its_own_and_an_attempt() {
    let (address, mailbox) = mailbox::<&str>();
    let (tx, mut rx) = tokio::sync::mpsc::unbounded_channel();
    let spec = worker_with_mailbox("reader", mailbox, move |ctx: Context, mut inbox: Inbox<_>| {
        let tx = tx.clone();
        async move {
            let mut held = Vec::new();
            for _ in 0..3 {
                let delivery = inbox.deliver().await.unwrap();
                let _ = tx.send((delivery.id(), *delivery, delivery.attempt()));
                held.push(delivery);
            }
            if ctx.incarnation() == 1 {
                return Err("acknowledged nothing".into());
            }
            held.into_iter().for_each(|delivery| {
                delivery.ack();
            });
            Exit::Ok(())
        }
    });
    let tree = app().child(spec).build().unwrap().start().await.unwrap();
    for text in ["same", "same", "other"] {
        address.try_send(text).unwrap();
    }
    tokio::time::sleep(secs(2)).await;
    settle().await;

    let received: Vec<_> = std::iter::from_fn(|| rx.try_recv().ok()).collect();
    let expected: Vec<_> = [1, 2]
        .into_iter()
        .flat_map(|attempt| [(0, "same", attempt), (1, "same", attempt), (2, "other", attempt)])
        .collect();
    assert_eq!(received, expected, "in their order, twins apart");
    assert!(address.is_empty());
    tree.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn seed2_13_a_crash_right_after_a_delivery_loses_nothing() {
    for end in [verger_end_by_error as fn() -> Exit, || panic!("at once")] {
        let (address, mailbox) = mailbox::<u32>();
        let reader = Reader::new();
        let log = reader.clone();
        let spec =
            worker_with_mailbox("reader", mailbox, move |ctx: Context, mut inbox: Inbox<u32>| {
                let log = log.clone();
                async move {
                    let delivery = inbox.deliver().await.unwrap();
                    log.say(&delivery.to_string(), &ctx);
                    if ctx.incarnation() == 1 {
                        return end();
                    }
                    delivery.ack();
                    ctx.cancelled().await;
                    Ok(())
                }
            });
        let tree = app().child(spec).build().unwrap().start().await.unwrap();
        address.try_send(7).unwrap();
        tokio::time::sleep(secs(2)).await;
        settle().await;
        assert_eq!(reader.log(), ["7#1", "7#2"]);
        assert!(address.is_empty());
        tree.stop("enough").await.unwrap();
    }
}

fn verger_end_by_error() -> Exit {
    Err("at once".into())
}

#[tokio::test(start_paused = true)]
async fn an_aborted_child_loses_no_delivery() {
    let (address, mailbox) = mailbox::<u32>();
    let reader = Reader::new();
    let log = reader.clone();
    let spec =
        worker_with_mailbox("reader", mailbox, move |ctx: Context, mut inbox: Inbox<u32>| {
            let log = log.clone();
            async move {
                let delivery = inbox.deliver().await.unwrap();
                log.say(&delivery.to_string(), &ctx);
                std::future::pending::<()>().await;
            }
        });
    let tree = app().child(spec).build().unwrap().start().await.unwrap();
    address.try_send(7).unwrap();
    settle().await;

    tree.kill("reader").await.unwrap();
    tokio::time::sleep(secs(2)).await;
    settle().await;

    assert_eq!(reader.log(), ["7#1", "7#2"]);
    tree.kill("reader").await.unwrap();
    tree.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn seed2_17_unacknowledged_messages_are_redelivered_in_order() {
    let (address, mailbox) = mailbox::<u32>();
    let reader = Reader::new();
    let log = reader.clone();
    let spec =
        worker_with_mailbox("reader", mailbox, move |ctx: Context, mut inbox: Inbox<u32>| {
            let log = log.clone();
            async move {
                let mut held = Vec::new();
                for _ in 0..10 {
                    let delivery = inbox.deliver().await.unwrap();
                    log.say(&delivery.to_string(), &ctx);
                    held.push(delivery);
                }
                if ctx.incarnation() == 1 {
                    // In another order than they arrived.
                    held.reverse();
                    held.swap_remove(3).ack();
                    return Err("acknowledged one of ten".into());
                }
                held.into_iter().for_each(|delivery| {
                    delivery.ack();
                });
                Exit::Ok(())
            }
        });
    let tree = app().child(spec).build().unwrap().start().await.unwrap();
    (0..10).for_each(|n| address.try_send(n).unwrap());
    settle().await;
    address.try_send(10).unwrap();
    reader.log();
    tokio::time::sleep(WAIT + ms(50)).await;
    settle().await;

    let expected: Vec<_> = (0..=10).filter(|n| *n != 6).map(|n| format!("{n}#2")).collect();
    assert_eq!(reader.log(), expected);
    tree.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn seed2_19_a_request_is_answered_after_any_number_of_crashes() {
    let tree = fails_first(8, |mailbox| mailbox.unlimited_attempts()).await;
    let answer = tree.0.ask(|reply| (1, reply)).await;
    assert_eq!(text_of(answer), "1 by 9");
    tree.1.stop("enough").await.unwrap();
}

type Question = (u32, Reply<String>);

/// A child that fails this many times over the first message.
async fn fails_first(
    times: u32,
    change: impl FnOnce(Mailbox<Question>) -> Mailbox<Question>,
) -> (Address<Question>, SupervisorHandle) {
    let (address, mailbox) = mailbox::<Question>();
    let run = move |ctx: Context, mut inbox: Inbox<Question>| async move {
        while let Some(delivery) = inbox.deliver().await {
            if delivery.0 == 1 && delivery.attempt() <= times {
                return Err("not yet".into());
            }
            let (n, reply) = delivery.ack();
            reply.send(format!("{n} by {}", ctx.incarnation()));
        }
        Exit::Ok(())
    };
    let spec = worker_with_mailbox("reader", change(mailbox), run);
    let tree = app().child(spec).build().unwrap().start().await.unwrap();
    (address, tree)
}

#[tokio::test(start_paused = true)]
async fn kin_96_a_request_is_answered_after_eight_failures() {
    let (address, tree) = fails_first(8, |mailbox| mailbox.max_attempts(9)).await;
    assert_eq!(text_of(address.ask(|reply| (1, reply)).await), "1 by 9");
    tree.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_97_ten_requests_of_which_one_fails_get_ten_matching_replies() {
    let (address, tree) = fails_first(2, |mailbox| mailbox).await;
    let requests: Vec<_> = (1..=10)
        .map(|n| {
            let address = address.clone();
            tokio::spawn(async move { text_of(address.ask(|reply| (n, reply)).await) })
        })
        .collect();
    for (n, request) in (1..).zip(requests) {
        assert_eq!(request.await.unwrap(), format!("{n} by 3"));
    }
    assert!(address.is_empty());
    tree.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_98_a_message_that_always_fails_is_quarantined_and_later_messages_flow() {
    let change = |mailbox: Mailbox<Message>| mailbox.max_attempts(3);
    let mut tree = Tree::with(Reader::that_acks(), 1000, change, |spec| spec).await;
    tree.send([Note(1), Poison(2), Note(3)]);
    tree.pass(secs(10)).await;

    assert_eq!(
        tree.log(),
        [
            "start#1",
            "1 try 1#1",
            "poison 2 try 1#1",
            "start#2",
            "poison 2 try 2#2",
            "start#3",
            "poison 2 try 3#3",
            "start#4",
            "3 try 1#4",
        ]
    );
    assert_eq!(tree.letters(), ["poison: 2"]);
}

#[tokio::test(start_paused = true)]
async fn by_default_a_message_is_poison_after_five_attempts() {
    let mut tree = tree().await;
    tree.send([Poison(1)]);
    tree.pass(WAIT * 4 + ms(200)).await;
    assert_eq!(tree.letters(), ["poison: 1"]);
    assert_eq!(tree.log().last().unwrap(), "poison 1 try 5#5");
}

#[tokio::test(start_paused = true)]
async fn seed2_20_an_address_stays_valid_across_incarnations() {
    let tree = tree().await;
    let before = tree.address.path();
    tree.send([Fail]);
    tree.pass(WAIT).await;
    assert_eq!(tree.address.path(), before);
    tree.send([Note(1)]);
    settle().await;
    assert_eq!(tree.log(), ["start#1", "start#2", "1 try 1#2"]);
}

#[tokio::test(start_paused = true)]
async fn seed2_21_a_message_is_acknowledged_before_its_request_is_answered() {
    // `ack` returns the message, and with it the reply, so the order can't be reversed.
    let tree = tree().await;
    assert_eq!(text_of(tree.address.ask(|reply| Ask(1, reply)).await), "1 by 1");
    assert!(tree.address.is_empty());
}

#[tokio::test(start_paused = true)]
async fn seed2_23_recorded_messages_are_limited_and_the_oldest_is_evicted() {
    let change =
        |mailbox: Mailbox<Message>| mailbox.overflow(verger::mailbox::Overflow::DropOldest);
    let mut tree = Tree::with(Reader::that_acks(), 3, change, |spec| spec).await;
    tree.send([Poison(1), Note(2), Note(3)]);
    settle().await;
    assert_eq!(tree.address.len(), 3, "the child is down, and one has been delivered before");

    tree.send([Note(4)]);
    assert_eq!(tree.letters(), ["evicted: 1"]);
    tree.send([Note(5)]);
    assert_eq!(tree.letters(), ["stash_overflow: 2"]);
    tree.pass(WAIT + ms(50)).await;

    let read = ["start#2", "3 try 1#2", "4 try 1#2", "5 try 1#2"];
    assert_eq!(tree.log()[2..], read);
}

#[tokio::test(start_paused = true)]
async fn a_returned_message_is_redelivered_to_the_same_incarnation() {
    let (address, mailbox) = mailbox::<u32>();
    let reader = Reader::new();
    let log = reader.clone();
    let spec =
        worker_with_mailbox("reader", mailbox, move |ctx: Context, mut inbox: Inbox<u32>| {
            let log = log.clone();
            async move {
                while let Some(delivery) = inbox.deliver().await {
                    log.say(&format!("{} try {}", *delivery, delivery.attempt()), &ctx);
                    if delivery.attempt() == 2 {
                        delivery.ack();
                    }
                }
            }
        });
    let tree = app().child(spec).build().unwrap().start().await.unwrap();
    address.try_send(1).unwrap();
    address.try_send(2).unwrap();
    settle().await;
    assert_eq!(reader.log(), ["1 try 1#1", "1 try 2#1", "2 try 1#1", "2 try 2#1"]);
    tree.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn attempts_ended_by_a_stop_do_not_count_towards_poison() {
    let (address, mailbox) = mailbox::<u32>();
    let (tx, mut rx) = tokio::sync::mpsc::unbounded_channel();
    let spec = worker_with_mailbox(
        "reader",
        mailbox.max_attempts(2),
        move |ctx: Context, mut inbox: Inbox<u32>| {
            let tx = tx.clone();
            async move {
                let delivery = inbox.deliver().await.unwrap();
                let _ = tx.send((*delivery, delivery.attempt()));
                ctx.cancelled().await;
            }
        },
    );
    let tree = app().child(spec).build().unwrap().start().await.unwrap();
    let mut letters = tree.dead_letters();
    address.try_send(1).unwrap();
    for attempt in 1..=5 {
        assert_eq!(rx.recv().await, Some((1, attempt)));
        tree.restart("reader").await.unwrap();
    }
    assert!(letters.try_next().is_none());
    tree.stop("enough").await.unwrap();
    assert_eq!(letters.next().await.unwrap().reason.to_string(), "undelivered_at_stop");
}

#[tokio::test(start_paused = true)]
async fn seed2_25_an_answer_of_500_is_a_crash_and_the_request_is_made_again() {
    // As in `examples/failing_vendor`, with the requests in a mailbox.
    let (address, mailbox) = mailbox::<(u32, Reply<u16>)>();
    let answers = Arc::new(Mutex::new(VecDeque::from([500, 500, 200, 200])));
    let run = move |_ctx: Context, mut inbox: Inbox<(u32, Reply<u16>)>| {
        let answers = Arc::clone(&answers);
        async move {
            while let Some(request) = inbox.deliver().await {
                let status = answers.lock().unwrap().pop_front().unwrap();
                if status >= 500 {
                    return Err(format!("the vendor answers {status}").into());
                }
                let (_, reply) = request.ack();
                reply.send(status);
            }
            Exit::Ok(())
        }
    };
    let spec = worker_with_mailbox("vendor", mailbox, run);
    let tree = app().child(spec).build().unwrap().start().await.unwrap();

    let (first, second) =
        tokio::join!(address.ask(|reply| (1, reply)), address.ask(|reply| (2, reply)));

    assert_eq!((first, second), (Ok(200), Ok(200)));
    assert_eq!(tree.which_child("vendor").await.unwrap().incarnation, 3);
    tree.stop("enough").await.unwrap();
}
