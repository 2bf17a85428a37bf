//! Unusual uses of mailboxes: inboxes moved elsewhere, extreme limits, and messages with their own
//! drop code.

use std::sync::mpsc;

use verger::mailbox::{AskError, Drain, SendError, WhileDown};

use super::*;

/// A reader whose first incarnation gives its inbox away and ends.
fn giver(mailbox: Mailbox<u32>) -> (ChildSpec, mpsc::Receiver<Inbox<u32>>) {
    let (give, given) = mpsc::channel();
    let spec = worker_with_mailbox("reader", mailbox, move |ctx: Context, mut inbox| {
        let give = give.clone();
        async move {
            if ctx.incarnation() == 1 {
                give.send(inbox).unwrap();
                return Ok(());
            }
            while inbox.recv().await.is_some() {}
            Exit::Ok(())
        }
    });
    (spec, given)
}

#[tokio::test(start_paused = true)]
async fn an_inbox_that_outlives_its_incarnation_ends_with_the_next_start() {
    let (address, mailbox) = mailbox_with_capacity(10);
    let (spec, given) = giver(mailbox);
    let tree = app().child(spec).build().unwrap().start().await.unwrap();
    settle().await;
    let mut inbox = given.try_recv().unwrap();
    address.try_send(1).unwrap();
    assert_eq!(inbox.recv().await, Some(1));

    tokio::time::sleep(WAIT).await;
    settle().await;

    address.try_send(2).unwrap();
    assert_eq!(inbox.recv().await, None);
    settle().await;
    assert!(address.is_empty());
    drop(inbox);
    address.try_send(3).unwrap();
    tree.stop("enough").await.unwrap();
    assert!(address.is_closed());
}

