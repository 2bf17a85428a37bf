//! Senders that wait for room in a full mailbox.

use super::*;

async fn full() -> Tree {
    let tree = Tree::with(Reader::new(), 2, |it| it, |spec| spec).await;
    tree.fail().await;
    tree.send([Note(1), Note(2)]);
    tree.log();
    tree
}

fn sending(tree: &Tree, n: u32) -> tokio::task::JoinHandle<Result<(), String>> {
    let address = tree.address.clone();
    tokio::spawn(async move { address.send(Note(n)).await.map_err(|error| error.to_string()) })
}

#[tokio::test(start_paused = true)]
async fn a_sender_waits_for_room_also_while_the_child_is_down() {
    let tree = full().await;
    let (third, fourth) = (sending(&tree, 3), sending(&tree, 4));
    settle().await;
    assert!(!third.is_finished() && !fourth.is_finished());
    assert!(
        tree.address.try_send(Note(5)).is_err(),
        "a later send does not overtake waiting senders"
    );

    tree.pass(WAIT + ms(50)).await;

    assert_eq!(tree.log(), ["start#2", "1#2", "2#2", "3#2", "4#2"]);
    assert_eq!((third.await.unwrap(), fourth.await.unwrap()), (Ok(()), Ok(())));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_send_has_not_sent() {
    let tree = full().await;
    let third = sending(&tree, 3);
    let fourth = sending(&tree, 4);
    settle().await;
    third.abort();
    settle().await;

    tree.pass(WAIT + ms(50)).await;

    assert_eq!(tree.log(), ["start#2", "1#2", "2#2", "4#2"]);
    assert_eq!(fourth.await.unwrap(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_waiting_sender_is_refused_when_the_child_will_not_restart() {
    let mut tree = full().await;
    let third = sending(&tree, 3);
    settle().await;

    tree.handle.stop("enough").await.unwrap();

    assert_eq!(
        third.await.unwrap().unwrap_err(),
        "the mailbox of `app/reader` is closed: the child is stopping, or is down and will not be restarted"
    );
    assert_eq!(tree.letters(), ["undelivered_at_stop: 1", "undelivered_at_stop: 2"]);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_sender_has_sent_when_messages_are_diverted() {
    let change =
        |mailbox: Mailbox<Message>| mailbox.while_down(verger::mailbox::WhileDown::DeadLetter);
    let mut tree = Tree::with(Reader::new(), 1, change, |spec| spec).await;
    // The reader fails before it has read the second, so that the third waits.
    tree.send([Fail]);
    let (second, third) = (sending(&tree, 2), sending(&tree, 3));
    settle().await;

    assert_eq!((second.await.unwrap(), third.await.unwrap()), (Ok(()), Ok(())));
    assert_eq!(tree.letters(), ["dropped_while_down: 2", "dropped_while_down: 3"]);
}

#[tokio::test(start_paused = true)]
async fn delivered_messages_count_until_they_are_acknowledged() {
    let (address, mailbox) = mailbox_with_capacity::<u32>(2);
    let permits = Arc::new(tokio::sync::Semaphore::new(0));
    let acks = Arc::clone(&permits);
    let spec = worker_with_mailbox("reader", mailbox, move |_ctx, mut inbox: Inbox<u32>| {
        let acks = Arc::clone(&acks);
        async move {
            let mut held = VecDeque::new();
            while !inbox.is_empty() || held.is_empty() {
                tokio::select! {
                    delivery = inbox.deliver() => held.push_back(delivery.unwrap()),
                    permit = acks.acquire() => {
                        permit.unwrap().forget();
                        held.pop_front().unwrap().ack();
                    }
                }
            }
        }
    });
    let tree = app().child(spec.shutdown(Duration::ZERO)).build().unwrap().start().await.unwrap();
    address.try_send(1).unwrap();
    address.try_send(2).unwrap();
    settle().await;
    assert_eq!(address.len(), 2);
    assert!(address.try_send(3).is_err(), "both are in hand");
    let waiting = tokio::spawn({
        let address = address.clone();
        async move { address.send(4).await.is_ok() }
    });
    settle().await;
    assert!(!waiting.is_finished());

    permits.add_permits(1);

    assert!(waiting.await.unwrap(), "one is acknowledged, and there is room");
    assert_eq!(address.len(), 2);
    tree.kill("reader").await.unwrap();
    tree.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_receive_loses_no_message() {
    // Each receive is cancelled before a message arrives, at the moment it arrives, and after that.
    let (address, mailbox) = mailbox::<u32>();
    let (tx, mut rx) = tokio::sync::mpsc::unbounded_channel();
    let spec = worker_with_mailbox("reader", mailbox, move |_ctx, mut inbox: Inbox<u32>| {
        let tx = tx.clone();
        async move {
            while !tx.is_closed() {
                let found = tokio::select! {
                    biased;
                    () = tokio::time::sleep(ms(10)) => None,
                    taken = inbox.recv() => taken,
                };
                if let Some(n) = found {
                    let _ = tx.send(n);
                }
                let lent = tokio::select! {
                    biased;
                    () = tokio::time::sleep(ms(10)) => None,
                    lent = inbox.deliver() => lent,
                };
                if let Some(delivery) = lent {
                    let _ = tx.send(delivery.ack());
                }
            }
        }
    });
    let spec = spec.shutdown(Duration::ZERO);
    let tree = app().child(spec).build().unwrap().start().await.unwrap();
    for n in 0..100 {
        tokio::time::sleep(ms(5)).await;
        address.try_send(n).unwrap();
    }
    tokio::time::sleep(ms(20)).await;
    settle().await;

    let received: Vec<_> = std::iter::from_fn(|| rx.try_recv().ok()).collect();
    assert_eq!(received, (0..100).collect::<Vec<_>>());
    assert!(address.is_empty());
    tree.kill("reader").await.unwrap();
    tree.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_send_cancelled_when_room_is_free_has_not_sent_and_the_next_send_has() {
    let mut tree = full().await;
    let mut third = Box::pin(tree.address.send(Note(3)));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(third.as_mut().poll(&mut cx).is_pending());
    let fourth = sending(&tree, 4);
    settle().await;

    // The first message that is read makes room for the third, which isn't polled.
    tree.reader.starts([Begin::Ok]);
    tree.pass(WAIT + ms(50)).await;
    assert_eq!(tree.log()[..3], ["start#2", "1#2", "2#2"]);
    drop(third);
    tree.pass(ms(50)).await;

    assert_eq!(fourth.await.unwrap(), Ok(()));
    assert!(tree.letters().is_empty());
    assert!(tree.address.is_empty());
}

/// Polls a future once, and returns whether it is ready.
fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> bool {
    future.poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_ready()
}

#[tokio::test(start_paused = true)]
async fn a_sender_that_is_not_polled_holds_no_room() {
    let tree = Tree::with(Reader::new(), 1, |it| it, |spec| spec).await;
    tree.fail().await;
    tree.send([Note(1)]);
    let mut idle = Box::pin(tree.address.send(Note(9)));
    assert!(!poll_once(idle.as_mut()), "there is no room");
    tree.pass(WAIT + ms(50)).await;
    assert!(tree.address.is_empty(), "now there is room for it");

    tree.send([Note(2)]);
    settle().await;
    let answer = tree.address.ask(|reply| Ask(3, reply)).await;

    assert_eq!(answer.unwrap(), "3 by 2");
    assert!(poll_once(idle.as_mut()), "it can still send");
    settle().await;
    assert_eq!(tree.log(), ["start#1", "start#2", "1#2", "2#2", "3?#2", "9#2"]);
    tree.handle.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_sender_whose_room_was_taken_keeps_its_place() {
    let tree = Tree::with(Reader::new(), 1, |it| it, |spec| spec).await;
    tree.fail().await;
    tree.send([Note(1)]);
    let mut slow = Box::pin(tree.address.send(Note(3)));
    assert!(!poll_once(slow.as_mut()));
    let fourth = sending(&tree, 4);
    settle().await;
    tree.pass(WAIT + ms(50)).await;

    // Before the third is polled again.
    tree.send([Note(2)]);
    assert!(!poll_once(slow.as_mut()), "its room was taken");
    settle().await;
    assert!(!fourth.is_finished(), "the fourth doesn't overtake the third");
    assert!(poll_once(slow.as_mut()));
    settle().await;

    assert_eq!(fourth.await.unwrap(), Ok(()));
    assert_eq!(tree.log(), ["start#1", "start#2", "1#2", "2#2", "3#2", "4#2"]);
    tree.handle.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_new_sender_does_not_overtake_one_that_was_woken() {
    let tree = Tree::with(Reader::new(), 1, |it| it, |spec| spec).await;
    tree.fail().await;
    tree.send([Note(1)]);
    let mut woken = Box::pin(tree.address.send(Note(2)));
    assert!(!poll_once(woken.as_mut()));
    tree.pass(WAIT + ms(50)).await;

    let third = sending(&tree, 3);
    settle().await;
    assert!(!third.is_finished(), "it waits behind the second");
    assert!(poll_once(woken.as_mut()));
    settle().await;

    assert_eq!(third.await.unwrap(), Ok(()));
    assert_eq!(tree.log(), ["start#1", "start#2", "1#2", "2#2", "3#2"]);
    tree.handle.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_sender_whose_check_panics_leaves_its_place() {
    let check = |mailbox: Mailbox<Message>| {
        mailbox.final_message(|message| match message {
            Note(2) => panic!("unsure"),
            message => matches!(message, End),
        })
    };
    let reader = Reader::new();
    reader.starts([Begin::Fail(ms(100))]);
    let tree = Tree::with(reader, 1, check, |spec| spec).await;
    tree.send([Note(1)]);
    let mut second = Box::pin(tree.address.send(Note(2)));
    assert!(!poll_once(second.as_mut()), "there is no room");
    tree.pass(ms(100)).await;

    // The child is down now, so that the message is checked. The panic counts as `false`.
    assert!(!poll_once(second.as_mut()), "there is still no room");
    drop(second);
    let third = sending(&tree, 3);
    tree.pass(WAIT + ms(50)).await;

    assert_eq!(third.await.unwrap(), Ok(()));
    tree.handle.stop("enough").await.unwrap();
}
