//! Handlers of dead letters.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tracing::level_filters::LevelFilter;
use verger::dead_letter::{DeadLetter, DeadLetterReason, DeadLetterStore, ReplayError};
use verger::{RestartType, Supervisor, mailbox, worker_with_mailbox};

use super::{Journal, Order, Refund, describe, described, member, start};
use crate::common::settle;
use crate::log::Log;

#[tokio::test(start_paused = true)]
async fn each_of_two_subscribers_gets_each_letter_of_mailboxes_and_of_the_bus() {
    let journals = [Journal::default(), Journal::default()];
    let subscriber = |name, journal: &Journal| {
        let journal = journal.clone();
        member(name, move |ctx| {
            let journal = journal.clone();
            ctx.bus().on_dead_letter(move |letter| {
                let journal = journal.clone();
                async move { journal.note(describe(&letter)) }
            });
        })
    };
    let (address, orders) = mailbox::<u32>();
    let clerk = worker_with_mailbox("clerk", orders, async |_ctx, _inbox| {});
    let shop = Supervisor::builder("shop").child(clerk.restart(RestartType::Transient));
    let [first, second] = [("first", &journals[0]), ("second", &journals[1])];
    let below = Supervisor::builder("below").child(subscriber(second.0, second.1));
    let app = Supervisor::builder("app").child(subscriber(first.0, first.1)).child(below);
    address.try_send(7).unwrap();
    let app = app.child(shop).build().unwrap().start().await.unwrap();
    settle().await;
    app.bus().emit(Order(1));
    settle().await;
    let expected = ["undelivered_at_stop app/shop/clerk u32", "no_handler app Order"];
    for journal in &journals {
        assert_eq!(journal.taken(), expected);
    }
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_a_handler_of_letters_emits_makes_no_letters() {
    let log = Log::at(LevelFilter::DEBUG);
    let journal = Journal::default();
    let seen = journal.clone();
    let a = member("a", move |ctx| {
        let (bus, seen) = (ctx.bus(), seen.clone());
        ctx.bus().on_dead_letter(move |letter| {
            let (bus, seen) = (bus.clone(), seen.clone());
            async move {
                seen.note(describe(&letter));
                sleep(Duration::from_secs(1)).await;
                bus.emit(Refund(1));
            }
        });
    });
    let app = start([a]).await;
    log.lines();
    app.bus().emit(Order(1));
    sleep(Duration::from_secs(10)).await;
    assert_eq!(journal.taken(), ["no_handler app Order"]);
    let line = "DEBUG message{child=app/a incarnation=1 event_type=\"DeadLetter\"}: verger::dead_letter: an event that a dead-letter handler has emitted was not \
                delivered: dropped child=app/a reason=no_handler event_type=\"finding::bus::Refund\"";
    let mut lines = log.lines();
    lines.retain(|line| line.contains("Refund"));
    assert_eq!(lines, [line]);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_letter_about_a_letter_is_dropped() {
    let app = start([]).await;
    let mut letters = app.dead_letters();
    app.bus().emit(Order(1));
    let letter = letters.try_next().unwrap();
    app.bus().emit::<DeadLetter>(letter);
    assert!(letters.try_next().is_none());
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn letters_of_events_are_suppressed_stored_and_not_replayed() {
    let store = DeadLetterStore::default();
    let app = Supervisor::builder("app").suppress_dead_letters::<Order>();
    let app = app.dead_letter_store(&store).build().unwrap().start().await.unwrap();
    let mut letters = app.dead_letters();
    app.bus().emit(Order(1));
    app.bus().emit(Refund(2));
    assert_eq!(described(&mut letters), ["no_handler app Refund"]);
    assert_eq!(store.counts().of(DeadLetterReason::NoHandler), 2);
    let entries = store.entries();
    assert!(matches!(store.replay(entries[0].id), Err(ReplayError::Unresolved { .. })));
    assert_eq!(entries[0].letter.take::<Arc<Order>>().unwrap().0, 1);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_handler_of_letters_can_be_unregistered() {
    let journal = Journal::default();
    let seen = journal.clone();
    let a = member("a", move |ctx| {
        let seen = seen.clone();
        let registration = ctx.bus().on_dead_letter(move |letter| {
            seen.note(describe(&letter));
            async {}
        });
        ctx.bus().once(async move |_: Arc<Refund>| registration.unregister());
    });
    let app = start([a]).await;
    app.bus().emit(Order(1));
    settle().await;
    app.bus().emit(Refund(1));
    settle().await;
    app.bus().emit(Order(2));
    settle().await;
    assert_eq!(journal.taken(), ["no_handler app Order"]);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_slow_handler_of_letters_misses_the_oldest_and_that_is_logged() {
    let log = Log::at(LevelFilter::WARN);
    let journal = Journal::default();
    let seen = journal.clone();
    let a = member("a", move |ctx| {
        let seen = seen.clone();
        ctx.bus().on_dead_letter(move |letter| {
            // Of a letter that is more than 128 letters old, the message is gone.
            let order = letter.take::<Arc<Order>>();
            seen.note(order.map_or("gone".to_owned(), |order| order.0.to_string()));
            async {}
        });
    });
    let app = start([a]).await;
    for number in 1..=1030 {
        app.bus().emit(Order(number));
    }
    settle().await;
    sleep(Duration::from_secs(1)).await;
    let seen = journal.taken();
    let kept = (903..=1030).map(|number| number.to_string());
    assert_eq!(seen, [vec!["gone".to_owned(); 896], kept.collect()].concat());
    let mut lines = log.lines();
    lines.retain(|line| line.contains("missed"));
    let line = "WARN verger::dead_letter: a dead-letter handler is too slow: letters missed child=app/a missed=6";
    assert_eq!(lines, [line]);
    app.stop("enough").await.unwrap();
}