#[tokio::test(start_paused = true)]
async fn a_child_started_by_messages_is_started_although_its_last_inbox_is_kept() {
    let (address, mailbox) = mailbox_with_capacity(10);
    let (spec, given) = giver(mailbox);
    let spec = spec.restart(verger::RestartType::Transient).start_on_message();
    let tree = app().child(spec).build().unwrap().start().await.unwrap();
    address.try_send(1).unwrap();
    settle().await;
    let inbox = given.try_recv().unwrap();
    settle().await;

    address.try_send(2).unwrap();
    settle().await;

    tokio::time::sleep(ms(50)).await;
    settle().await;
    let status = tree.status().await.unwrap();
    assert!(address.is_empty(), "{status}");
    drop(inbox);
    tree.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_delivery_may_outlive_its_tree() {
    for acks in [false, true] {
        let (address, mailbox) = mailbox_with_capacity::<u32>(1);
        let (give, given) = mpsc::channel();
        let spec = worker_with_mailbox("reader", mailbox, move |ctx: Context, mut inbox| {
            let give = give.clone();
            async move {
                give.send(inbox.deliver().await.unwrap()).unwrap();
                ctx.cancelled().await;
                Exit::Ok(())
            }
        });
        let tree = app().child(spec).build().unwrap().start().await.unwrap();
        address.try_send(1).unwrap();
        settle().await;
        tree.stop("enough").await.unwrap();
        let delivery = given.try_recv().unwrap();
        assert_eq!((*delivery, address.len()), (1, 1));

        if acks {
            assert_eq!(delivery.ack(), 1);
        } else {
            drop(delivery);
        }

        assert!(address.is_empty() && address.is_closed());
        assert!(matches!(address.send(2).await, Err(SendError::Closed { message: 2, .. })));
    }
}

/// A message that sends a message to the mailbox on drop.
struct Echo(Address<Echo>, u32);

impl Drop for Echo {
    fn drop(&mut self) {
        if self.1 > 0 {
            let _ = self.0.try_send(Echo(self.0.clone(), self.1 - 1));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_may_send_a_message_on_drop() {
    for while_down in [WhileDown::Drop, WhileDown::DeadLetter, WhileDown::reply(drop)] {
        let (address, mailbox) = mailbox_with_capacity::<Echo>(2);
        let mailbox =
            mailbox.while_down(while_down).overflow(verger::mailbox::Overflow::DropOldest);
        let spec = worker_with_mailbox("reader", mailbox, |_, mut inbox: Inbox<Echo>| async move {
            let first = inbox.deliver().await;
            tokio::time::sleep(ms(1)).await;
            drop(first);
            Exit::Err("failed on request".into())
        });
        let tree = app().child(spec).build().unwrap().start().await.unwrap();
        settle().await;
        for _ in 0..5 {
            let _ = address.try_send(Echo(address.clone(), 3));
        }
        let sending = address.send(Echo(address.clone(), 3));
        assert!(tokio::time::timeout(Duration::ZERO, sending).await.is_err());
        tokio::time::sleep(secs(10)).await;
        let _ = address.try_send(Echo(address.clone(), 3));
        tree.stop("enough").await.unwrap();
        assert!(address.is_empty());
    }
}

/// A message that panics on drop, except during a panic.
struct Grenade;

impl Drop for Grenade {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "it is dropped");
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_panics_on_drop_ends_no_supervisor() {
    let (address, mailbox) = mailbox_with_capacity::<Grenade>(10);
    let mailbox = mailbox.drain(Drain::After(Duration::MAX));
    let spec = worker_with_mailbox("reader", mailbox, |ctx: Context, _inbox| async move {
        ctx.cancelled().await;
        Exit::Ok(())
    });
    (0..3).for_each(|_| address.try_send(Grenade).unwrap_or_else(std::mem::forget));
    let tree = app().child(spec).build().unwrap().start().await.unwrap();
    settle().await;

    tree.stop("enough").await.unwrap();

    assert!(address.is_empty() && address.is_closed());
}

#[test]
fn a_mailbox_without_capacity_is_refused_at_build() {
    let (_address, mailbox) = mailbox_with_capacity(0);
    let built = app().child(Reader::new().spec(mailbox)).build();
    assert_eq!(
        built.unwrap_err().to_string(),
        "the mailbox of `app/reader` has a capacity of 0; write `mailbox_with_capacity(1)` or more, or \
         `mailbox()` for the default of 1000"
    );

    // The fallback of a child, and a child below.
    let (_address, mailbox) = mailbox_with_capacity(0);
    let (_other, good) = mailbox_with_capacity(1);
    let spec = Reader::new().spec(good).fallback(Reader::new().spec(mailbox));
    let below = verger::Supervisor::builder("below").child(spec);
    let error = app().child(below).build().unwrap_err().to_string();
    assert!(error.starts_with("the mailbox of `app/below/reader` has a capacity of 0"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_mailbox_without_capacity_is_refused_when_its_child_is_added() {
    let tree = app().build().unwrap().start().await.unwrap();
    let (_address, mailbox) = mailbox_with_capacity(0);
    let error = tree.start_child(Reader::new().spec(mailbox)).await.unwrap_err().to_string();
    assert!(error.contains("the mailbox of `app/reader` has a capacity of 0"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_mailbox_may_have_any_capacity_and_wait_for_ever() {
    for capacity in [1, usize::MAX] {
        let reader = Reader::new();
        let (address, mailbox) = mailbox_with_capacity(capacity);
        let mailbox = mailbox.hold_until(Drain::After(Duration::MAX));
        let tree = app().child(reader.spec(mailbox)).build().unwrap().start().await.unwrap();
        settle().await;
        assert_eq!(address.capacity(), capacity);

        let asker = address.clone();
        let asking =
            tokio::spawn(
                async move { text_of(asker.ask_within(Duration::MAX, |to| Ask(1, to)).await) },
            );
        settle().await;
        assert_eq!(address.len(), 1);
        // Held messages are read when the child is cancelled.
        tree.stop("enough").await.unwrap();
        assert_eq!(asking.await.unwrap(), "1 by 1");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_send_leaves_its_room_to_the_next_sender() {
    let mut tree = Tree::with(Reader::new(), 1, |it| it, |spec| spec).await;
    tree.fail().await;
    tree.send([Note(1)]);
    let (first, second) = (tree.address.clone(), tree.address.clone());
    let waiting = tokio::spawn(async move {
        tokio::select! {
            biased;
            () = tokio::time::sleep(ms(100)) => panic!("the second gets in when the first is read"),
            sent = async {
                tokio::select! {
                    biased;
                    _ = first.send(Note(2)) => panic!("there is no room yet"),
                    () = tokio::time::sleep(ms(50)) => {}
                }
                second.send(Note(3)).await
            } => sent.unwrap(),
        }
    });
    assert!(waiting.await.is_err(), "the child is down for a second");
    tree.pass(WAIT + ms(50)).await;

    assert_eq!(tree.log(), ["start#1", "start#2", "1#2"]);
    assert_eq!(tree.letters(), [""; 0]);
    assert!(tree.address.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_child_that_ended_with_its_final_message_is_restarted_again_after_a_manual_start() {
    let tree = Tree::new(|mailbox| mailbox.final_message(|it| matches!(it, Note(0)))).await;
    tree.send([Note(0), End]);
    settle().await;
    assert!(tree.address.is_closed());

    tree.handle.otp().restart_child("reader").await.unwrap();
    settle().await;
    assert!(!tree.address.is_closed());
    tree.send([Fail]);
    tree.pass(WAIT).await;

    assert_eq!(tree.log(), ["start#1", "0#1", "start#2", "start#3"]);
}

#[tokio::test(start_paused = true)]
async fn a_reply_at_the_moment_of_its_timeout_arrives() {
    let (address, mailbox) = mailbox_with_capacity::<Reply<u32>>(1);
    let spec =
        worker_with_mailbox("reader", mailbox, |_, mut inbox: Inbox<Reply<u32>>| async move {
            while let Some(reply) = inbox.recv().await {
                tokio::time::sleep(ms(10)).await;
                reply.send(1);
            }
            Exit::Ok(())
        });
    let tree = app().child(spec).build().unwrap().start().await.unwrap();
    settle().await;
    assert_eq!(address.ask_within(ms(11), |to| to).await, Ok(1));
    let late = address.ask_within(ms(9), |to| to).await;
    assert!(matches!(late, Err(AskError::TimedOut { .. })), "{late:?}");
    tree.stop("enough").await.unwrap();
}
