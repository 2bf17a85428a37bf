//! The event bus: events, requests, and what becomes of those that can't be delivered.

mod ends;
mod letters;
mod requests;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tracing::level_filters::LevelFilter;
use verger::bus::{BusError, CallError, DEAD_LETTER_CHANNEL, Request};
use verger::dead_letter::{DeadLetter, DeadLetterReason};
use verger::status::Subscription;
use verger::{ChildSpec, Context, Exit, Supervisor, SupervisorHandle, worker};

use crate::common::settle;
use crate::journal::Journal;
use crate::log::Log;

/// An event.
struct Order(u32);

/// A different event.
struct Refund(u32);

/// A request for twice the number.
struct Double(u32);

impl Request for Double {
    type Reply = u32;
}

/// A child that registers handlers, and runs until it is cancelled.
fn member(name: &str, register: impl Fn(&Context) + Send + Sync + 'static) -> ChildSpec {
    let register = Arc::new(register);
    worker(name, move |ctx: Context| {
        let register = Arc::clone(&register);
        async move {
            register(&ctx);
            ctx.cancelled().await;
        }
    })
}

/// A child that notes the number of each order.
fn reader(name: &'static str, journal: &Journal) -> ChildSpec {
    let journal = journal.clone();
    member(name, move |ctx| {
        let journal = journal.clone();
        ctx.bus().on(move |order: Arc<Order>| {
            journal.note(format!("{name} {}", order.0));
            async {}
        });
    })
}

async fn start(children: impl IntoIterator<Item = ChildSpec>) -> SupervisorHandle {
    let app = Supervisor::builder("app");
    let app = children.into_iter().fold(app, verger::SupervisorBuilder::child);
    let app = app.build().unwrap().start().await.unwrap();
    settle().await;
    app
}

/// Returns the letters since the last call: reason, target, type, and error.
fn described(letters: &mut Subscription<DeadLetter>) -> Vec<String> {
    std::iter::from_fn(|| letters.try_next()).map(|letter| describe(&letter)).collect()
}

fn describe(letter: &DeadLetter) -> String {
    let event = letter.event_type.map_or("none", |name| name.rsplit("::").next().unwrap());
    let error = letter.error.as_ref().map_or(String::new(), |error| format!(": {error}"));
    format!("{} {} {event}{error}", letter.reason, letter.target)
}

