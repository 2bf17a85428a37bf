//! Mailboxes of children that are stopping.

use verger::mailbox::Closing;
use verger::{Strategy, worker};

use super::*;
use crate::common::killed;

#[tokio::test(start_paused = true)]
async fn seed4_44_a_mailbox_closed_at_once_yields_its_messages_and_then_the_end() {
    let mut tree = Tree::new(|mailbox| mailbox).await;
    tree.send([Note(1), Note(2), Note(3)]);
    // The reader hasn't been polled yet.
    tree.handle.stop_child("reader").await.unwrap();

    assert_eq!(tree.log(), ["start#1", "1#1", "2#1", "3#1", "none#1"]);
    assert!(tree.address.try_send(Note(4)).is_err());
    assert!(tree.letters().is_empty());
}

#[tokio::test(start_paused = true)]
async fn seed4_44_a_closed_mailbox_accepts_nothing_while_the_child_reads_the_rest() {
    let (address, mailbox) = mailbox::<u32>();
    let reader = Reader::new();
    let log = reader.clone();
    let spec =
        worker_with_mailbox("reader", mailbox, move |ctx: Context, mut inbox: Inbox<u32>| {
            let log = log.clone();
            async move {
                while let Some(n) = inbox.recv().await {
                    tokio::time::sleep(secs(1)).await;
                    log.say(&n.to_string(), &ctx);
                }
            }
        });
    let tree = app().child(spec).build().unwrap().start().await.unwrap();
    (1..=3).for_each(|n| address.try_send(n).unwrap());
    settle().await;
    let stopping = tokio::spawn({
        let tree = tree.clone();
        async move { tree.stop("enough").await }
    });
    tokio::time::sleep(ms(1500)).await;

    assert!(address.is_closed());
    assert!(address.try_send(4).is_err());
    stopping.await.unwrap().unwrap();
    assert_eq!(reader.log(), ["1#1", "2#1", "3#1"]);
}

