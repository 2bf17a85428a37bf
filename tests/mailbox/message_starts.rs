//! Children that are started by a message.

use verger::mailbox::Drain;
use verger::policy::{Jitter, StartCause};
use verger::{Lifecycle, RestartType};

use super::*;

/// A child that is started by messages, and not restarted after a normal end.
async fn tree(restart: RestartType) -> Tree {
    let treat = |spec: ChildSpec| spec.restart(restart).start_on_message();
    Tree::with(Reader::new(), 1000, |it| it, treat).await
}

#[tokio::test(start_paused = true)]
async fn a_child_started_by_messages_is_not_started_with_its_supervisor() {
    let tree = tree(RestartType::Transient).await;
    assert!(tree.log().is_empty());
    let info = tree.handle.which_child("reader").await.unwrap();
    assert_eq!((info.lifecycle, info.why), (Lifecycle::Discovered, Some("waits for a message")));

    tree.send([Note(1)]);
    tree.pass(ms(50)).await;
    assert_eq!(tree.log(), ["start#1", "1#1"]);
}

#[tokio::test(start_paused = true)]
async fn seed4_20_a_child_that_is_never_restarted_is_started_by_the_next_message() {
    let never = verger::policy::Trigger::from(RestartType::Transient)
        .on(verger::ExitKind::Failed, verger::policy::OnExit::Leave);
    for restart in [RestartType::Temporary.into(), never] {
        // A normal exit, and a failure, which has a backoff of a second.
        for (end, starts) in [(End, 200), (Fail, 1000)] {
            let treat = |spec: ChildSpec| spec.restart(restart.clone()).start_on_message();
            let tree = Tree::with(Reader::new(), 1000, |it| it.drain(Drain::AtStart), treat).await;
            tree.reader.timed();
            tree.send([end]);
            tree.pass(ms(200)).await;
            assert_eq!(tree.log(), ["0: start#1"], "it has exited, and is not restarted");

            tree.send([Note(1)]);
            settle().await;
            tree.pass(secs(60)).await;
            assert_eq!(tree.log(), [format!("{starts}: start#2"), format!("{starts}: 1#2")]);
            tree.handle.stop("enough").await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn seed4_20_without_a_message_a_child_that_is_never_restarted_stays_down() {
    let tree = tree(RestartType::Temporary).await;
    tree.send([Fail]);
    tree.pass(secs(60)).await;
    assert_eq!(tree.log(), ["start#1"]);

    tree.reader.timed();
    tree.send([Note(1)]);
    settle().await;
    assert_eq!(tree.log(), ["0: start#2"], "its backoff is over");
}

#[tokio::test(start_paused = true)]
async fn seed4_20_a_temporary_child_that_failed_is_stopped_and_keeps_its_place() {
    let tree = tree(RestartType::Temporary).await;
    tree.send([Fail]);
    tree.pass(secs(60)).await;
    let info = tree.handle.which_child("reader").await.unwrap();
    assert_eq!((info.lifecycle, info.why), (Lifecycle::Stopped, Some("not restarted")));
    assert!(!tree.address.is_closed());

    // Until it is deleted.
    tree.handle.otp().delete_child("reader").await.unwrap();
    assert!(tree.handle.which_child("reader").await.is_err());
    assert!(tree.address.is_closed());
}

#[tokio::test(start_paused = true)]
async fn seed4_20_under_the_preset_of_elfo_a_message_starts_a_child_that_has_ended() {
    let (address, mailbox) = mailbox();
    let reader = Reader::new();
    let app = Supervisor::builder("app").preset(verger::policy::Preset::elfo());
    let app = app.child(reader.spec(mailbox.drain(Drain::AtStart)).start_on_message());
    let app = app.build().unwrap().start().await.unwrap();
    reader.timed();
    for incarnation in 1..=3 {
        // Without waiting for a backoff: each message is sent at the instant of the failure before it.
        address.try_send(Note(1)).unwrap();
        address.try_send(Fail).unwrap();
        settle().await;
        let read = [format!("0: start#{incarnation}"), format!("0: 1#{incarnation}")];
        assert_eq!(reader.log(), read);
    }
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_temporary_child_is_forgotten_with_its_mailbox_under_the_preset_of_otp() {
    let (address, mailbox) = mailbox();
    let reader = Reader::new();
    let app = Supervisor::builder("app").preset(verger::policy::Preset::otp());
    let spec = reader.spec(mailbox).start_on_message().restart(RestartType::Temporary);
    let app = app.child(spec).build().unwrap().start().await.unwrap();
    address.try_send(End).unwrap();
    settle().await;
    assert!(app.which_child("reader").await.is_err());
    assert!(address.is_closed());
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_75_a_child_that_has_ended_is_started_by_a_message() {
    let tree = tree(RestartType::Transient).await;
    tree.send([End]);
    tree.pass(secs(9)).await;
    assert_eq!(tree.log(), ["start#1"]);
    assert!(!tree.address.is_closed());

    assert_eq!(text_of(tree.address.ask(|reply| Ask(1, reply)).await), "1 by 2");
}

#[tokio::test(start_paused = true)]
async fn kin_74_a_child_that_fails_at_each_message_runs_again_after_each_doubled_delay() {
    let (address, mailbox) = mailbox();
    let reader = Reader::new();
    let wait = Backoff::exponential(secs(5), secs(30)).jitter(Jitter::None);
    let spec = reader.spec(mailbox).start_on_message().backoff(wait);
    let app = Supervisor::builder("app").unlimited_restarts().child(spec);
    let tree = app.build().unwrap().start().await.unwrap();
    reader.timed();

    address.try_send(Fail).unwrap();
    for wait in [5, 10, 20, 30] {
        tokio::time::sleep(secs(wait) + ms(50)).await;
        settle().await;
        address.try_send(Fail).unwrap();
        settle().await;
    }

    let starts =
        ["0: start#1", "5050: start#2", "15050: start#3", "35100: start#4", "65150: start#5"];
    assert_eq!(reader.log(), starts);
    tree.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn many_senders_never_start_two_incarnations() {
    let tree = tree(RestartType::Transient).await;
    let senders = (0..100).map(|n| {
        let address = tree.address.clone();
        tokio::spawn(async move { address.send(Note(n)).await })
    });
    for sender in senders.collect::<Vec<_>>() {
        sender.await.unwrap().unwrap();
    }
    tree.pass(secs(1)).await;

    let log = tree.log();
    assert_eq!((log.len(), log.iter().filter(|it| it.starts_with("start")).count()), (101, 1));
}

#[tokio::test(start_paused = true)]
async fn messages_not_read_at_its_end_start_the_child_again() {
    let tree = tree(RestartType::Transient).await;
    tree.send([End, Note(1)]);
    tree.pass(ms(100)).await;
    assert_eq!(tree.log(), ["start#1", "start#2", "1#2"]);
}

#[tokio::test(start_paused = true)]
async fn seed4_30_a_child_sees_why_it_was_started() {
    assert_eq!(causes_of(false).await, [StartCause::Initial, StartCause::Restart]);
    assert_eq!(causes_of(true).await, [StartCause::OnMessage, StartCause::Restart]);
}

#[tokio::test(start_paused = true)]
async fn kin_77_a_child_sees_whether_its_supervisor_a_message_or_a_restart_started_it() {
    assert_eq!(causes_of(false).await, [StartCause::Initial, StartCause::Restart]);
    assert_eq!(causes_of(true).await, [StartCause::OnMessage, StartCause::Restart]);
}

/// Returns the start causes of a child that fails once.
async fn causes_of(on_message: bool) -> Vec<StartCause> {
    let (address, mailbox) = mailbox::<()>();
    let (tx, mut rx) = tokio::sync::mpsc::unbounded_channel();
    let spec = worker_with_mailbox("reader", mailbox, move |ctx: Context, mut inbox: Inbox<()>| {
        let _ = tx.send(ctx.start_cause());
        async move {
            inbox.recv().await;
            if ctx.incarnation() == 1 { Exit::Err("once".into()) } else { Ok(()) }
        }
    });
    let spec = if on_message { spec.start_on_message() } else { spec };
    let tree = app().child(spec).build().unwrap().start().await.unwrap();
    address.try_send(()).unwrap();
    tokio::time::sleep(WAIT + ms(50)).await;
    settle().await;
    tree.stop("enough").await.unwrap();
    std::iter::from_fn(|| rx.try_recv().ok()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_child_that_fails_without_reading_is_started_once_per_message() {
    // The child isn't restarted, and the message would start it again and again, at once.
    let never = verger::policy::Trigger::from(RestartType::Transient)
        .on(verger::ExitKind::Failed, verger::policy::OnExit::Leave);
    let treat = |spec: ChildSpec| spec.restart(never).start_on_message();
    let mut tree = Tree::with(Reader::new(), 1000, |it| it, treat).await;
    tree.reader.starts([Begin::Fail(Duration::ZERO); 2]);
    let request = tokio::spawn({
        let address = tree.address.clone();
        async move { text_of(address.ask(|reply| Ask(1, reply)).await) }
    });
    settle().await;

    assert_eq!(tree.log(), ["start#1"]);
    assert_eq!(tree.letters(), ["handler_error: 1?"]);
    let text = "the question to `app/reader` was not delivered: handler_error";
    assert_eq!(request.await.unwrap(), text, "the caller gets the error");
    for (n, log) in [(2, vec!["start#2"]), (3, vec!["start#3", "3#3"])] {
        tree.send([Note(n)]);
        tree.pass(WAIT - ms(300)).await;
        assert_eq!(tree.log(), [""; 0], "its backoff isn't over");
        tree.pass(ms(400)).await;
        assert_eq!(tree.log(), log, "the next message starts it again");
    }
}

#[tokio::test(start_paused = true)]
async fn a_manually_stopped_child_is_not_started_by_a_message() {
    let tree = tree(RestartType::Transient).await;
    tree.send([Note(1)]);
    tree.pass(ms(50)).await;
    tree.handle.stop_child("reader").await.unwrap();

    assert!(tree.address.try_send(Note(2)).is_err());
    tree.pass(secs(1)).await;
    assert_eq!(tree.log(), ["start#1", "1#1", "none#1"]);
}

#[tokio::test(start_paused = true)]
async fn a_child_without_a_mailbox_cannot_be_started_by_messages() {
    let spec = verger::worker("deaf", async |_| {}).start_on_message();
    let error = app().child(spec).build().unwrap_err();
    assert_eq!(
        error.to_string(),
        "`app/deaf` has `start_on_message()`, but no mailbox; make the child with \
         `worker_with_mailbox` or `child_with_mailbox`"
    );
}

#[tokio::test(start_paused = true)]
async fn a_dynamic_child_can_be_started_by_messages() {
    let dynamic = verger::DynamicSupervisor::builder("conns");
    let tree = app().child(dynamic).build().unwrap().start().await.unwrap();
    let (address, mailbox) = mailbox();
    let reader = Reader::new();
    let spec = reader.spec(mailbox).start_on_message().restart(RestartType::Transient);
    let conns = tree.supervisor("conns").await.unwrap();
    conns.start_child(spec).await.unwrap();
    settle().await;
    assert!(reader.log().is_empty());

    for incarnation in 1..=2 {
        address.try_send(Note(7)).unwrap();
        address.try_send(End).unwrap();
        tokio::time::sleep(ms(50)).await;
        settle().await;
        assert_eq!(reader.log(), [format!("start#{incarnation}"), format!("7#{incarnation}")]);
    }
    assert_eq!(address.path().unwrap().as_str(), "app/conns/reader#1");
    tree.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_started_by_messages_gets_messages_sent_while_its_supervisor_is_down() {
    // Whatever the rule for messages that arrive while the child is down.
    let (address, mailbox) = mailbox();
    let reader = Reader::new();
    let spec = reader.spec(mailbox.while_down(verger::mailbox::WhileDown::Drop)).start_on_message();
    let ingest = Supervisor::builder("ingest").restarts(0, secs(60)).child(spec);
    let handle = app().child(ingest).build().unwrap().start().await.unwrap();
    let letters = handle.dead_letters();
    let mut tree = Tree::of(reader, address, handle, letters);
    tree.send([Fail]);
    tree.pass(ms(50)).await;
    assert_eq!(tree.letters(), ["gave_up: nothing"], "its supervisor is down as well");

    tree.send([Note(1)]);
    tree.pass(WAIT + ms(50)).await;

    assert_eq!(tree.log(), ["start#1", "start#1", "1#1"]);
    assert!(tree.letters().is_empty());
}