#[tokio::test(start_paused = true)]
async fn seed3_01_the_reserved_channel_is_named_dead_letter_and_refuses_users() {
    assert_eq!(DEAD_LETTER_CHANNEL, "__dead_letter__");
    let journal = Journal::default();
    let seen = journal.clone();
    let a = member("a", move |ctx| {
        seen.note(ctx.bus().channel("__dead_letter__").unwrap_err().to_string());
        let orders = ctx.bus().channel("orders").unwrap();
        seen.note(orders.publisher().channel(DEAD_LETTER_CHANNEL).unwrap_err().to_string());
        let seen = seen.clone();
        ctx.bus().on_dead_letter(move |letter| {
            seen.note(describe(&letter));
            async {}
        });
    });
    let app = start([a]).await;
    let refused = app.bus().channel(DEAD_LETTER_CHANNEL).unwrap_err();
    assert!(matches!(refused, BusError::Reserved { channel: "__dead_letter__", .. }));
    let text = "the channel `__dead_letter__` is reserved; subscribe to dead letters with `on_dead_letter`";
    assert_eq!(refused.to_string(), text);
    settle().await;
    assert_eq!(journal.taken(), [text, text], "nothing was published");
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn seed3_02_a_failed_dispatch_is_one_record_without_a_handler_and_one_for_an_error() {
    let journal = Journal::default();
    let seen = journal.clone();
    let a = member("a", move |ctx| {
        let seen = seen.clone();
        ctx.bus().on_dead_letter(move |letter| {
            seen.note(describe(&letter));
            async {}
        });
        ctx.bus().on(|order: Arc<Order>| async move {
            match order.0 {
                1 => Err("no such order"),
                2 => panic!("out of stock"),
                _ => Ok(()),
            }
        });
    });
    let app = start([a]).await;
    let mut letters = app.dead_letters();
    app.bus().emit(Refund(7));
    app.bus().emit(Order(1));
    app.bus().emit(Order(2));
    app.bus().emit(Order(3));
    settle().await;
    let expected = [
        "no_handler app Refund",
        "handler_error app/a Order: failed: no such order",
        "handler_error app/a Order: panicked: out of stock",
    ];
    assert_eq!(described(&mut letters), expected);
    assert_eq!(journal.taken(), expected);
    assert_eq!(app.which_child("a").await.unwrap().incarnation, 1, "the child lives");
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn seed3_06_a_failing_dead_letter_handler_is_counted_and_makes_no_letter() {
    let log = Log::at(LevelFilter::DEBUG);
    let journal = Journal::default();
    let seen = journal.clone();
    let a = member("a", move |ctx| {
        let seen = seen.clone();
        ctx.bus().on_dead_letter(move |letter| {
            seen.note(describe(&letter));
            assert!(seen.len() != 1, "the first one");
            async { Err("each other one") }
        });
    });
    let app = start([a]).await;
    let mut letters = app.dead_letters();
    log.lines();
    app.bus().emit(Order(1));
    app.bus().emit(Refund(2));
    settle().await;
    let expected = ["no_handler app Order", "no_handler app Refund"];
    assert_eq!(described(&mut letters), expected);
    assert_eq!(journal.taken(), expected, "the subscription goes on");
    assert_eq!(app.bus().failed_dead_letter_handlers(), 2);
    let line = |cause: &str| {
        format!(
            "DEBUG child{{child=app/a incarnation=1}}: verger::dead_letter: a dead-letter handler has failed child=app/a cause=\"{cause}\""
        )
    };
    let mut lines = log.lines();
    lines.retain(|line| line.contains("has failed"));
    assert_eq!(lines, [line("panicked: the first one"), line("failed: each other one")]);
    assert_eq!(app.which_child("a").await.unwrap().incarnation, 1, "the child lives");
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn seed3_36_a_call_is_cancelled_by_its_time_limit_and_events_that_fail_are_dead_letters() {
    let log = Log::at(LevelFilter::WARN);
    let journal = Journal::default();
    let seen = journal.clone();
    let a = member("a", move |ctx| {
        let seen = seen.clone();
        let answer = move |request: Arc<Double>| {
            struct Cancelled(Journal);
            impl Drop for Cancelled {
                fn drop(&mut self) {
                    self.0.note("dropped");
                }
            }
            let dropped = Cancelled(seen.clone());
            async move {
                sleep(Duration::from_secs(3600)).await;
                dropped.0.note("answered");
                Exit::Ok(()).map(|()| 2 * request.0)
            }
        };
        ctx.bus().answer(answer).unwrap();
        ctx.bus().on(|_: Arc<Order>| async { Err("no such order") });
    });
    let app = start([a]).await;
    let mut letters = app.dead_letters();

    // The time limit cancels the handler.
    let began = Instant::now();
    let error = app.bus().call(Double(1), Duration::from_secs(5)).await.unwrap_err();
    assert_eq!(began.elapsed(), Duration::from_secs(5));
    let text = "the handler of `finding::bus::Double` in `app/a` did not answer within 5s";
    assert_eq!(error.to_string(), text);
    let is_after = |after| after == Duration::from_secs(5);
    assert!(matches!(error, CallError::TimedOut { after, .. } if is_after(after)));
    settle().await;
    assert_eq!(journal.taken(), ["dropped"]);
    assert_eq!(described(&mut letters), ["timeout app/a Double"]);

    // Without one, the call waits.
    assert_eq!(app.bus().call(Double(2), None).await.unwrap(), 4);
    assert_eq!(began.elapsed(), Duration::from_secs(5 + 3600));
    assert_eq!(journal.taken(), ["answered", "dropped"]);

    // Nothing waits for an event: its error is logged, and is a dead letter.
    log.lines();
    app.bus().emit(Order(1));
    assert!(log.lines().is_empty(), "the handler runs outside of the emitter");
    settle().await;
    let letter = letters.try_next().unwrap();
    assert_eq!(describe(&letter), "handler_error app/a Order: failed: no such order");
    assert_eq!(letter.take::<Arc<Order>>().unwrap().0, 1);
    let line = "WARN verger::dead_letter: dead letter child=app/a incarnation=1 reason=handler_error \
                event_type=\"finding::bus::Order\" cause=\"failed: no such order\" count=2";
    assert_eq!(log.lines(), [line]);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn otp_106_all_registered_handlers_get_an_event_once_outside_of_the_emitter() {
    let journal = Journal::default();
    let app = start([reader("a", &journal), reader("b", &journal), reader("c", &journal)]).await;
    let mut letters = app.dead_letters();
    app.bus().emit(Order(1));
    assert!(journal.taken().is_empty(), "none runs in the emitter");
    settle().await;
    assert_eq!(journal.taken(), ["a 1", "b 1", "c 1"]);

    // No handler is registered under this type, or on this channel.
    app.bus().emit(Refund(2));
    app.bus().channel("other").unwrap().emit(Order(3));
    settle().await;
    assert!(journal.taken().is_empty());
    assert_eq!(described(&mut letters), ["no_handler app Refund", "no_handler app Order"]);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn events_of_one_emitter_arrive_in_order_and_one_at_a_time() {
    let journal = Journal::default();
    let seen = journal.clone();
    let a = member("a", move |ctx| {
        let seen = seen.clone();
        ctx.bus().on(move |order: Arc<Order>| {
            let seen = seen.clone();
            async move {
                seen.note(format!("begin {}", order.0));
                sleep(Duration::from_secs(1)).await;
                seen.note(format!("end {}", order.0));
            }
        });
    });
    let app = start([a]).await;
    app.bus().emit(Order(1));
    app.bus().emit(Order(2));
    sleep(Duration::from_secs(3)).await;
    assert_eq!(journal.taken(), ["begin 1", "end 1", "begin 2", "end 2"]);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_handler_of_one_event_is_gone_with_it() {
    let journal = Journal::default();
    let seen = journal.clone();
    let a = member("a", move |ctx| {
        let seen = seen.clone();
        let once = ctx.bus().once(async move |order: Arc<Order>| {
            seen.note(format!("once {}", order.0));
        });
        assert!(once.is_active());
    });
    let app = start([a]).await;
    let mut letters = app.dead_letters();
    app.bus().emit(Order(1));
    app.bus().emit(Order(2));
    settle().await;
    assert_eq!(journal.taken(), ["once 1"]);
    assert_eq!(described(&mut letters), ["no_handler app Order"]);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn handlers_are_found_by_channel_and_type() {
    let journal = Journal::default();
    let seen = journal.clone();
    let a = member("a", move |ctx| {
        for name in ["north", "south"] {
            let seen = seen.clone();
            ctx.bus().channel(name).unwrap().on(move |order: Arc<Order>| {
                seen.note(format!("{name} {}", order.0));
                async {}
            });
        }
    });
    let app = start([a]).await;
    let north = app.bus().channel("north").unwrap();
    north.emit(Order(1));
    north.channel("south").unwrap().emit(Order(2));
    settle().await;
    assert_eq!(journal.taken(), ["north 1", "south 2"]);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_emits_its_own_event_lets_other_tasks_run() {
    let journal = Journal::default();
    let seen = journal.clone();
    let a = member("a", move |ctx| {
        let (bus, seen) = (ctx.bus(), seen.clone());
        ctx.bus().on(move |order: Arc<Order>| {
            match order.0 {
                100 => seen.note("the hundredth"),
                number => bus.emit(Order(number + 1)),
            }
            async {}
        });
        ctx.bus().emit(Order(0));
    });
    let app = start([a]).await;
    assert_eq!(journal.taken(), ["the hundredth"]);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn each_tree_has_a_bus_of_its_own() {
    let (first, second) = (Journal::default(), Journal::default());
    let trees = (start([reader("a", &first)]).await, start([reader("a", &second)]).await);
    trees.0.bus().emit(Order(1));
    settle().await;
    assert_eq!((first.taken(), second.taken()), (vec!["a 1".to_owned()], vec![]));
    trees.0.stop("enough").await.unwrap();
    trees.1.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_event_without_a_handler_names_its_emitter_at_every_level() {
    let shop = Supervisor::builder("shop");
    let app = Supervisor::builder("app").child(shop).build().unwrap().start().await.unwrap();
    let shop = app.supervisor("shop").await.unwrap();
    let mut letters = [app.dead_letters(), shop.dead_letters()];
    shop.start_child(member("emitter", |ctx| ctx.bus().emit(Order(5)))).await.unwrap();
    settle().await;
    for letters in &mut letters {
        let letter = letters.try_next().unwrap();
        assert_eq!(letter.reason, DeadLetterReason::NoHandler);
        assert_eq!((letter.target.as_str(), letter.incarnation), ("app/shop/emitter", 1));
        assert!(letter.is::<Arc<Order>>() && !letter.is::<Order>());
        assert!(letters.try_next().is_none());
    }
    app.stop("enough").await.unwrap();
}
