//! Messages that `recv` returned to an incarnation that failed.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::AbortHandle;
use verger::dead_letter::{DeadLetterReason, DeadLetterStore, ReplayError};
use verger::mailbox::AskError;
use verger::status::EventKind;
use verger::{ExitReason, HealthCheck, Shutdown, worker, worker_with_mailbox};

use super::*;

/// A tree whose reader calls `run` with its inbox.
async fn tree_of<Fut: Future<Output = Exit> + Send + 'static>(
    run: impl Fn(Context, Inbox<Message>) -> Fut + Send + Sync + 'static,
) -> Tree {
    tree_with(run, |spec| spec).await
}

async fn tree_with<Fut: Future<Output = Exit> + Send + 'static>(
    run: impl Fn(Context, Inbox<Message>) -> Fut + Send + Sync + 'static,
    treat: impl FnOnce(ChildSpec) -> ChildSpec,
) -> Tree {
    let (address, mailbox) = mailbox();
    let spec = worker_with_mailbox("reader", mailbox, run).shutdown(Shutdown::from(ms(100)));
    let app = app().leak_timeout(ms(100)).child(treat(spec)).build().unwrap();
    let handle = app.start().await.unwrap();
    let letters = handle.dead_letters();
    settle().await;
    Tree::of(Reader::new(), address, handle, letters)
}

