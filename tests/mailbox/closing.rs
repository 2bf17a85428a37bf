//! Children that await their cancellation with their messages, and mailboxes that are closed by force.

use std::process::ExitCode;

use tokio::time::{sleep, timeout};
use verger::app::{Stage, StopStages};
use verger::mailbox::{Closing, Next};
use verger::{Application, DynamicSupervisor, Strategy, worker, worker_with};

use super::*;

/// What readers have received, each with its time in seconds since `began`.
#[derive(Clone)]
struct Diary {
    began: Instant,
    entries: Arc<Mutex<Vec<String>>>,
}

impl Diary {
    fn new() -> Self {
        Self { began: Instant::now(), entries: Arc::default() }
    }

    /// The times count from the stop of an application that is run now.
    fn of_application() -> Self {
        Self { began: Instant::now() + secs(1), ..Self::new() }
    }

    fn note(&self, ctx: &Context, what: &str) {
        let (at, name) = (self.began.elapsed().as_secs_f64(), ctx.path().name().to_owned());
        self.entries.lock().unwrap().push(format!("{at} {name} {what}"));
    }

    /// Returns the entries since the last call.
    fn text(&self) -> String {
        std::mem::take(&mut *self.entries.lock().unwrap()).join(", ")
    }

    /// Returns a reader that needs this long for each message, and its address.
    fn reader(&self, name: &str, closing: Closing, takes: Duration) -> (Address<u32>, ChildSpec) {
        let (address, mailbox) = mailbox();
        let diary = self.clone();
        let read = move |ctx, inbox| diary.clone().read(ctx, inbox, takes);
        (address, worker_with_mailbox(name, mailbox.closing(closing), read).shutdown(secs(60)))
    }

    /// Message 0 closes the mailbox.
    async fn read(self, ctx: Context, mut inbox: Inbox<u32>, takes: Duration) {
        loop {
            match inbox.next().await {
                Next::Message(0) => inbox.close(),
                Next::Message(n) => {
                    self.note(&ctx, &n.to_string());
                    sleep(takes).await;
                }
                Next::Stopping => {
                    let reason = ctx.stop_reason();
                    self.note(
                        &ctx,
                        &format!("stopping ({})", reason.as_deref().unwrap_or("alone")),
                    );
                }
                next => {
                    self.note(&ctx, &format!("{next:?}"));
                    return;
                }
            }
        }
    }
}

/// Runs an application that is stopped after 1 s.
async fn stop(app: Application) -> ExitCode {
    let stop = async {
        sleep(secs(1)).await;
        "test"
    };
    app.listen_to_signals(false).exit_grace(Duration::MAX).stop_on(stop).run().await
}

fn send(address: &Address<u32>, messages: impl IntoIterator<Item = u32>) {
    messages.into_iter().for_each(|message| address.try_send(message).unwrap());
}

#[tokio::test(start_paused = true)]
async fn seed4_46_a_mailbox_left_open_is_closed_when_the_polite_stage_is_over() {
    let diary = Diary::of_application();
    let (a, first) = diary.reader("a", Closing::Manually, Duration::ZERO);
    let (b, inner) = diary.reader("b", Closing::Manually, Duration::ZERO);
    let (z, last) = diary.reader("z", Closing::Manually, secs(1));
    let app =
        Supervisor::builder("app").child(first).child(Supervisor::builder("inner").child(inner));
    let stopping = tokio::spawn(stop(Application::new(app.child(last))));

    sleep(secs(21) - ms(1)).await;
    for address in [&a, &b, &z] {
        assert!(!address.is_closed());
        send(address, [1, 2]);
    }
    sleep(ms(1)).await;
    settle().await;

    for address in [&a, &b, &z] {
        assert!(address.is_closed());
        assert!(address.try_send(3).is_err());
    }
    let code = stopping.await.unwrap();
    assert_eq!(
        diary.text(),
        "0 z stopping (test), 19.999 a 1, 19.999 a 2, 19.999 b 1, 19.999 b 2, 19.999 z 1, \
         20 a stopping (test), 20 a Closed, 20 b stopping (test), 20 b Closed, 20.999 z 2, 21.999 z Closed"
    );
    assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::SUCCESS));
}

