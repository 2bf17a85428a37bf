//! Children that hang over a message, detected by a health check.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use verger::HealthCheck;

use super::*;
use crate::common::killed;

/// A reader that hangs over every message but `well`, and is checked once a second.
fn hanging(mailbox: Mailbox<u32>, well: u32, lent: &Arc<AtomicU32>) -> ChildSpec {
    let busy = Arc::new(Mutex::new(false));
    let (checked, lent) = (Arc::clone(&busy), Arc::clone(lent));
    let check = HealthCheck::new(move |_| {
        let hangs = std::mem::take(&mut *checked.lock().unwrap());
        async move { if hangs { Err("it hangs") } else { Ok(()) } }
    });
    let run = move |_: Context, mut inbox: Inbox<u32>| {
        let (busy, lent) = (Arc::clone(&busy), Arc::clone(&lent));
        async move {
            while let Some(message) = inbox.deliver().await {
                lent.fetch_add(1, Relaxed);
                if *message != well {
                    *busy.lock().unwrap() = true;
                    std::future::pending::<()>().await;
                }
                message.ack();
            }
            Exit::Ok(())
        }
    };
    let spec = worker_with_mailbox("reader", mailbox, run).shutdown(ms(100));
    spec.health_check(check.every(secs(1)).failures(1).restarts())
}

#[tokio::test(start_paused = true)]
async fn a_message_that_hangs_its_reader_is_poison_like_a_message_that_fails_it() {
    let (address, mailbox) = mailbox();
    let lent = Arc::default();
    let spec = hanging(mailbox.max_attempts(3), 2, &lent);
    let tree = app().child(spec).build().unwrap().start().await.unwrap();
    let mut letters = tree.dead_letters();
    for message in [1, 2] {
        address.try_send(message).unwrap();
    }

    let letter = tokio::time::timeout(secs(20), letters.next()).await.expect("it is quarantined");
    let letter = letter.unwrap();
    assert_eq!((letter.reason.to_string(), letter.take()), ("poison".to_owned(), Some(1_u32)));
    assert_eq!(lent.load(Relaxed), 3);
    tokio::time::sleep(secs(2)).await;
    assert!(address.is_empty(), "the second was not in its way any longer");
    tree.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_delivery_open_at_a_stop_of_the_tree_does_not_count_as_failed() {
    let (address, mailbox) = mailbox();
    let lent = Arc::default();
    let spec = hanging(mailbox.max_attempts(1), 2, &lent);
    let tree = app().child(spec).build().unwrap().start().await.unwrap();
    let mut letters = tree.dead_letters();
    address.try_send(1).unwrap();
    settle().await;

    tree.stop("enough").await.or_else(killed).unwrap();

    let letter = letters.next().await.unwrap();
    assert_eq!(letter.reason.to_string(), "undelivered_at_stop");
    assert_eq!(lent.load(Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_delivery_open_when_the_tree_is_dropped_does_not_count_as_failed_if_its_reader_was_stopping()
 {
    for (to_stop, reason) in [(true, "undelivered_at_stop"), (false, "poison")] {
        let (address, mailbox) = mailbox::<Message>();
        let (tx, mut rx) = tokio::sync::mpsc::unbounded_channel();
        let run = move |ctx: Context, mut inbox: Inbox<Message>| {
            let tx = tx.clone();
            async move {
                let _in_hand = inbox.deliver().await;
                let _ = tx.send(ctx.parent());
                std::future::pending::<Exit>().await
            }
        };
        let spec = worker_with_mailbox("reader", mailbox.max_attempts(1), run).shutdown(secs(100));
        let running = tokio::spawn(app().child(spec).build().unwrap().run());
        let request =
            tokio::spawn(async move { text_of(address.ask(|reply| Ask(1, reply)).await) });
        let app = rx.recv().await.expect("the reader has the question");
        if to_stop {
            let stopping = async move { app.stop_child("reader").await };
            tokio::spawn(stopping);
            settle().await;
        }

        running.abort();

        let text = format!("the question to `app/reader` was not delivered: {reason}");
        assert_eq!(request.await.unwrap(), text);
    }
}