#[tokio::test(start_paused = true)]
async fn a_message_in_hand_when_the_child_fails_is_a_letter_without_the_message() {
    let store = DeadLetterStore::default();
    let (address, mailbox) = mailbox();
    let spec = Reader::new().spec(mailbox);
    let app = app().dead_letter_store(&store).child(spec).build().unwrap().start().await.unwrap();
    let mut letters = app.dead_letters();

    address.try_send(Note(1)).unwrap();
    address.try_send(Fail).unwrap();
    settle().await;

    let letter = letters.try_next().unwrap();
    assert!(letters.try_next().is_none(), "the first message was handled");
    assert_eq!(letter.reason, DeadLetterReason::LostInFailure);
    assert_eq!((letter.target.as_str(), letter.incarnation), ("app/reader", 1));
    assert!(letter.event_type.unwrap().ends_with("::Message"));
    assert!(letter.is::<Message>());
    assert!(letter.take::<Message>().is_none());
    let error = letter.error.as_deref();
    assert!(matches!(error, Some(ExitReason::Failed(_))), "{error:?}");

    let entry = store.entries().pop().unwrap();
    let refused = store.replay(entry.id).unwrap_err();
    assert!(matches!(refused, ReplayError::NoPayload { .. }), "{refused}");
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn every_way_to_fail_loses_the_message_in_hand() {
    let mut tree = tree_of(async |ctx: Context, mut inbox: Inbox<Message>| -> Exit {
        match inbox.recv().await {
            Some(Panic) => panic!("by itself"),
            Some(Fail) => Err("by itself".into()),
            // Ignores its cancellation.
            Some(Note(_)) => std::future::pending().await,
            _ => {
                ctx.cancelled().await;
                Ok(())
            }
        }
    })
    .await;
    tree.send([Fail]);
    tree.pass(WAIT + ms(50)).await;
    tree.send([Panic]);
    tree.pass(WAIT + ms(50)).await;
    assert_eq!(tree.lost(), ["#1 failed: by itself", "#2 panicked: by itself"]);

    tree.send([Note(1)]);
    settle().await;
    tree.handle.kill("reader").await.unwrap();
    tree.pass(WAIT + ms(50)).await;
    assert_eq!(tree.lost(), ["#3 aborted"]);

    tree.send([Note(2)]);
    settle().await;
    tree.handle.stop_child("reader").await.unwrap();
    assert_eq!(tree.lost(), ["#4 killed"]);
    assert!(tree.letters().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leaked_child_loses_the_message_in_hand() {
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = Arc::new(Mutex::new(blocked));
    let mut tree = tree_of(move |_ctx, mut inbox: Inbox<Message>| {
        let blocked = Arc::clone(&blocked);
        async move {
            if let Some(Note(_)) = inbox.recv().await {
                let _ = blocked.lock().unwrap().recv();
            }
            Ok(())
        }
    })
    .await;
    tree.address.send(Note(1)).await.unwrap();
    while !tree.address.is_empty() {
        tokio::task::yield_now().await;
    }
    tree.handle.stop_child("reader").await.unwrap();
    assert_eq!(tree.lost(), ["#1 killed"]);

    let mut events = tree.handle.events();
    drop(release);
    while !matches!(events.next().await.unwrap().kind, EventKind::LeakEnded) {}
    tree.handle.stop("enough").await.unwrap();
    assert!(tree.lost().is_empty(), "the end of the leaked task reports nothing more");
}

#[tokio::test(start_paused = true)]
async fn a_clean_exit_and_a_message_that_was_handled_lose_nothing() {
    // Ends normally with a message in hand.
    let mut tree = Tree::new(|mailbox| mailbox).await;
    tree.send([Note(1), End]);
    tree.pass(WAIT + ms(50)).await;
    assert_eq!(tree.log(), ["start#1", "1#1", "start#2"]);

    // Polls its inbox again, and is killed then.
    tree.send([Note(2)]);
    settle().await;
    tree.handle.kill("reader").await.unwrap();
    tree.pass(WAIT + ms(50)).await;
    assert!(tree.lost().is_empty());

    // Returns an answer, and is stopped in time.
    tree.handle.stop("enough").await.unwrap();
    assert!(tree.lost().is_empty() && tree.letters().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_question_in_hand_is_lost_unless_it_was_answered() {
    let mut tree = tree_of(async |_ctx, mut inbox: Inbox<Message>| -> Exit {
        while let Some(message) = inbox.recv().await {
            if let Ask(n, reply) = message {
                if n > 1 {
                    reply.send("an answer".to_owned());
                }
                return Err(format!("question {n}").into());
            }
        }
        Ok(())
    })
    .await;
    let unanswered = tree.address.ask(|reply| Ask(1, reply)).await;
    assert!(matches!(unanswered, Err(AskError::NoReply { .. })), "{unanswered:?}");
    settle().await;
    assert_eq!(tree.lost(), ["#1 failed: question 1"]);

    tree.pass(WAIT + ms(50)).await;
    let answered = tree.address.ask(|reply| Ask(2, reply)).await;
    assert_eq!(answered.unwrap(), "an answer");
    settle().await;
    assert!(tree.lost().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_delivered_message_is_not_lost() {
    let mut tree = Tree::with(Reader::that_acks(), 10, |it| it, |spec| spec).await;
    tree.send([Poison(1)]);
    tree.pass(WAIT + ms(50)).await;
    assert_eq!(tree.log(), ["start#1", "poison 1 try 1#1", "start#2", "poison 1 try 2#2"]);
    assert!(tree.lost().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_child_that_failed_while_it_ran_may_still_finish_its_message() {
    // It is cancelled. The first finishes within its grace, and the second is aborted.
    for (takes, lost) in [(ms(50), vec![]), (ms(200), vec!["#1 aborted"])] {
        let sick = Arc::new(AtomicBool::new(false));
        let probe = Arc::clone(&sick);
        let check = HealthCheck::new(move |_ctx| {
            let sick = probe.load(Ordering::SeqCst);
            async move { if sick { Err("sick") } else { Ok(()) } }
        });
        let mut tree = tree_with(
            move |ctx: Context, mut inbox: Inbox<Message>| async move {
                if inbox.recv().await.is_some() {
                    ctx.cancelled().await;
                    tokio::time::sleep(takes).await;
                }
                Ok(())
            },
            |spec| spec.health_check(check.every(ms(500)).failures(1).restarts()),
        )
        .await;
        tree.send([Note(1)]);
        settle().await;
        sick.store(true, Ordering::SeqCst);
        tree.pass(ms(900)).await;
        assert_eq!(tree.lost(), lost, "after {takes:?}");
        tree.handle.stop("enough").await.unwrap();
    }
}

/// A reader that keeps the first message in hand.
fn holding(mailbox: Mailbox<Message>) -> ChildSpec {
    worker_with_mailbox("reader", mailbox, async |ctx: Context, mut inbox: Inbox<Message>| {
        let _in_hand = inbox.recv().await;
        ctx.set_status("busy");
        std::future::pending::<()>().await;
    })
}

/// Runs a tree, sends a message to its reader, and aborts the root's task.
async fn abort_with_message_in_hand(root: SupervisorBuilder, address: &Address<Message>) {
    let running = tokio::spawn(root.build().unwrap().run());
    settle().await;
    address.try_send(Note(1)).unwrap();
    settle().await;
    assert!(address.is_empty(), "it is in hand");
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    settle().await;
}

#[tokio::test(start_paused = true)]
async fn a_message_in_hand_when_the_root_is_dropped_is_lost() {
    let store = DeadLetterStore::default();
    let (address, mailbox) = mailbox();
    let (tx, rx) = std::sync::mpsc::channel();
    let watcher = worker("watcher", move |ctx: Context| {
        tx.send(ctx.parent().dead_letters()).unwrap();
        async move { ctx.cancelled().await }
    });
    let root = app().dead_letter_store(&store).child(watcher).child(holding(mailbox));

    abort_with_message_in_hand(root, &address).await;

    let mut letters = rx.recv().unwrap();
    let letter = letters.next().await.expect("before the subscription has ended");
    assert_eq!(letter.reason, DeadLetterReason::LostInFailure);
    assert_eq!((letter.target.as_str(), letter.incarnation), ("app/reader", 1));
    assert_eq!(letter.error.unwrap().to_string(), "aborted");
    assert!(letters.next().await.is_none());
    assert_eq!(store.counts().of(DeadLetterReason::LostInFailure), 1);
}

#[tokio::test(start_paused = true)]
async fn so_is_one_further_down_which_only_a_store_and_the_log_learn_of() {
    let store = DeadLetterStore::default();
    let (address, mailbox) = mailbox();
    let below = Supervisor::builder("below").child(holding(mailbox));
    let root = app().dead_letter_store(&store).child(below);

    abort_with_message_in_hand(root, &address).await;

    let [entry] = &store.entries()[..] else { panic!("{:?}", store.entries()) };
    assert_eq!(entry.letter.reason, DeadLetterReason::LostInFailure);
    assert_eq!(entry.letter.target.as_str(), "app/below/reader");
}

#[tokio::test(start_paused = true)]
async fn a_message_in_hand_below_a_supervisor_that_is_aborted_is_a_letter_for_those_above() {
    let (address, mailbox) = mailbox();
    let below = Supervisor::builder("below").child(holding(mailbox).shutdown(secs(100)));
    let below = below.into_child().shutdown(Shutdown::from(ms(100)));
    let app = app().child(below).build().unwrap().start().await.unwrap();
    let mut letters = app.dead_letters();
    settle().await;
    address.try_send(Note(1)).unwrap();
    settle().await;

    app.stop_child("below").await.unwrap();

    let letter = letters.try_next().unwrap();
    assert_eq!(letter.reason, DeadLetterReason::LostInFailure);
    assert_eq!(letter.target.as_str(), "app/below/reader");
    assert!(letters.try_next().is_none());
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_exit_that_was_not_handled_when_the_root_is_dropped_keeps_its_reason() {
    for (fails, lost) in [(true, &["failed: on request"][..]), (false, &[])] {
        let store = DeadLetterStore::default();
        let (address, mailbox) = mailbox();
        let root: Arc<OnceLock<AbortHandle>> = Arc::default();
        let aborted = Arc::clone(&root);
        let run = move |_ctx, mut inbox: Inbox<Message>| {
            let aborted = Arc::clone(&aborted);
            async move {
                inbox.recv().await;
                // The root is dropped in its next turn, which is after the exit.
                aborted.get().expect("it runs").abort();
                if fails { Exit::Err("on request".into()) } else { Ok(()) }
            }
        };
        let spec = worker_with_mailbox("reader", mailbox, run);
        let tree = app().dead_letter_store(&store).child(spec).build().unwrap();
        let running = tokio::spawn(tree.run());
        root.set(running.abort_handle()).unwrap();
        settle().await;
        address.try_send(Note(1)).unwrap();
        assert!(running.await.unwrap_err().is_cancelled());

        let entries = store.entries();
        let errors = entries.iter().map(|it| it.letter.error.as_ref().unwrap().to_string());
        assert_eq!(errors.collect::<Vec<_>>(), lost);
    }
}
