//! A hundred thousand of everything: messages, failures, calls, letters, statuses, subscribers that
//! don't read.
//!
//! Memory stays within a documented bound: the capacity of a mailbox, of a store, and 1024 events or
//! letters behind a subscription. The bound is counted: each payload holds a clone of an `Arc`. The tree
//! answers meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::task::{JoinSet, unconstrained};
use tokio::time::sleep;
use tracing::level_filters::LevelFilter;
use verger::dead_letter::DeadLetterStore;
use verger::mailbox::{Inbox, Overflow, Reply};
use verger::{
    Backoff, Context, DynamicSupervisor, Exit, RestartType, mailbox_with_capacity, worker,
    worker_with, worker_with_mailbox,
};

use crate::log::Log;
use crate::probe::{assert_works, in_time, poll_once, start, tree};

const MANY: usize = 100_000;
/// How many items a subscription may be behind.
const BEHIND: usize = 1024;

#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_messages_arrive_in_order_within_the_capacity() {
    let (address, inbox) = mailbox_with_capacity::<usize>(10);
    let got = Arc::<AtomicU32>::default();
    let read = Arc::clone(&got);
    let child = worker_with_mailbox("reader", inbox, move |_ctx, mut inbox: Inbox<usize>| {
        let read = Arc::clone(&read);
        async move {
            while let Some(message) = inbox.recv().await {
                assert_eq!(message, read.fetch_add(1, Ordering::Relaxed) as usize);
            }
        }
    });
    let app = start(tree().child(child)).await;
    for message in 0..MANY {
        address.send(message).await.unwrap();
        assert!(address.len() <= 10);
        if message % 10_000 == 0 {
            in_time(app.which_child("reader"), "a call").await.unwrap();
        }
    }
    in_time(
        async {
            while !address.is_empty() {
                tokio::task::yield_now().await
            }
        },
        "reader",
    )
    .await;
    assert_eq!(got.load(Ordering::Relaxed) as usize, MANY);
    assert_works(&app, "messages").await;
}

#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_senders_that_give_up_leave_nothing() {
    let (address, inbox) = mailbox_with_capacity::<Arc<()>>(10);
    let never = async |ctx: Context, _inbox: Inbox<Arc<()>>| ctx.cancelled().await;
    let app = start(tree().child(worker_with_mailbox("never", inbox, never))).await;
    let held = Arc::new(());
    let mut waiting = Vec::new();
    // Otherwise most sends would find no budget, and wouldn't begin to wait.
    unconstrained(async {
        for _ in 0..MANY {
            drop(address.try_send(Arc::clone(&held)));
            poll_once(address.send(Arc::clone(&held)));
            waiting.push(Box::pin(address.send(Arc::clone(&held))));
            poll_once(waiting.last_mut().unwrap().as_mut());
        }
    })
    .await;
    in_time(app.which_child("never"), "a call").await.unwrap();
    drop(waiting);
    assert_eq!((Arc::strong_count(&held), address.len()), (11, 10));
    assert_works(&app, "senders").await;
    assert_eq!(Arc::strong_count(&held), 1);
}

#[tokio::test(start_paused = true)]
async fn of_a_hundred_thousand_letters_the_last_are_kept_and_the_first_are_logged() {
    let log = Log::at(LevelFilter::DEBUG);
    let store = DeadLetterStore::ring(100);
    let (address, inbox) = mailbox_with_capacity::<Arc<()>>(1);
    let never = async |ctx: Context, _inbox: Inbox<Arc<()>>| ctx.cancelled().await;
    let never = worker_with_mailbox("never", inbox.overflow(Overflow::DropNewest), never);
    let app = start(tree().dead_letter_store(&store).child(never)).await;
    log.lines();
    let subscriptions: Vec<_> = (0..100).map(|_| app.dead_letters()).collect();
    let held = Arc::new(());
    for _ in 0..=MANY {
        address.try_send(Arc::clone(&held)).unwrap();
        // The store's are among the subscription's. One message is in the mailbox.
        assert!(Arc::strong_count(&held) <= 2 + BEHIND);
    }
    // One letter is about the child that was given up.
    assert_eq!((store.entries().len(), store.counts().total), (100, MANY as u64 + 1));
    assert_eq!(log.lines().len(), 10, "the rest is counted");
    for mut letters in subscriptions {
        assert!(letters.try_next().is_some());
        assert_eq!(letters.missed(), (MANY - BEHIND) as u64);
    }
    assert!(Arc::strong_count(&held) <= 102);
    assert_works(&app, "letters").await;
}

