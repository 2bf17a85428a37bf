//! Sends, questions, receives and streams that are dropped after any number of polls.
//!
//! Messages, events, changes and letters are neither lost nor duplicated. A message that was not sent
//! holds no room, a message that was not received counts no attempt, and an answer that is no longer
//! awaited isn't wanted.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;
use verger::mailbox::{Address, Inbox, Mailbox, Overflow, Reply};
use verger::{ChildSpec, Context, SupervisorHandle, mailbox_with_capacity, worker_with_mailbox};

use crate::common::settle;
use crate::probe::{BoxFuture, DROPPED, assert_works, in_time, polled, start, tree};

const SECOND: Duration = Duration::from_secs(1);

// --- Messages ------------------------------------------------------------------------------------

/// Reads a message for each permit of `go`.
fn reader(mailbox: Mailbox<u32>, go: &Arc<Notify>, got: &Got) -> ChildSpec {
    let (go, got) = (Arc::clone(go), Arc::clone(got));
    worker_with_mailbox("reader", mailbox, move |ctx: Context, mut inbox: Inbox<u32>| {
        let (go, got) = (Arc::clone(&go), Arc::clone(&got));
        async move {
            while ctx.run_until_cancelled(go.notified()).await.is_some() {
                got.lock().unwrap().extend(inbox.try_recv());
            }
        }
    })
}

type Got = Arc<Mutex<Vec<u32>>>;

#[tokio::test(start_paused = true)]
async fn a_dropped_send_has_not_sent_and_holds_no_room() {
    for when in DROPPED {
        for polls in 0.. {
            let probe = format!("send, {polls} polls, dropped {when:?}");
            let (address, mailbox) = mailbox_with_capacity(2);
            let (go, got) = (Arc::new(Notify::new()), Got::default());
            let app = start(tree().child(reader(mailbox, &go, &got))).await;
            sleep(SECOND).await;
            (1..=2).for_each(|message| address.try_send(message).unwrap());

            let reads = tokio::spawn({
                let go = Arc::clone(&go);
                async move {
                    sleep(SECOND).await;
                    go.notify_one();
                }
            });
            let sent = polled(address.send(3), polls, when).await;
            reads.await.unwrap();
            settle().await;

            let room = 2 - address.len();
            assert_eq!(room, usize::from(sent.is_none()), "{probe}");
            for message in 4..4 + room as u32 {
                address.try_send(message).unwrap_or_else(|error| panic!("{probe}: {error}"));
            }
            assert!(address.try_send(9).is_err(), "{probe}: there is no more room");
            for _ in 0..3 {
                go.notify_one();
                settle().await;
            }
            let expected = if sent.is_some() { [1, 2, 3] } else { [1, 2, 4] };
            assert_eq!(*got.lock().unwrap(), expected, "{probe}");
            assert_works(&app, &probe).await;
            if sent.is_some() {
                break;
            }
        }
    }
}

/// Answers each question after a second.
fn answers(mailbox: Mailbox<Reply<bool>>, asked: &Arc<AtomicU32>) -> ChildSpec {
    let asked = Arc::clone(asked);
    worker_with_mailbox("answers", mailbox, move |_ctx, mut inbox: Inbox<Reply<bool>>| {
        let asked = Arc::clone(&asked);
        async move {
            while let Some(reply) = inbox.recv().await {
                asked.fetch_add(1, Ordering::Relaxed);
                sleep(SECOND).await;
                reply.send(reply.is_wanted());
            }
        }
    })
}

type Ask = fn(Address<Reply<bool>>) -> BoxFuture<bool>;

#[tokio::test(start_paused = true)]
async fn a_dropped_question_was_sent_if_it_was_polled_and_its_answer_is_not_wanted() {
    let asks: [(&str, Ask); 2] = [
        ("ask", |to| Box::pin(async move { to.ask(|reply| reply).await.unwrap() })),
        ("ask_within", |to| {
            Box::pin(async move { to.ask_within(60 * SECOND, |reply| reply).await.unwrap() })
        }),
    ];
    for ((name, ask), when) in asks.into_iter().flat_map(|it| DROPPED.map(|when| (it, when))) {
        for polls in 0.. {
            let probe = format!("{name}, {polls} polls, dropped {when:?}");
            let (address, mailbox) = mailbox_with_capacity(1);
            let asked = Arc::<AtomicU32>::default();
            let app = start(tree().child(answers(mailbox, &asked))).await;
            let mut letters = app.dead_letters();
            sleep(SECOND).await;

            let answer = polled(ask(address.clone()), polls, when).await;
            sleep(2 * SECOND).await;

            assert_eq!(asked.load(Ordering::Relaxed), u32::from(polls > 0), "{probe}");
            assert!(address.is_empty() && letters.try_next().is_none(), "{probe}");
            assert!(in_time(ask(address), &probe).await, "{probe}");
            assert_works(&app, &probe).await;
            if answer.is_some() {
                break;
            }
        }
    }
}

