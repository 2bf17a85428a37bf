//! Children that process all queued messages at once.

use super::*;

#[tokio::test(start_paused = true)]
async fn queued_messages_are_delivered_without_waiting_and_redelivered_if_not_acknowledged() {
    let (address, mailbox) = mailbox::<u32>();
    let (tx, mut rx) = tokio::sync::mpsc::unbounded_channel();
    let spec = worker_with_mailbox("batcher", mailbox, move |ctx: Context, mut inbox: Inbox<_>| {
        let tx = tx.clone();
        async move {
            while let Some(first) = inbox.deliver().await {
                let mut batch = vec![first];
                while let Some(next) = inbox.try_deliver() {
                    batch.push(next);
                }
                let _ = tx.send(batch.iter().map(|it| (**it, it.attempt())).collect::<Vec<_>>());
                if ctx.incarnation() == 1 {
                    return Err("acknowledged nothing".into());
                }
                for delivery in batch {
                    delivery.ack();
                }
            }
            Exit::Ok(())
        }
    });
    let tree = app().child(spec).build().unwrap().start().await.unwrap();
    settle().await;
    for n in 1..=3 {
        address.try_send(n).unwrap();
    }
    assert_eq!(rx.recv().await.unwrap(), [(1, 1), (2, 1), (3, 1)]);
    address.try_send(4).unwrap();

    assert_eq!(rx.recv().await.unwrap(), [(1, 2), (2, 2), (3, 2), (4, 1)]);
    settle().await;
    assert!(address.is_empty());
    tree.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_held_message_is_not_in_the_batch() {
    let (address, mailbox) = mailbox::<u32>();
    let (tx, mut rx) = tokio::sync::mpsc::unbounded_channel();
    let spec = worker_with_mailbox("eager", mailbox, move |ctx: Context, mut inbox: Inbox<u32>| {
        let tx = tx.clone();
        async move {
            let early = inbox.try_deliver().map(|it| it.ack());
            ctx.ready();
            let late = inbox.try_deliver().map(|it| it.ack());
            let _ = tx.send((early, late, inbox.try_deliver().map(|it| it.ack())));
            ctx.cancelled().await;
            Exit::Ok(())
        }
    });
    address.try_send(7).unwrap();
    let spec = spec.readiness(Readiness::Signal);
    let tree = app().child(spec).build().unwrap().start().await.unwrap();

    assert_eq!(rx.recv().await, Some((None, Some(7), None)));
    tree.stop("enough").await.unwrap();
}
