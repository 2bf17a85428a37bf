//! An inbox may be any parameter after the context, and have any name.

#![deny(warnings)]

use std::fmt::Display;

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use verger::mailbox::{Address, Inbox, Mailbox, Overflow, SendError, WhileDown};
use verger::{ChildSpec, Context, Exit, supervisor, worker};

type Log = UnboundedSender<String>;

#[worker]
async fn alone(mut inbox: Inbox<&'static str>) {
    while inbox.recv().await.is_some() {}
}

#[worker]
async fn context(ctx: Context, _: verger::mailbox::Inbox<u32>) {
    ctx.cancelled().await;
}

/// It has its own words for everything.
#[worker(name = "the-last", capacity = 2, restart = "transient", mailbox = patient)]
async fn last(log: Log, (left, right): (u32, u32), mut lines: Inbox<String>) -> Exit {
    while let Some(line) = lines.recv().await {
        let _ = log.send(format!("{line} {left} {right}"));
    }
    Ok(())
}

fn patient<M: Send + 'static>(mailbox: Mailbox<M>) -> Mailbox<M> {
    mailbox.unlimited_attempts()
}

/// The keys may use what the constructor is given.
#[worker(
    capacity = room,
    mailbox = |it| it.overflow(Overflow::DropOldest).while_down(WhileDown::Forward(spare.clone())),
)]
async fn between(room: usize, _inbox: Inbox<String>, spare: Address<String>) {
    let _ = (room, spare.len());
}

#[worker(mailbox = |it: Mailbox<M>| it.max_attempts(3))]
async fn generic<M: Display, const N: usize>(ctx: Context, mut inbox: Inbox<M>, log: [Log; N]) {
    ctx.set_status("it runs");
    while let Some(delivery) = inbox.deliver().await {
        for log in &log {
            let _ = log.send(delivery.to_string());
        }
        delivery.ack();
    }
}

#[worker]
async fn anonymous(mut inbox: Inbox<u32>, text: impl Display) {
    inbox.recv().await;
    let _ = text.to_string();
}

macro_rules! reader {
    ($name:ident, $inbox:ty, $capacity:expr, $mailbox:expr) => {
        #[worker(capacity = $capacity, mailbox = $mailbox)]
        async fn $name(mut inbox: $inbox) {
            inbox.recv().await;
        }
    };
}

reader!(by_macro, Inbox<u32>, 7, |it| it.max_attempts(1));

#[supervisor]
struct App {
    #[child]
    alone: ChildSpec,
    #[child]
    context: ChildSpec,
    #[child]
    last: ChildSpec,
    #[child]
    between: ChildSpec,
    #[child]
    generic: ChildSpec,
    #[child]
    anonymous: ChildSpec,
    #[child]
    by_macro: ChildSpec,
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let (log, mut lines) = unbounded_channel();
    let (alone, alone_address) = alone();
    let (context, context_address) = context();
    let (last, last_address) = last(log.clone(), (1, 2));
    let (between, between_address) = between(3, last_address.clone());
    let (generic, generic_address) = generic::<u32, 1>([log]);
    let (anonymous, _) = anonymous("text");
    let (by_macro, by_macro_address) = by_macro();

    assert!(format!("{last:?}").contains("the-last"), "{last:?}");
    assert_eq!(alone_address.capacity(), 1000);
    assert_eq!(context_address.capacity(), 1000);
    assert_eq!(last_address.capacity(), 2);
    assert_eq!(between_address.capacity(), 3);
    assert_eq!(generic_address.capacity(), 1000);
    assert_eq!(by_macro_address.capacity(), 7);

    last_address.try_send("first".to_owned()).unwrap();
    last_address.try_send("second".to_owned()).unwrap();
    let third = last_address.try_send("third".to_owned());
    assert!(matches!(third, Err(SendError::Full { capacity: 2, .. })), "{third:?}");
    generic_address.try_send(5).unwrap();

    let app = App { alone, context, last, between, generic, anonymous, by_macro };
    let tree = app.builder().build().unwrap().start().await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    tree.stop("the test is over").await.unwrap();
    let mut all = Vec::new();
    while let Ok(line) = lines.try_recv() {
        all.push(line);
    }
    all.sort();
    assert_eq!(all, ["5", "first 1 2", "second 1 2"]);
    assert!(alone_address.is_closed());
}