/// How a child receives a message.
type Receive = fn(&mut Inbox<u32>) -> Pin<Box<dyn Future<Output = Option<u32>> + Send + '_>>;

#[tokio::test(start_paused = true)]
async fn a_dropped_receive_removes_no_message_and_counts_no_attempt() {
    let receives: [(&str, Receive); 2] = [
        ("recv", |inbox| Box::pin(inbox.recv())),
        ("deliver", |inbox| {
            Box::pin(async {
                let delivery = inbox.deliver().await?;
                assert_eq!(delivery.attempt(), 1);
                Some(delivery.ack())
            })
        }),
    ];
    for ((name, receive), when) in
        receives.into_iter().flat_map(|it| DROPPED.map(|when| (it, when)))
    {
        let probe = format!("{name}, dropped {when:?}");
        let (address, mailbox) = mailbox_with_capacity(100);
        let got = Got::default();
        let all = Arc::clone(&got);
        let reader = worker_with_mailbox("reader", mailbox, move |_ctx, mut inbox| {
            let all = Arc::clone(&all);
            async move {
                for polls in (0..3).cycle() {
                    match polled(receive(&mut inbox), polls, when).await {
                        Some(Some(message)) => all.lock().unwrap().push(message),
                        Some(None) => break,
                        None => sleep(Duration::from_millis(1)).await,
                    }
                }
            }
        });
        let app = start(tree().child(reader)).await;
        let mut letters = app.dead_letters();
        for message in 0..50 {
            address.send(message).await.unwrap();
            if message % 3 == 0 {
                sleep(Duration::from_millis(u64::from(message))).await;
            }
        }
        in_time(
            async {
                while !address.is_empty() {
                    sleep(SECOND).await
                }
            },
            &probe,
        )
        .await;

        assert!((0..50).eq(got.lock().unwrap().iter().copied()), "{probe}: {got:?}");
        assert!(letters.try_next().is_none(), "{probe}");
        assert_works(&app, &probe).await;
    }
}

// --- Streams -------------------------------------------------------------------------------------

async fn cause_events(app: SupervisorHandle) {
    for _ in 0..10 {
        app.restart("active").await.unwrap();
        sleep(SECOND).await;
    }
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_dropped_next_loses_no_event_no_change_and_no_letter() {
    for when in DROPPED {
        let (address, mailbox) = mailbox_with_capacity(1);
        let never = worker_with_mailbox(
            "never",
            mailbox.overflow(Overflow::DropNewest),
            async |ctx: Context, _inbox| ctx.cancelled().await,
        );
        let app = start(tree().child(never)).await;
        let (mut events, mut all_events) = (app.events(), app.events());
        let mut letters = app.dead_letters();
        let mut changes = app.subscribe_status().await.unwrap();
        let mut all_changes = app.subscribe_status().await.unwrap();
        let causes = tokio::spawn(cause_events(app));
        (0..5).for_each(|message: u32| address.try_send(message).unwrap());

        let mut seen = (Vec::new(), Vec::new(), Vec::new());
        let mut open = [true; 3];
        for polls in (0..3).cycle() {
            let event = polled(events.next(), polls, when).await;
            let change = polled(changes.next(), polls, when).await;
            let letter = polled(letters.next(), polls, when).await;
            if let Some(it) = &event {
                open[0] = it.is_some();
                seen.0.extend(it.as_ref().map(|event| event.seq));
            }
            if let Some(it) = change {
                open[1] = it.is_some();
                seen.1.extend(it);
            }
            if let Some(it) = &letter {
                open[2] = it.is_some();
                seen.2.extend(it.as_ref().and_then(|letter| letter.take::<u32>()));
            }
            if open == [false; 3] {
                break;
            }
            sleep(Duration::from_millis(1)).await;
        }

        causes.await.unwrap();
        let mut expected = (Vec::new(), Vec::new());
        while let Some(event) = all_events.next().await {
            expected.0.push(event.seq);
        }
        while let Some(change) = all_changes.next().await {
            expected.1.push(change);
        }
        assert_eq!((seen.0, seen.1), expected, "{when:?}");
        // The first was queued, and becomes a letter at the stop.
        assert_eq!(seen.2, [1, 2, 3, 4, 0], "{when:?}");
    }
}
