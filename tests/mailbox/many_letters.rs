//! Very many answers and dead letters at once: the supervisor serves calls between them.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;
use tokio::task::yield_now;
use verger::dead_letter::DeadLetterStore;
use verger::mailbox::AskError;
use verger::{Shutdown, worker};

use super::*;

const MANY: usize = 20_000;

/// A tree whose reader reads nothing.
fn tree(store: &DeadLetterStore) -> (Address<Message>, Supervisor) {
    let (address, mailbox) = mailbox_with_capacity(MANY + 1);
    let run = async |ctx: Context, _inbox: Inbox<Message>| ctx.cancelled().await;
    let spec = worker_with_mailbox("reader", mailbox, run);
    (address, app().dead_letter_store(store).child(spec).build().unwrap())
}

/// Starts such a tree, and sends very many messages to the reader.
async fn crowded(store: &DeadLetterStore) -> (Address<Message>, SupervisorHandle) {
    let (address, tree) = tree(store);
    let tree = tree.start().await.unwrap();
    (0..MANY).for_each(|_| address.try_send(Note(1)).unwrap());
    (address, tree)
}

#[tokio::test(start_paused = true)]
async fn calls_are_served_between_the_letters_of_a_mailbox_that_is_closed() {
    let store = DeadLetterStore::metrics_only();
    let (address, tree) = crowded(&store).await;
    let question = tokio::spawn({
        let address = address.clone();
        async move { address.ask(|reply| Ask(1, reply)).await }
    });
    settle().await;
    let terminated = tokio::spawn({
        let tree = tree.clone();
        async move { tree.stop_child("reader").await }
    });
    while store.counts().total == 0 {
        yield_now().await;
    }

    assert_eq!(tree.otp().count_children().await.unwrap().active, 0);

    let published = store.counts().total as usize;
    assert!(published < MANY, "{published}");
    assert!(address.is_closed(), "it accepts no messages meanwhile");
    terminated.await.unwrap().unwrap();
    let undelivered = question.await.unwrap().unwrap_err();
    assert!(matches!(undelivered, AskError::Undelivered { .. }), "{undelivered}");
    assert_eq!(store.counts().total as usize, MANY + 1);
    tree.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_letters_of_a_child_that_is_restarted_manually_are_not_delivered() {
    let store = DeadLetterStore::metrics_only();
    let (address, tree) = crowded(&store).await;

    tree.stop_child("reader").await.unwrap();
    tree.otp().restart_child("reader").await.unwrap();

    assert!(address.is_empty());
    address.try_send(Note(2)).unwrap();
    while store.counts().total < MANY as u64 {
        yield_now().await;
    }
    assert_eq!(address.len(), 1);
    tree.stop("enough").await.unwrap();
    assert_eq!(store.counts().total as usize, MANY + 1);
}

#[tokio::test(start_paused = true)]
async fn a_supervisor_ends_after_its_last_letter() {
    let store = DeadLetterStore::metrics_only();
    let (_address, tree) = crowded(&store).await;
    tree.stop("enough").await.unwrap();
    assert_eq!(store.counts().total as usize, MANY);

    // And so does one that is dropped.
    let (address, root) = self::tree(&store);
    let running = tokio::spawn(root.run());
    settle().await;
    (0..MANY).for_each(|_| address.try_send(Note(1)).unwrap());
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    assert_eq!(store.counts().total as usize, 2 * MANY);
}

#[tokio::test(start_paused = true)]
async fn calls_are_served_between_the_answers_to_callers_that_wait_for_one_child() {
    let [called, answered] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
    let release = Arc::new(Notify::new());
    let released = Arc::clone(&release);
    let stubborn = worker("stubborn", move |_ctx| {
        let released = Arc::clone(&released);
        async move { released.notified().await }
    });
    let tree = app().child(stubborn.shutdown(Shutdown::Infinity)).build().unwrap();
    let tree = tree.start().await.unwrap();
    for _ in 0..MANY {
        let (tree, called, answered) = (tree.clone(), Arc::clone(&called), Arc::clone(&answered));
        tokio::spawn(async move {
            called.fetch_add(1, Ordering::SeqCst);
            tree.stop_child("stubborn").await.unwrap();
            answered.fetch_add(1, Ordering::SeqCst);
        });
    }
    while called.load(Ordering::SeqCst) < MANY {
        yield_now().await;
    }
    assert_eq!(tree.otp().count_children().await.unwrap().active, 1, "all of them wait for it");
    release.notify_one();
    while answered.load(Ordering::SeqCst) == 0 {
        yield_now().await;
    }

    assert_eq!(tree.otp().count_children().await.unwrap().active, 0);

    let before = answered.load(Ordering::SeqCst);
    assert!(before < MANY, "{before}");
    while answered.load(Ordering::SeqCst) < MANY {
        yield_now().await;
    }
    tree.stop("enough").await.unwrap();
}
