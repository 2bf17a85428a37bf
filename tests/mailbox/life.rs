//! One address across many incarnations.

use super::*;

#[tokio::test(start_paused = true)]
async fn seed0_03_an_address_survives_three_incarnations_and_every_message_arrives() {
    let tree = Tree::new(|mailbox| mailbox).await;
    for n in 1..=3 {
        tree.send([Note(n)]);
        settle().await;
        tree.fail().await;
        tree.pass(WAIT).await;
    }
    assert_eq!(
        tree.log(),
        ["start#1", "1#1", "start#2", "2#2", "start#3", "3#3", "start#4"],
        "each was read by the incarnation of its time"
    );
}

#[tokio::test(start_paused = true)]
async fn seed0_08_messages_sent_during_the_backoff_are_kept() {
    let mut tree = Tree::new(|mailbox| mailbox).await;
    tree.fail().await;

    tree.send([Note(1), Note(2)]);
    settle().await;
    assert_eq!(tree.log(), ["start#1"]);
    assert_eq!((tree.address.len(), tree.address.capacity()), (2, 1000));

    tree.pass(WAIT + ms(50)).await;
    assert_eq!(tree.log(), ["start#2", "1#2", "2#2"]);
    assert!(tree.letters().is_empty());
}

#[tokio::test(start_paused = true)]
async fn seed0_09_a_request_sent_while_the_child_is_down_is_answered_by_the_next_incarnation() {
    let tree = Tree::new(|mailbox| mailbox).await;
    tree.fail().await;

    let began = Instant::now();
    let answer = tree.address.ask(|reply| Ask(42, reply)).await;

    assert_eq!(answer.unwrap(), "42 by 2");
    assert_eq!(began.elapsed(), WAIT + ms(50), "the wait, and the grace before the stash is read");
}