#[tokio::test(start_paused = true)]
async fn calls_are_answered_between_a_hundred_thousand_failures_and_events_nobody_reads() {
    const FAILURES: u32 = MANY as u32;
    let runs = Arc::<AtomicU32>::default();
    let fails = worker_with("fails", Arc::clone(&runs), async |ctx: Context, runs| -> Exit {
        let runs: Arc<AtomicU32> = runs;
        if runs.fetch_add(1, Ordering::Relaxed) < FAILURES {
            return Err("again".into());
        }
        ctx.cancelled().await;
        Ok(())
    });
    let app = start(tree()).await;
    let subscriptions: Vec<_> = (0..1_000).map(|_| app.events()).collect();
    let mut statuses = Vec::new();
    for _ in 0..100 {
        statuses.push(app.subscribe_status().await.unwrap());
    }
    app.start_child(fails.backoff(Backoff::none())).await.unwrap();
    let (mut last, mut most, mut calls) = (0, 0, 0);
    while last < FAILURES {
        app.which_child("sibling").await.unwrap();
        calls += 1;
        let now = runs.load(Ordering::Relaxed);
        most = most.max(now - last);
        last = now;
    }
    assert!(calls >= 1_000 && most <= 1_000, "{calls} calls, at most {most} failures between two");
    for mut events in subscriptions {
        assert!(events.try_next().is_some() && events.missed() > u64::from(FAILURES));
    }
    assert_works(&app, "failures").await;
}

#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_calls_at_once_are_answered() {
    let (address, inbox) = mailbox_with_capacity::<Reply<u32>>(MANY);
    let child = worker_with_mailbox("answers", inbox, async |_ctx, mut inbox| {
        while let Some(reply) = inbox.recv().await {
            let reply: Reply<u32> = reply;
            reply.send(1);
        }
    });
    let app = start(tree().child(child)).await;
    let mut calls = JoinSet::new();
    for number in 0..MANY / 2 {
        // This one is not awaited.
        poll_once(app.which_child("active"));
        let (app, address) = (app.clone(), address.clone());
        calls.spawn(async move {
            match number % 4 {
                0 => app.which_child("active").await.is_ok(),
                1 => app.which_child("nothing").await.is_err(),
                2 => app.otp().count_children().await.is_ok(),
                _ => address.ask(|reply| reply).await == Ok(1),
            }
        });
    }
    while let Some(answered) = calls.join_next().await {
        assert!(answered.unwrap());
    }
    assert_works(&app, "calls").await;
}

#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_signals_of_a_child_are_one_status() {
    let signals = worker("signals", async |ctx: Context| {
        for number in 0..MANY {
            ctx.set_status(format!("number {number}"));
            ctx.ready();
            ctx.report_healthy();
            drop(ctx.token());
        }
        ctx.cancelled().await;
    });
    let app = start(tree().child(signals)).await;
    let status = app.which_child("signals").await.unwrap().status;
    assert_eq!(status.as_deref(), Some("number 99999"));
    assert_works(&app, "signals").await;
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_children_that_come_and_go_leave_nothing() {
    let held = Arc::new(());
    let app = start(tree().child(DynamicSupervisor::builder("conns").unlimited_restarts())).await;
    let conns = app.supervisor("conns").await.unwrap();
    let _events = conns.events();
    for _ in 0..MANY / 10 {
        let state = Arc::clone(&held);
        let conn = worker_with("conn", state, async |ctx: Context, _state| -> Exit {
            if ctx.path().name().ends_with('7') {
                panic!("on purpose");
            }
            Err("on purpose".into())
        });
        conns.start_child(conn.restart(RestartType::Temporary)).await.unwrap();
    }
    sleep(Duration::from_secs(100)).await;
    assert_eq!(conns.otp().count_children().await.unwrap().specs, 0);
    assert_eq!(Arc::strong_count(&held), 1);
    assert_works(&app, "children").await;
}
