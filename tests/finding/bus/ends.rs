//! How registrations end, and what becomes of the events that are left.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::sleep;
use verger::bus::CallError;
use verger::dead_letter::{DeadLetter, DeadLetterStore};
use verger::{Backoff, Context, Exit, RestartType, Supervisor, once, worker};

use super::{Double, Journal, Order, Refund, described, member, reader, start};
use crate::common::{killed, settle};

/// A handler that never comes to an end, and notes when it is dropped.
fn stuck(ctx: &Context, journal: &Journal, capacity: usize) -> verger::bus::Registration {
    struct Dropped(Journal);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.note("dropped");
        }
    }
    let journal = journal.clone();
    ctx.bus().capacity(capacity).on(move |order: Arc<Order>| {
        journal.note(format!("took {}", order.0));
        let dropped = Dropped(journal.clone());
        async move {
            let _dropped = dropped;
            std::future::pending::<()>().await;
        }
    })
}

#[tokio::test(start_paused = true)]
async fn events_for_a_full_queue_are_letters_that_name_the_slow_child() {
    let journal = Journal::default();
    let seen = journal.clone();
    let slow = member("slow", move |ctx| drop(stuck(ctx, &seen, 2)));
    let app = start([slow, reader("quick", &journal)]).await;
    let mut letters = app.dead_letters();
    app.bus().emit(Order(1));
    settle().await;
    for number in 2..=4 {
        app.bus().emit(Order(number));
    }
    let letter = letters.try_next().unwrap();
    assert_eq!(super::describe(&letter), "mailbox_full app/slow Order");
    assert_eq!((letter.incarnation, letter.take::<Arc<Order>>().unwrap().0), (1, 4));
    assert!(letters.try_next().is_none());
    settle().await;
    assert_eq!(journal.taken(), ["took 1", "quick 1", "quick 2", "quick 3", "quick 4"]);

    app.stop_child("slow").await.unwrap();
    let left: Vec<_> = std::iter::from_fn(|| letters.try_next()).collect();
    let left = left.iter().map(|it| (super::describe(it), it.take::<Arc<Order>>().unwrap().0));
    let text = "undelivered_at_stop app/slow Order".to_owned();
    assert_eq!(
        left.collect::<Vec<_>>(),
        [(text.clone(), 1), (text.clone(), 2), (text, 3)],
        "with the one in hand"
    );
    assert_eq!(journal.taken(), ["dropped"]);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_capacity_of_zero_is_one() {
    let journal = Journal::default();
    let app = start([member("a", move |ctx| drop(stuck(ctx, &journal, 0)))]).await;
    let mut letters = app.dead_letters();
    app.bus().emit(Order(1));
    app.bus().emit(Order(2));
    assert_eq!(described(&mut letters), ["mailbox_full app/a Order"]);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_handler_ends_before_the_next_incarnation_registers_its_own() {
    let journal = Journal::default();
    let seen = journal.clone();
    let child = worker("a", move |ctx: Context| {
        let seen = seen.clone();
        async move {
            let number = ctx.incarnation();
            ctx.bus().on(move |order: Arc<Order>| {
                seen.note(format!("{number} took {}", order.0));
                async {}
            });
            sleep(Duration::from_secs(10)).await;
            Exit::Err("again".into())
        }
    });
    let app = start([child.backoff(Backoff::constant(Duration::from_secs(1)))]).await;
    let mut letters = app.dead_letters();
    app.bus().emit(Order(1));
    sleep(Duration::from_millis(10_500)).await;
    app.bus().emit(Order(2));
    sleep(Duration::from_secs(1)).await;
    app.bus().emit(Order(3));
    settle().await;
    assert_eq!(journal.taken(), ["1 took 1", "2 took 3"]);
    assert_eq!(described(&mut letters), ["no_handler app Order"], "while the child was down");
    app.stop("enough").await.or_else(killed).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_handler_goes_on_while_its_child_stops() {
    let journal = Journal::default();
    let seen = journal.clone();
    let child = worker("a", move |ctx: Context| {
        let seen = seen.clone();
        async move {
            ctx.bus().on(move |order: Arc<Order>| {
                seen.note(format!("took {}", order.0));
                async {}
            });
            ctx.cancelled().await;
            ctx.bus().emit(Order(1));
            sleep(Duration::from_secs(1)).await;
        }
    });
    let app = start([child]).await;
    app.stop("enough").await.unwrap();
    assert_eq!(journal.taken(), ["took 1"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_registered_by_a_child_that_is_cancelled_or_has_ended() {
    let (pass, mut passed) = mpsc::unbounded_channel();
    let late = pass.clone();
    let cancelled = worker("cancelled", move |ctx: Context| {
        let late = late.clone();
        async move {
            ctx.cancelled().await;
            late.send(ctx.bus().on(|_: Arc<Order>| async {}).is_active()).unwrap();
            late.send(ctx.bus().on_dead_letter(|_| async {}).is_active()).unwrap();
            late.send(ctx.bus().once(|_: Arc<Order>| async {}).is_active()).unwrap();
            sleep(Duration::from_secs(1)).await;
        }
    });
    let (give, mut given) = mpsc::unbounded_channel();
    let ended = once("ended", async move |ctx: Context| drop(give.send(ctx)));
    let app = start([cancelled, ended]).await;
    let mut letters = app.dead_letters();
    let ctx: Context = given.recv().await.unwrap();
    assert!(!ctx.bus().on(|_: Arc<Order>| async {}).is_active());
    assert!(!ctx.bus().on_dead_letter(|_| async {}).is_active());
    let answers = ctx.bus().answer(|it: Arc<Double>| async move { Exit::Ok(()).map(|()| it.0) });
    assert!(!answers.unwrap().is_active());
    ctx.bus().emit(Order(1));
    assert_eq!(described(&mut letters), ["no_handler app/ended Order"]);
    app.stop_child("cancelled").await.unwrap();
    for _ in 0..3 {
        assert!(!passed.recv().await.unwrap());
    }
    drop(pass);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn unregistering_lets_the_current_event_end_and_returns_the_others() {
    let journal = Journal::default();
    let seen = journal.clone();
    let (give, mut given) = mpsc::unbounded_channel();
    let a = member("a", move |ctx| {
        let seen = seen.clone();
        let registration = ctx.bus().on(move |order: Arc<Order>| {
            let seen = seen.clone();
            async move {
                sleep(Duration::from_secs(1)).await;
                seen.note(format!("handled {}", order.0));
            }
        });
        give.send(registration.clone()).unwrap();
        drop(registration);
    });
    let app = start([a]).await;
    let mut letters = app.dead_letters();
    let registration = given.recv().await.unwrap();
    app.bus().emit(Order(1));
    app.bus().emit(Order(2));
    settle().await;
    assert!(registration.is_active(), "a handle that is dropped changes nothing");
    registration.unregister();
    registration.unregister();
    assert!(!registration.is_active());
    app.bus().emit(Order(3));
    sleep(Duration::from_secs(5)).await;
    assert_eq!(journal.taken(), ["handled 1"]);
    assert_eq!(
        described(&mut letters),
        ["no_handler app Order", "undelivered_at_stop app/a Order"]
    );
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn errors_can_fail_the_child() {
    let a = member("a", |ctx| {
        let number = ctx.incarnation();
        ctx.bus().errors_fail_child().on(move |_: Arc<Order>| async move {
            if number == 2 {
                panic!("out of stock");
            }
            Err("no such order")
        });
    });
    let app = start([a.backoff(Backoff::constant(Duration::from_secs(1)))]).await;
    let (mut letters, mut events) = (app.dead_letters(), app.events());
    for _ in 0..2 {
        app.bus().emit(Order(1));
        app.bus().emit(Order(2));
        sleep(Duration::from_secs(2)).await;
    }
    let reasons = std::iter::from_fn(|| events.try_next()).filter_map(|event| match event.kind {
        verger::status::EventKind::Moved { reason: Some(reason), .. } => Some(reason.to_string()),
        _ => None,
    });
    let reasons: Vec<_> = reasons.collect();
    assert_eq!(reasons, ["failed: no such order", "panicked: out of stock"]);
    let left = "undelivered_at_stop app/a Order";
    assert_eq!(described(&mut letters), [left, left], "the failure is no letter");
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_event_whose_drop_panics_reaches_no_supervisor() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let (give, mut given) = mpsc::unbounded_channel();
    let a = member("a", move |ctx| {
        let give = give.clone();
        ctx.bus().capacity(1).on(move |_: Arc<Bomb>| {
            give.send(()).unwrap();
            async {}
        });
    });
    let app = start([a]).await;
    app.bus().emit(Bomb);
    app.bus().emit(Bomb);
    settle().await;
    app.bus().emit(Bomb);
    settle().await;
    assert_eq!((given.recv().await, given.recv().await), (Some(()), Some(())));
    assert!(given.try_recv().is_err(), "the queue was full for the second one");
    app.stop("enough").await.unwrap();
    app.bus().emit(Bomb);
}

#[tokio::test(start_paused = true)]
async fn handlers_that_come_and_go_leave_nothing_behind() {
    let (give, mut given) = mpsc::unbounded_channel();
    let token = Arc::new(());
    let held = Arc::clone(&token);
    let a = once("a", async move |ctx: Context| {
        for number in 0..100_000_u32 {
            let held = Arc::clone(&held);
            let registration = ctx.bus().on(move |_: Arc<Order>| {
                let _held = Arc::clone(&held);
                async {}
            });
            registration.unregister();
            if number % 100 == 0 {
                tokio::task::yield_now().await;
            }
        }
        drop(held);
        settle().await;
        give.send(()).unwrap();
        ctx.cancelled().await;
    });
    let app = start([a]).await;
    let mut letters = app.dead_letters();
    given.recv().await.unwrap();
    assert_eq!(Arc::strong_count(&token), 1, "no handler is left");
    app.bus().emit(Order(1));
    assert_eq!(described(&mut letters), ["no_handler app Order"]);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn many_handlers_of_one_event_end_with_their_child() {
    let journal = Journal::default();
    let seen = journal.clone();
    let a = member("a", move |ctx| {
        for _ in 0..10_000 {
            let seen = seen.clone();
            ctx.bus().on(move |_: Arc<Refund>| {
                seen.note("took");
                async {}
            });
        }
    });
    let app = start([a.restart(RestartType::Temporary)]).await;
    let mut letters = app.dead_letters();
    app.bus().emit(Refund(1));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(journal.taken().len(), 10_000);
    app.kill("a").await.unwrap();
    settle().await;
    app.bus().emit(Refund(2));
    let left = std::iter::from_fn(|| letters.try_next());
    let left: Vec<_> = left.filter_map(|it: DeadLetter| it.take::<Arc<Refund>>()).collect();
    assert_eq!(left.iter().map(|it| it.0).collect::<Vec<_>>(), [2]);
    app.stop("enough").await.unwrap();
}

/// On several threads, so that emitters and callers meet a handler at each moment of its end.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn each_event_is_handled_or_a_letter_and_each_call_ends_while_handlers_come_and_go() {
    const EVENTS: u64 = 20_000;
    let store = DeadLetterStore::metrics_only();
    let handled = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&handled);
    let a = worker("a", move |ctx: Context| {
        let count = Arc::clone(&count);
        async move {
            while !ctx.is_cancelled() {
                let count = Arc::clone(&count);
                let orders = ctx.bus().capacity(8).on(move |_: Arc<Order>| {
                    count.fetch_add(1, Ordering::Relaxed);
                    async {}
                });
                let doubles = ctx.bus().capacity(1).answer(|request: Arc<Double>| async move {
                    Exit::Ok(()).map(|()| 2 * request.0)
                });
                for _ in 0..10 {
                    tokio::task::yield_now().await;
                }
                orders.unregister();
                doubles?.unregister();
            }
            Exit::Ok(())
        }
    });
    let app = Supervisor::builder("app").dead_letter_store(&store).child(a);
    let app = app.build().unwrap().start().await.unwrap();
    let emitting = [(); 2].map(|()| {
        let bus = app.bus();
        tokio::spawn(async move {
            for number in 0..EVENTS {
                bus.emit(Order(0));
                if number % 64 == 0 {
                    tokio::task::yield_now().await;
                }
            }
        })
    });
    let calling = [(); 2].map(|()| {
        let bus = app.bus();
        tokio::spawn(async move {
            let mut failed = 0;
            for number in 0..1_000 {
                match bus.call(Double(number), None).await {
                    Ok(double) => assert_eq!(double, 2 * number),
                    Err(CallError::NoHandler { .. }) => failed += 1,
                    Err(error) => panic!("{error}"),
                }
            }
            failed
        })
    });
    for emitting in emitting {
        emitting.await.unwrap();
    }
    let mut failed = 0;
    for calling in calling {
        failed += calling.await.unwrap();
    }
    app.stop("enough").await.unwrap();
    assert_eq!(handled.load(Ordering::Relaxed) + store.counts().total, 2 * EVENTS + failed);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_declines_goes_on_even_if_its_errors_fail_the_child() {
    struct Number(u32);

    let (note, mut notes) = mpsc::unbounded_channel();
    let child = worker("a", move |ctx: Context| {
        let note = note.clone();
        async move {
            ctx.bus().errors_fail_child().on(move |number: Arc<Number>| {
                note.send(number.0).unwrap();
                async { Err::<(), _>(verger::ExitError::ignore()) }
            });
            ctx.cancelled().await;
        }
    });
    let app = Supervisor::builder("app").child(child).build().unwrap().start().await.unwrap();
    settle().await;
    for number in 1..=3 {
        app.bus().emit(Number(number));
    }
    settle().await;
    assert_eq!(
        [notes.recv().await, notes.recv().await, notes.recv().await],
        [Some(1), Some(2), Some(3)]
    );
    app.stop("enough").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_has_blocked_beyond_the_end_of_its_child_handles_nothing_more() {
    struct Number(u32);

    let (go_on, goes_on) = std::sync::mpsc::channel::<()>();
    let goes_on = Arc::new(std::sync::Mutex::new(goes_on));
    let (note, mut notes) = mpsc::unbounded_channel();
    let (registered, mut is_registered) = mpsc::unbounded_channel();
    let child = worker("a", move |ctx: Context| {
        let (goes_on, note, registered) = (Arc::clone(&goes_on), note.clone(), registered.clone());
        async move {
            let incarnation = ctx.incarnation();
            ctx.bus().on(move |number: Arc<Number>| {
                note.send((incarnation, number.0)).unwrap();
                if incarnation == 1 {
                    _ = goes_on.lock().unwrap().recv();
                }
                async {}
            });
            registered.send(()).unwrap();
            ctx.cancelled().await;
        }
    });
    let child = child.shutdown(Duration::from_millis(10)).backoff(verger::Backoff::none());
    let app = Supervisor::builder("app").leak_timeout(Duration::from_millis(10)).child(child);
    let app = app.build().unwrap().start().await.unwrap();
    is_registered.recv().await.unwrap();
    app.bus().emit(Number(1));
    assert_eq!(notes.recv().await, Some((1, 1)));
    app.kill("a").await.unwrap();
    is_registered.recv().await.unwrap();
    let mut letters = app.dead_letters();
    app.bus().emit(Number(2));
    assert_eq!(notes.recv().await, Some((2, 2)));
    let mut events = app.events();
    go_on.send(()).unwrap();
    let letter = letters.next().await.unwrap();
    assert_eq!(letter.reason, verger::dead_letter::DeadLetterReason::UndeliveredAtStop);
    assert_eq!((letter.incarnation, notes.try_recv().ok()), (1, None));
    let leak_ended = |kind| matches!(kind, verger::status::EventKind::LeakEnded);
    while !leak_ended(events.next().await.unwrap().kind) {}
    app.stop("enough").await.unwrap();
}