#[tokio::test(start_paused = true)]
async fn seed4_45_a_mailbox_left_open_is_closed_by_its_child() {
    let (address, mailbox) = mailbox::<u32>();
    let reader = Reader::new();
    let log = reader.clone();
    let run = move |ctx: Context, mut inbox: Inbox<u32>| {
        let log = log.clone();
        async move {
            let mut stops = false;
            loop {
                tokio::select! {
                    biased;
                    () = ctx.cancelled(), if !stops => {
                        stops = true;
                        log.say("to stop", &ctx);
                    }
                    message = inbox.recv() => match message {
                        Some(0) => inbox.close(),
                        Some(n) => log.say(&n.to_string(), &ctx),
                        None => break log.say("none", &ctx),
                    },
                }
            }
        }
    };
    let spec = worker_with_mailbox("reader", mailbox.closing(Closing::Manually), run);
    let tree = app().child(spec).build().unwrap().start().await.unwrap();
    settle().await;
    let stopping = tokio::spawn({
        let tree = tree.clone();
        async move { tree.stop("enough").await }
    });
    settle().await;

    address.try_send(1).unwrap();
    settle().await;
    assert_eq!(reader.log(), ["to stop#1", "1#1"]);
    address.try_send(0).unwrap();
    address.try_send(2).unwrap();
    settle().await;
    assert!(address.try_send(3).is_err());
    stopping.await.unwrap().unwrap();
    assert_eq!(reader.log(), ["2#1", "none#1"]);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_stops_with_its_group_leaves_the_rest_to_its_next_incarnation() {
    let reader = Reader::new();
    let (address, mailbox) = mailbox();
    let (fail, failing) = tokio::sync::mpsc::channel::<()>(1);
    let failing = Arc::new(tokio::sync::Mutex::new(failing));
    let other = worker("other", move |_| {
        let failing = Arc::clone(&failing);
        async move {
            failing.lock().await.recv().await;
            Err::<(), _>("failed on request")
        }
    });
    let group = app().strategy(Strategy::OneForAll).child(reader.spec(mailbox)).child(other);
    let tree = group.build().unwrap().start().await.unwrap();
    let mut letters = tree.dead_letters();
    settle().await;
    reader.log();

    fail.send(()).await.unwrap();
    settle().await;
    assert_eq!(reader.log(), ["none#1"], "its mailbox has ended");
    address.try_send(Note(1)).unwrap();
    tokio::time::sleep(WAIT + ms(50)).await;
    settle().await;

    assert_eq!(reader.log(), ["start#2", "1#2"]);
    tree.stop("enough").await.or_else(killed).unwrap();
    assert!(letters.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_manually_renewed_child_leaves_the_rest_to_its_next_incarnation() {
    let change =
        |mailbox: Mailbox<Message>| mailbox.hold_until(verger::mailbox::Drain::After(secs(9)));
    let tree = Tree::with(Reader::new(), 1000, change, |spec| spec).await;
    tree.send([Note(1), Note(2)]);
    tree.handle.restart("reader").await.unwrap();
    tree.pass(secs(9)).await;

    assert_eq!(tree.log(), ["start#1", "none#1", "start#2", "1#2", "2#2"]);
}

#[tokio::test(start_paused = true)]
async fn messages_not_read_within_the_grace_become_dead_letters() {
    let (address, mailbox) = mailbox::<u32>();
    let spec = worker_with_mailbox("reader", mailbox, async |_ctx, _inbox| -> Exit {
        std::future::pending().await
    });
    let tree = app().child(spec).build().unwrap().start().await.unwrap();
    let mut letters = tree.dead_letters();
    address.try_send(1).unwrap();
    settle().await;

    tree.stop_child("reader").await.unwrap();

    let letter = letters.try_next().unwrap();
    assert_eq!(
        (letter.reason.to_string(), letter.take()),
        ("undelivered_at_stop".into(), Some(1_u32))
    );
    tree.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stopping_child_that_returns_a_message_gets_no_more() {
    let (address, mailbox) = mailbox::<u32>();
    let spec = worker_with_mailbox("reader", mailbox, async |ctx: Context, mut inbox| -> Exit {
        ctx.cancelled().await;
        while let Some(delivery) = inbox.deliver().await {
            drop(delivery);
        }
        Ok(())
    });
    let tree = app().child(spec).build().unwrap().start().await.unwrap();
    let mut letters = tree.dead_letters();
    address.try_send(1).unwrap();
    settle().await;

    let began = Instant::now();
    tree.stop_child("reader").await.unwrap();

    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(letters.try_next().unwrap().reason.to_string(), "undelivered_at_stop");
    tree.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_that_closes_and_ends_takes_nothing_until_the_next_incarnation() {
    let (address, mailbox) = mailbox::<u32>();
    let spec = worker_with_mailbox("reader", mailbox, async |_ctx, mut inbox| -> Exit {
        while let Some(n) = inbox.recv().await {
            if n == 0 {
                inbox.close();
            }
        }
        Ok(())
    });
    let tree = app().child(spec).build().unwrap().start().await.unwrap();
    settle().await;
    address.try_send(0).unwrap();
    settle().await;
    assert!(address.try_send(1).is_err());

    tokio::time::sleep(WAIT).await;
    settle().await;
    assert!(address.try_send(1).is_ok());
    tree.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn messages_left_for_a_child_that_is_given_up_become_dead_letters() {
    let reader = Reader::new();
    let (address, mailbox) = mailbox();
    let stays = Supervisor::builder("app")
        .restarts(0, secs(60))
        .on_exhausted(verger::policy::OnExhausted::StopChild)
        .child(reader.spec(mailbox));
    let handle = stays.build().unwrap().start().await.unwrap();
    let letters = handle.dead_letters();
    settle().await;
    let mut tree = Tree::of(reader, address, handle, letters);

    tree.send([Fail, Note(1)]);
    settle().await;

    assert_eq!(tree.letters(), ["gave_up: nothing", "gave_up: 1"]);
    assert!(tree.address.is_closed());

    // Restarted manually, and stopped manually.
    tree.handle.resume("reader").await.unwrap();
    settle().await;
    tree.send([Fail]);
    settle().await;
    tree.letters();
    tree.handle.resume("reader").await.unwrap();
    settle().await;
    tree.send([Note(2)]);
    settle().await;
    tree.handle.kill("reader").await.unwrap();
    settle().await;
    let left = tree.letters();
    assert!(left.iter().all(|it| !it.ends_with(": 2")), "it was read: {left:?}");
}

#[tokio::test(start_paused = true)]
async fn messages_left_for_a_child_that_is_not_restarted_become_dead_letters() {
    let treat = |spec: ChildSpec| spec.restart(verger::RestartType::Transient);
    let mut tree = Tree::with(Reader::new(), 1000, |it| it, treat).await;
    tree.send([End, Note(1)]);
    settle().await;

    assert_eq!(tree.letters(), ["undelivered_at_stop: 1"]);
    assert!(tree.address.is_closed());
}

#[tokio::test(start_paused = true)]
async fn kin_58_a_child_that_was_sent_its_final_message_is_not_restarted() {
    let is_final = |message: &Message| matches!(message, Note(0));
    for (sends, restarted) in [(vec![Note(1), Fail], true), (vec![Note(0), Fail], false)] {
        let mut tree = Tree::new(|mailbox| mailbox.final_message(is_final)).await;
        tree.send(sends);
        tree.pass(WAIT).await;
        let log = tree.log();
        assert_eq!(log.last().unwrap() == "start#2", restarted, "{log:?}");
        assert_eq!(tree.address.is_closed(), !restarted);
        tree.letters();
    }

    // While the child is down, the final message doesn't start it.
    let mut tree = Tree::new(|mailbox| mailbox.final_message(is_final)).await;
    tree.fail().await;
    tree.send([Note(0)]);
    tree.pass(WAIT).await;
    assert_eq!(tree.log(), ["start#1"]);
    assert_eq!(tree.letters(), ["undelivered_at_stop: 0"]);
}

/// In Pekko, a message from the child to its parent reaches the parent of its backoff supervisor. Here,
/// a child sends to an address, such as that of a child of its supervisor's parent.
#[tokio::test(start_paused = true)]
async fn kin_62_what_a_child_writes_upwards_passes_its_supervisor_by_in_every_incarnation() {
    let above = Reader::new();
    let (up, mailbox_above) = mailbox();
    let ingest = Supervisor::builder("ingest").child(worker("child", move |ctx: Context| {
        let up = up.clone();
        async move {
            assert_eq!(ctx.parent().path().as_str(), "app/ingest");
            up.send(Note(ctx.incarnation())).await.map_err(|error| error.to_string())?;
            let answer = up.ask(|reply| Ask(ctx.incarnation(), reply)).await;
            assert_eq!(text_of(answer), format!("{} by 1", ctx.incarnation()));
            ctx.cancelled().await;
            Exit::Ok(())
        }
    }));
    let defaults = |child: verger::ChildDefaults| child.backoff(Backoff::constant(WAIT));
    let ingest = ingest.unlimited_restarts().defaults(defaults);
    let tree = app().child(above.spec(mailbox_above)).child(ingest);
    let tree = tree.build().unwrap().start().await.unwrap();
    let mut letters = tree.dead_letters();
    settle().await;
    assert_eq!(above.log(), ["start#1", "1#1", "1?#1"]);

    // The child's next incarnation, and the first below the supervisor's next incarnation.
    tree.kill("ingest/child").await.unwrap();
    tokio::time::sleep(WAIT).await;
    settle().await;
    assert_eq!(above.log(), ["2#1", "2?#1"]);
    tree.kill("ingest").await.unwrap();
    tokio::time::sleep(WAIT).await;
    settle().await;
    assert_eq!(tree.which_child("ingest").await.unwrap().incarnation, 2);
    assert_eq!(above.log(), ["1#1", "1?#1"]);
    assert!(letters.try_next().is_none());
    tree.stop("enough").await.unwrap();
}