#[tokio::test(start_paused = true)]
async fn seed4_46_in_closing_a_sender_that_waits_for_room_gets_its_message_back() {
    let (address, mailbox) = mailbox_with_capacity::<u32>(1);
    let stuck = async |_: Context, _inbox: Inbox<u32>| -> Exit { std::future::pending().await };
    let spec = worker_with_mailbox("stuck", mailbox.closing(Closing::Manually), stuck);
    send(&address, [1]);
    let waiting = tokio::spawn(async move {
        let began = Instant::now();
        let back = address.send(2).await.unwrap_err();
        (back.into_message(), began.elapsed())
    });
    settle().await;

    let stages = StopStages::new([Stage::Polite(secs(2)), Stage::Closing(secs(3))]);
    let app = Supervisor::builder("app").child(spec.shutdown(secs(60)));
    stop(Application::new(app).stages(stages)).await;

    assert_eq!(waiting.await.unwrap(), (2, secs(3)));
}

#[tokio::test(start_paused = true)]
async fn seed4_46_in_closing_the_mailboxes_of_dynamic_children_are_closed() {
    let diary = Diary::of_application();
    let (address, spec) = diary.reader("a", Closing::Manually, Duration::ZERO);
    let many = DynamicSupervisor::builder("many");
    let starter = worker_with("starter", spec, async |ctx: Context, spec: ChildSpec| {
        let many = ctx.parent().supervisor("many").await.unwrap();
        many.start_child(spec).await.unwrap();
        ctx.cancelled().await;
    });
    let stages = StopStages::new([Stage::Polite(secs(2)), Stage::Closing(secs(3))]);
    stop(Application::new(Supervisor::builder("app").child(many).child(starter)).stages(stages))
        .await;

    assert_eq!(diary.text(), "0 a#1 stopping (test), 2 a#1 Closed");
    assert!(address.try_send(1).is_err());
}