#[tokio::test(start_paused = true)]
async fn seed0_10_a_restart_cycle_is_spawn_fail_wait_stash_spawn_drain() {
    let tree = Tree::new(|mailbox| mailbox).await;
    let mut events = tree.handle.events();
    tree.reader.timed();
    tree.send([Fail]);
    tree.pass(ms(400)).await;
    tree.send([Note(1)]);
    tree.pass(ms(1000)).await;

    assert_eq!(tree.log(), ["start#1", "1000: start#2", "1050: 1#2"]);
    let received = std::iter::from_fn(|| events.try_next());
    let moves = received.filter_map(|event| match event.kind {
        verger::status::EventKind::Moved { from, to, .. } => {
            Some(format!("{from} → {to} #{}", event.incarnation))
        }
        _ => None,
    });
    assert_eq!(
        moves.collect::<Vec<_>>(),
        [
            "active → errored #1",
            "errored → restarting #1",
            "restarting → resolved #1",
            "resolved → activating #2",
            "activating → active #2",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn messages_not_read_before_a_panic_are_read_by_the_next_incarnation() {
    let tree = Tree::new(|mailbox| mailbox).await;
    tree.send([Panic, Note(1)]);
    tree.pass(WAIT + ms(50)).await;
    assert_eq!(tree.log(), ["start#1", "start#2", "1#2"]);
}

#[tokio::test(start_paused = true)]
async fn messages_sent_before_the_tree_runs_are_read_by_the_first_incarnation() {
    let reader = Reader::new();
    let (address, mailbox) = mailbox();
    let app = app().child(reader.spec(mailbox)).build().unwrap();
    address.try_send(Note(1)).unwrap();
    assert_eq!(address.path(), None);

    let tree = app.start().await.unwrap();
    assert_eq!(address.path().unwrap().as_str(), "app/reader");
    address.try_send(Note(2)).unwrap();
    tokio::time::sleep(ms(50)).await;
    settle().await;

    assert_eq!(reader.log(), ["start#1", "1#1", "2#1"]);
    tree.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_status_shows_the_number_of_queued_messages() {
    let tree = Tree::new(|mailbox| mailbox).await;
    tree.fail().await;
    tree.send([Note(1), Note(2)]);

    let status = tree.handle.status().await.unwrap();
    let mailbox = status.root.children[0].child.mailbox.unwrap();
    assert_eq!((mailbox.len, mailbox.capacity), (2, 1000));
    let text = status.to_string();
    assert!(text.contains("2/1000 messages"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn an_address_outlives_its_tree_and_reports_it_as_closed() {
    let tree = Tree::new(|mailbox| mailbox).await;
    tree.handle.stop("enough").await.unwrap();

    let error = tree.address.try_send(Note(1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the mailbox of `app/reader` is closed: the child is stopping, or is down and will not be restarted"
    );
    assert!(matches!(error.into_message(), Note(1)));
    assert!(tree.address.send(Note(2)).await.is_err(), "and does not hang");
    let answer = tree.address.ask(|reply| Ask(3, reply)).await;
    assert_eq!(answer.unwrap_err().to_string(), error_of_a_closed_mailbox());
}

fn error_of_a_closed_mailbox() -> &'static str {
    "the mailbox of `app/reader` is closed: the child is stopping, or is down and will not be restarted"
}

#[tokio::test(start_paused = true)]
async fn a_manually_restarted_child_has_its_mailbox_again() {
    let mut tree = Tree::new(|mailbox| mailbox).await;
    tree.handle.stop_child("reader").await.unwrap();
    assert!(tree.address.is_closed());
    assert!(tree.address.try_send(Note(1)).is_err());

    tree.handle.otp().restart_child("reader").await.unwrap();
    settle().await;
    tree.send([Note(2)]);
    settle().await;

    assert_eq!(tree.log(), ["start#1", "none#1", "start#2", "2#2"]);
    assert!(tree.letters().is_empty(), "a refused message stays with its sender");
}

/// A supervisor `ingest` with the reader, below `app`, that gives up at its first failure.
async fn nested(
    reader: &Reader,
    app: SupervisorBuilder,
    ingest: impl FnOnce(ChildSpec) -> ChildSpec,
) -> Tree {
    let (address, mailbox) = mailbox();
    let child = giving_up("ingest").child(reader.spec(mailbox));
    started(reader, address, app.child(ingest(child.into_child()))).await
}

/// A supervisor that gives up at its first failure.
fn giving_up(name: &str) -> SupervisorBuilder {
    Supervisor::builder(name).restarts(0, secs(60))
}

async fn started(reader: &Reader, address: Address<Message>, app: SupervisorBuilder) -> Tree {
    let handle = app.build().unwrap().start().await.unwrap();
    let letters = handle.dead_letters();
    settle().await;
    Tree::of(reader.clone(), address, handle, letters)
}

#[tokio::test(start_paused = true)]
async fn a_mailbox_survives_a_restart_of_the_supervisor_above() {
    let mut tree = nested(&Reader::new(), app(), |ingest| ingest).await;
    tree.send([Fail, Note(1)]);
    settle().await;
    assert_eq!(tree.letters(), ["gave_up: nothing"], "about the child, and not about the message");

    tree.send([Note(2)]);
    assert!(!tree.address.is_closed());
    assert_eq!(tree.address.path().unwrap().as_str(), "app/ingest/reader");
    tree.pass(WAIT + ms(50)).await;
    // The first incarnation under a new supervisor.
    assert_eq!(tree.log(), ["start#1", "start#1", "1#1", "2#1"]);
    tree.handle.stop("enough").await.unwrap();
    assert!(tree.address.is_closed());
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_the_next_incarnation_of_the_supervisor_above() {
    let tree = nested(&Reader::new(), app(), |ingest| ingest).await;
    tree.send([Fail]);
    settle().await;
    assert_eq!(text_of(tree.address.ask(|reply| Ask(1, reply)).await), "1 by 1");
}

#[tokio::test(start_paused = true)]
async fn messages_for_a_supervisor_that_is_removed_at_its_end_become_dead_letters() {
    let once = |ingest: ChildSpec| ingest.restart(verger::RestartType::Temporary);
    let mut tree = nested(&Reader::new(), app(), once).await;
    tree.send([Fail, Note(1)]);
    settle().await;
    assert_eq!(tree.letters(), ["gave_up: nothing", "undelivered_at_stop: 1"]);
    assert!(tree.address.is_closed());
}

#[tokio::test(start_paused = true)]
async fn messages_for_a_supervisor_that_its_fallback_replaces_become_dead_letters() {
    let idle = verger::worker("ingest", async |ctx: verger::Context| ctx.cancelled().await);
    let replaced = |ingest: ChildSpec| ingest.consecutive_restarts(0).fallback(idle);
    let mut tree = nested(&Reader::new(), app(), replaced).await;
    tree.send([Fail, Note(1)]);
    settle().await;
    assert_eq!(tree.letters(), ["gave_up: nothing", "undelivered_at_stop: 1"]);
    assert!(tree.address.is_closed());
}

#[tokio::test(start_paused = true)]
async fn messages_for_a_supervisor_that_is_not_restarted_become_dead_letters() {
    let gone = |ingest: ChildSpec| ingest.restart(verger::RestartType::Transient);
    // It is stopped from within, which is no reason to restart it.
    let mut tree = nested(&Reader::new(), app(), gone).await;
    let ingest = tree.handle.supervisor("ingest").await.unwrap();
    tree.send([Fail, Note(1)]);
    settle().await;
    tree.letters();
    tree.handle.stop_child("ingest").await.unwrap();
    assert_eq!(tree.letters(), ["undelivered_at_stop: 1"], "terminated while it waits");
    assert!(tree.address.is_closed());
    drop(ingest);

    // The root gives up as well.
    let root = giving_up("app");
    let mut tree = nested(&Reader::new(), root, |ingest| ingest).await;
    tree.send([Fail, Note(1)]);
    settle().await;
    let letters = ["gave_up: nothing", "gave_up: nothing", "gave_up: 1"];
    assert_eq!(tree.letters(), letters, "the child, its supervisor, the message");
    assert!(tree.address.is_closed());
}

#[tokio::test(start_paused = true)]
async fn messages_below_two_supervisors_that_give_up_wait_for_both() {
    let (address, mailbox) = mailbox();
    let reader = Reader::new();
    let outer = giving_up("outer").child(giving_up("inner").child(reader.spec(mailbox)));
    let mut tree = started(&reader, address, app().child(outer)).await;

    tree.send([Fail, Note(1)]);
    tree.pass(WAIT + ms(50)).await;

    assert_eq!(tree.log(), ["start#1", "start#1", "1#1"]);
    assert_eq!(tree.letters(), ["gave_up: nothing", "gave_up: nothing"]);
}

#[tokio::test(start_paused = true)]
async fn messages_below_a_supervisor_that_was_not_reached_again_are_not_lost() {
    let (address, letterbox) = mailbox();
    let reader = Reader::new();
    let inner = giving_up("inner").child(reader.spec(letterbox));
    // The second time, it fails before `inner` is reached.
    let (_other, other) = mailbox_with_capacity(1);
    let first = Reader::new();
    first.starts([Begin::Ok, Begin::Fail(Duration::ZERO)]);
    let first = first.spec(other).named("first").readiness(Readiness::Signal);
    let outer = giving_up("outer").child(first.backoff(Backoff::none())).child(inner);
    let mut tree = started(&reader, address, app().child(outer)).await;

    tree.send([Fail, Note(1)]);
    tree.pass(WAIT + ms(50)).await;
    assert!(!tree.address.is_closed(), "it waits for `outer`, which waits to be started again");

    tree.letters();
    tree.handle.stop("enough").await.unwrap();
    assert!(tree.address.is_closed());
    assert_eq!(tree.letters(), ["undelivered_at_stop: 1"]);
}

#[tokio::test(start_paused = true)]
async fn messages_below_an_added_supervisor_end_with_its_parent() {
    let (address, letterbox) = mailbox();
    let reader = Reader::new();
    let inner = giving_up("inner").child(reader.spec(letterbox)).into_child();
    let mut tree = started(&reader, address, app().child(giving_up("outer"))).await;
    // A copy of its spec keeps the mailbox.
    let outer = tree.handle.supervisor("outer").await.unwrap();
    outer.start_child(inner.clone()).await.unwrap();
    settle().await;

    tree.send([Fail, Note(1)]);
    settle().await;

    assert!(tree.address.is_closed(), "`outer` restarts without it");
    let letters = ["gave_up: nothing", "gave_up: nothing", "undelivered_at_stop: 1"];
    assert_eq!(tree.letters(), letters);
    drop(inner);
}

#[tokio::test(start_paused = true)]
async fn a_child_below_a_supervisor_that_is_stopped_reads_the_rest() {
    let change = |ingest| ingest;
    let mut tree = nested(&Reader::new(), app(), change).await;
    tree.send([Note(1), Note(2)]);
    tree.handle.stop("enough").await.unwrap();
    assert_eq!(tree.log(), ["start#1", "1#1", "2#1", "none#1"]);
    assert!(tree.letters().is_empty());
    assert!(tree.address.try_send(Note(3)).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_dropped_tree_leaves_no_message_behind() {
    let (address, mailbox) = mailbox::<Message>();
    let reader = Reader::new();
    let ingest = Supervisor::builder("ingest").child(reader.spec(mailbox));
    let running = tokio::spawn(app().child(ingest).build().unwrap().run());
    settle().await;
    address.try_send(Fail).unwrap();
    settle().await;
    let request = tokio::spawn({
        let address = address.clone();
        async move { text_of(address.ask(|reply| Ask(1, reply)).await) }
    });
    settle().await;

    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());

    let text = "the question to `app/ingest/reader` was not delivered: undelivered_at_stop";
    assert_eq!(request.await.unwrap(), text);
    assert!(address.try_send(Note(2)).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_mailbox_belongs_to_one_child_at_a_time() {
    let reader = Reader::new();
    let (_address, mailbox) = mailbox::<Message>();
    let spec = reader.spec(mailbox);
    let tree = app().child(spec.clone()).build().unwrap().start().await.unwrap();

    let error = tree.start_child(spec.clone().named("second")).await.unwrap_err();

    let text = "`app/second` uses the mailbox of `app/reader`; make one mailbox for each child";
    assert_eq!(error.to_string(), text);
    tree.stop("enough").await.unwrap();
    let twins = app().child(spec.clone()).child(spec.clone().named("second"));
    assert_eq!(twins.build().unwrap_err().to_string(), text);

    let other = Supervisor::builder("other").child(spec.clone());
    let text =
        "`app/other/reader` uses the mailbox of `app/reader`; make one mailbox for each child";
    let cousins = app().child(spec.clone()).child(other.clone());
    assert_eq!(cousins.build().unwrap_err().to_string(), text);

    // The same if the second supervisor is added later.
    let tree = app().child(spec).build().unwrap().start().await.unwrap();
    assert_eq!(tree.start_child(other).await.unwrap_err().to_string(), text);
    tree.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn cousins_in_a_supervisor_that_is_added_later_share_no_mailbox() {
    let (_address, mailbox) = mailbox::<Message>();
    let spec = Reader::new().spec(mailbox);
    let named = |name| Supervisor::builder(name).child(spec.clone());
    let region = Supervisor::builder("region").child(named("north")).child(named("south"));
    let text = "`app/region/south/reader` uses the mailbox of `app/region/north/reader`; make one \
                mailbox for each child";

    let tree = app().build().unwrap().start().await.unwrap();

    let error = tree.start_child(region.clone()).await.unwrap_err();
    assert_eq!(error.to_string(), text);
    assert_eq!(app().child(region).build().unwrap_err().to_string(), text);
    tree.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_fallback_may_have_the_mailbox_of_its_child_only() {
    let (_address, mailbox) = mailbox::<Message>();
    let spec = Reader::new().spec(mailbox);
    let other =
        worker_with_mailbox("other", mailbox_with_capacity(1).1, async |_, _: Inbox<u8>| ());
    let text = "`app/other` uses the mailbox of `app/reader`; make one mailbox for each child";

    let own = app().child(spec.clone().fallback(spec.clone()));
    assert!(own.build().is_ok());
    let taken = app().child(spec.clone()).child(other.fallback(spec));
    assert_eq!(taken.build().unwrap_err().to_string(), text);
}

#[tokio::test(start_paused = true)]
async fn of_several_mistakes_a_shared_mailbox_is_the_last() {
    let (_address, mailbox) = mailbox::<Message>();
    let spec = Reader::new().spec(mailbox);
    let twice = app().child(spec.clone()).child(spec.clone());
    let text = "`app` has two children named `reader`; give one of them another name";
    assert_eq!(twice.build().unwrap_err().to_string(), text);
    let significant = spec.clone().named("second").significant();
    let text = app().child(spec.clone()).child(significant).build().unwrap_err().to_string();
    assert!(text.starts_with("`app/second` is significant, but"), "{text}");

    // The same when a child is added.
    let tree = app().child(spec.clone()).build().unwrap().start().await.unwrap();
    let error = tree.start_child(spec.clone()).await.unwrap_err();
    assert!(matches!(error, verger::ControlError::NameTaken { running: true, .. }), "{error}");
    tree.stop_child("reader").await.unwrap();
    let error = tree.start_child(spec.clone()).await.unwrap_err();
    assert!(matches!(error, verger::ControlError::NameTaken { running: false, .. }), "{error}");
    let error = tree.start_child(spec.named("second").significant()).await.unwrap_err();
    assert!(error.to_string().contains("`app/second` is significant, but"), "{error}");
    tree.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_that_finds_its_mailbox_taken_leaves_it_unchanged() {
    let reader = Reader::new();
    let (address, mailbox) = mailbox::<Message>();
    let tree = app().child(reader.spec(mailbox)).build().unwrap();
    let handle = tree.clone().start().await.unwrap();
    let letters = handle.dead_letters();
    settle().await;

    // Once more: its child can't have the mailbox, and is stopped for that reason.
    let twin = tree.start().await.unwrap();
    settle().await;
    twin.stop("enough").await.unwrap();

    let mut tree = Tree::of(reader, address, handle, letters);
    tree.send([Note(1), Fail, Note(2)]);
    tree.pass(WAIT + ms(50)).await;
    assert_eq!(tree.log(), ["start#1", "1#1", "start#2", "2#2"]);
    assert!(tree.letters().is_empty());
    assert_eq!(tree.address.path().unwrap().as_str(), "app/reader");
}

#[tokio::test(start_paused = true)]
async fn a_sender_to_a_child_that_never_started_is_refused_after_the_tree_ends() {
    let reader = Reader::new();
    let (deep, first) = mailbox::<Message>();
    let (instead, second) = mailbox::<Message>();
    // One mailbox belongs below two supervisors that wait for `db`; the other child would take it.
    let db = verger::worker("db", async |_ctx| Exit::Err("no".into()));
    let db = db.consecutive_restarts(0).on_exhausted(verger::policy::OnExhausted::Park);
    let inner = Supervisor::builder("inner").child(reader.spec(first));
    let outer = Supervisor::builder("outer").child(inner).into_child().requires("db");
    let calm = verger::worker("calm", async |ctx: Context| ctx.cancelled().await);
    let calm = calm.fallback(reader.spec(second).named("calm"));
    let tree = app().child(db.readiness(Readiness::Signal)).child(outer).child(calm);
    let tree = tree.build().unwrap().start().await.unwrap();
    deep.try_send(Note(1)).unwrap();
    let request = tokio::spawn({
        let deep = deep.clone();
        async move { text_of(deep.ask(|reply| Ask(1, reply)).await) }
    });
    settle().await;

    tree.stop("enough").await.unwrap();

    assert!(deep.is_closed() && instead.is_closed());
    assert!(deep.try_send(Note(2)).is_err());
    assert!(request.await.unwrap().ends_with("was not delivered: undelivered_at_stop"));
    assert!(reader.log().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_leaked_incarnation_reads_no_more() {
    // The leaked incarnation keeps its inbox; the next one takes over the mailbox.
    let reader = Reader::new();
    let (address, mailbox) = mailbox::<Message>();
    let (keep, mut kept) = tokio::sync::mpsc::unbounded_channel();
    let log = reader.clone();
    let spec = worker_with_mailbox("reader", mailbox, move |ctx: Context, mut inbox| {
        let (keep, log) = (keep.clone(), log.clone());
        async move {
            if ctx.incarnation() == 1 {
                let _ = keep.send(inbox);
                return Err("left its inbox behind".into());
            }
            while let Some(Note(n)) = inbox.recv().await {
                log.say(&n.to_string(), &ctx);
            }
            Exit::Ok(())
        }
    });
    let tree = app().child(spec).build().unwrap().start().await.unwrap();
    settle().await;
    let mut old: Inbox<Message> = kept.recv().await.unwrap();
    tokio::time::sleep(WAIT).await;
    settle().await;

    address.try_send(Note(1)).unwrap();
    assert!(old.recv().await.is_none());
    drop(old);
    address.try_send(Note(2)).unwrap();
    settle().await;

    assert_eq!(reader.log(), ["1#2", "2#2"]);
    tree.stop("enough").await.unwrap();
}
