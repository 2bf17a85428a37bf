//! A child that subscribes to the events and dead letters of its tree, and acts on them.
//!
//! ```text
//! app            one_for_one   ends once the operator has nothing left to do
//! ├─ operator                  subscribes, and acts
//! ├─ writer                    takes orders; order 13 makes it fail
//! └─ vendor                    can't be reached at its first address, so it is given up
//! ```
//!
//! It breaks by itself: one order can't be handled, and one address is wrong. Watch how the operator reacts. It keeps the
//! order, which isn't delivered again, and retries the vendor at its other address. The log and the console show which
//! call that was, and why.
//!
//! ```text
//! cargo run --example events --features mailbox
//! ```

#![expect(clippy::print_stdout, reason = "the example prints what happens")]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use tokio::time::timeout;
use verger::dead_letter::DeadLetter;
use verger::mailbox::Inbox;
use verger::policy::{AutoShutdown, Jitter, OnExhausted};
use verger::status::{Event, EventKind};
use verger::{
    Backoff, Context, Exit, Lifecycle, Readiness, RestartType, Supervisor, SupervisorHandle,
    mailbox, worker, worker_with_mailbox,
};

const ADDRESSES: [&str; 2] = ["10.0.0.1", "10.0.0.2"];
/// Which of them is used. The setting outlives the incarnations of the vendor.
static ADDRESS: AtomicUsize = AtomicUsize::new(0);

struct Order(u32);

/// What the operator still waits for.
type Open = BTreeSet<&'static str>;

/// Ends when nothing is open.
async fn operator(ctx: Context) -> Exit {
    let app = ctx.parent();
    let (mut events, mut letters) = (app.events(), app.dead_letters());
    // What starts after this child can't be missed.
    ctx.ready();
    let mut open = Open::from(["order", "vendor", "writer"]);
    while !open.is_empty() {
        tokio::select! {
            Some(event) = events.next() => on_event(&app, &event, &mut open).await?,
            Some(letter) = letters.next() => on_letter(&letter, &mut open),
            () = ctx.cancelled() => return Ok(()),
        }
    }
    println!("operator: the order is kept, writer and vendor are up");
    Ok(())
}

async fn on_event(app: &SupervisorHandle, event: &Event, open: &mut Open) -> Exit {
    match (&event.kind, event.path.name()) {
        (EventKind::GaveUp { .. }, "vendor") => {
            println!("event: {event}");
            ADDRESS.store(1, Ordering::Relaxed);
            // Its restarts are counted from the start again.
            app.on_behalf_of("operator", "the other address").resume("vendor").await?;
        }
        // The answer to the call above.
        (EventKind::Called { .. }, "vendor") => {
            println!("event: {event}");
            open.remove("vendor");
        }
        (EventKind::Moved { to: Lifecycle::Active, .. }, "writer") if event.incarnation > 1 => {
            println!("event: {event}");
            open.remove("writer");
        }
        (EventKind::Moved { to: Lifecycle::Errored | Lifecycle::Restarting, .. }, _) => {
            println!("event: {event}");
        }
        _ => {}
    }
    Ok(())
}

fn on_letter(letter: &DeadLetter, open: &mut Open) {
    // The letter that says that the vendor was given up has no message.
    if let Some(Order(number)) = letter.take() {
        println!("letter: {} for {}: order {number} is kept", letter.reason, letter.target);
        open.remove("order");
    }
}

async fn writer(_ctx: Context, mut inbox: Inbox<Order>) -> Exit {
    while let Some(order) = inbox.deliver().await {
        if order.0 == 13 {
            return Err("order 13 has no customer".into());
        }
        println!("writer: order {}", order.0);
        order.ack();
    }
    Ok(())
}

async fn vendor(ctx: Context) -> Exit {
    let address = ADDRESSES[ADDRESS.load(Ordering::Relaxed)];
    println!("vendor: connects to {address}");
    if address == ADDRESSES[0] {
        return Err("no route to host".into());
    }
    ctx.cancelled().await;
    Ok(())
}

async fn show() -> anyhow::Result<()> {
    let delay = Backoff::constant(Duration::from_millis(250)).jitter(Jitter::None);
    let operator = worker("operator", operator).readiness(Readiness::Signal);
    let (orders, inbox) = mailbox::<Order>();
    let writer = worker_with_mailbox("writer", inbox.max_attempts(1), writer);
    let vendor = worker("vendor", vendor).consecutive_restarts(1);
    let app = Supervisor::builder("app")
        .auto_shutdown(AutoShutdown::AnySignificant)
        .child(operator.restart(RestartType::Transient).significant())
        .child(writer.backoff(delay.clone()))
        .child(vendor.backoff(delay).on_exhausted(OnExhausted::StopChild))
        .build()?;
    let orders = tokio::spawn(async move {
        for number in [12, 13, 14] {
            orders.send(Order(number)).await?;
        }
        anyhow::Ok(())
    });
    app.run().await?;
    orders.await?
}

#[tokio::main]
pub(crate) async fn main() -> anyhow::Result<()> {
    timeout(Duration::from_secs(20), show()).await.context("the example takes too long")?
}