#[tokio::test(start_paused = true)]
async fn kin_145_closed_immediately_queued_messages_are_handled_and_then_the_end() {
    let diary = Diary::new();
    let (address, spec) = diary.reader("a", Closing::Immediately, secs(1));
    let tree = app().child(spec).build().unwrap().start().await.unwrap();
    settle().await;
    send(&address, [1, 2, 3]);
    tree.stop_child("a").await.unwrap();

    assert_eq!(diary.text(), "0 a 1, 1 a stopping (alone), 1 a 2, 2 a 3, 3 a Closed");
    tree.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_145_manually_the_child_sees_its_stop_and_goes_on_until_it_closes() {
    let diary = Diary::new();
    let (address, spec) = diary.reader("a", Closing::Manually, Duration::ZERO);
    let tree = app().child(spec).build().unwrap().start().await.unwrap();
    settle().await;
    send(&address, [1]);
    settle().await;
    let stopping = tokio::spawn({
        let tree = tree.clone();
        async move { tree.stop("enough").await }
    });
    sleep(secs(3)).await;
    send(&address, [2]);
    sleep(secs(1)).await;
    send(&address, [0, 3]);
    settle().await;
    assert!(address.try_send(4).is_err());
    stopping.await.unwrap().unwrap();

    assert_eq!(diary.text(), "0 a 1, 0 a stopping (enough), 3 a 2, 4 a 3, 4 a Closed");
}

#[tokio::test(start_paused = true)]
async fn kin_145_forced_after_all_the_child_sees_the_end_and_what_it_holds_is_a_dead_letter() {
    let (address, mailbox) = mailbox::<u32>();
    let store = verger::dead_letter::DeadLetterStore::default();
    let log: Arc<Mutex<Vec<u32>>> = Arc::default();
    let acked = Arc::clone(&log);
    let read = move |_: Context, mut inbox: Inbox<u32>| {
        let acked = Arc::clone(&acked);
        async move {
            let (mut stops, mut held) = (0, Vec::new());
            loop {
                match inbox.next_delivery().await {
                    Next::Message(delivery) if *delivery == 3 => held.push(delivery),
                    Next::Message(delivery) => {
                        sleep(secs(1)).await;
                        acked.lock().unwrap().push(delivery.ack());
                    }
                    Next::Stopping => stops += 1,
                    _ => break,
                }
            }
            assert_eq!((stops, held.len()), (1, 1));
        }
    };
    let spec = worker_with_mailbox("a", mailbox.closing(Closing::Manually), read);
    let tree = Supervisor::builder("app").dead_letter_store(&store);
    let stages = StopStages::new([Stage::Polite(secs(2)), Stage::Closing(secs(3))]);
    let app = Application::new(tree.child(spec.shutdown(secs(60)))).stages(stages);
    let stopping = tokio::spawn(stop(app));
    sleep(ms(2500)).await;
    send(&address, 1..=3);
    let sent = Instant::now();
    let code = stopping.await.unwrap();

    assert_eq!(sent.elapsed(), secs(2), "nothing waits for the end of the stage");
    assert_eq!(*log.lock().unwrap(), [1, 2]);
    let left = store.entries();
    let left: Vec<_> = left.iter().map(|it| it.letter.reason.to_string()).collect();
    assert_eq!(left, ["undelivered_at_stop"]);
    assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::SUCCESS));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_wait_for_the_next_message_loses_neither_messages_nor_the_stop() {
    let (address, mailbox) = mailbox::<u32>();
    let log: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&log);
    let read = move |_: Context, mut inbox: Inbox<u32>| {
        let log = Arc::clone(&kept);
        async move {
            loop {
                let Ok(next) = timeout(ms(10), inbox.next()).await else { continue };
                log.lock().unwrap().push(format!("{next:?}"));
                if next == Next::Closed {
                    break;
                }
            }
            assert_eq!(inbox.next().await, Next::Closed);
            assert_eq!(inbox.recv().await, None);
        }
    };
    let spec = worker_with_mailbox("a", mailbox, read);
    let tree = app().child(spec).build().unwrap().start().await.unwrap();
    sleep(ms(105)).await;
    send(&address, [1]);
    sleep(ms(100)).await;
    send(&address, [2]);
    tree.stop_child("a").await.unwrap();

    assert_eq!(*log.lock().unwrap(), ["Message(1)", "Message(2)", "Stopping", "Closed"]);
    tree.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_that_stops_with_its_group_sees_that_once_and_leaves_its_messages() {
    let diary = Diary::new();
    let (address, spec) = diary.reader("a", Closing::Immediately, secs(1));
    let fails = worker("fails", async |ctx: Context| -> Exit {
        if ctx.incarnation() == 1 {
            return Err("no".into());
        }
        ctx.cancelled().await;
        Ok(())
    });
    let group = app().strategy(Strategy::OneForAll).child(spec).child(fails);
    send(&address, [1]);
    let tree = group.build().unwrap().start().await.unwrap();
    sleep(WAIT + ms(100)).await;

    assert_eq!(diary.text(), "0 a stopping (alone), 0 a Closed, 1.05 a 1");
    tree.stop("enough").await.unwrap();
    assert_eq!(diary.text(), "2.05 a stopping (enough), 2.05 a Closed");
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_cancelled_before_its_first_poll_has_a_closed_mailbox() {
    for closing in [Closing::Immediately, Closing::Manually] {
        let diary = Diary::new();
        let (address, spec) = diary.reader("a", closing, Duration::ZERO);
        send(&address, [1]);
        let tree = app().build().unwrap().start().await.unwrap();
        tree.start_child(spec).await.unwrap();
        let stopping = tree.stop_child("a");
        if closing == Closing::Immediately {
            stopping.await.unwrap();
            assert_eq!(diary.text(), "0 a stopping (alone), 0 a 1, 0 a Closed");
        } else {
            assert!(timeout(secs(1), stopping).await.is_err());
            send(&address, [0]);
            settle().await;
            assert_eq!(diary.text(), "0 a stopping (alone), 0.05 a 1, 1 a Closed");
        }
        assert!(address.try_send(2).is_err());
        tree.stop("enough").await.unwrap();
    }
}
