//! Messages to a child, and questions.

use tokio::runtime::Runtime;
use verger::{Address, Exit, Reply, Supervisor, SupervisorHandle, mailbox, worker_with_mailbox};

use crate::children::started;
use crate::{EVENTS, Scenario, counted, runtime, settle};

pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario::alone("message", "message, sent and received", message),
    Scenario::alone("message, no room", "message, most are waited with", waiting),
    Scenario::alone("ask", "question, with its answer", ask),
];

enum Message {
    Work(u32),
    Question(Reply<u32>),
}

/// The sum of the work is the answer.
fn reader(runtime: &Runtime, room: usize) -> (SupervisorHandle, Address<Message>) {
    let (address, mailbox) = mailbox::<Message>(room);
    let spec = worker_with_mailbox("reader", mailbox, async |_ctx, mut inbox| -> Exit {
        let mut sum = 0;
        while let Some(message) = inbox.recv().await {
            match message {
                Message::Work(n) => sum += n,
                Message::Question(reply) => Reply::send(&reply, sum),
            }
        }
        Ok(())
    });
    let tree = started(runtime, Supervisor::builder("app").child(spec).build());
    (tree, address)
}

fn message() {
    let runtime = runtime();
    let (_tree, address) = reader(&runtime, EVENTS as usize + 1);
    let sum = counted(&runtime, async {
        for n in 0..EVENTS {
            address.try_send(Message::Work(n)).expect("there is room");
        }
        address.ask(Message::Question).await
    });
    assert_eq!(sum, Ok(EVENTS * (EVENTS - 1) / 2));
}

fn waiting() {
    let runtime = runtime();
    let (_tree, address) = reader(&runtime, 1);
    counted(&runtime, async {
        for n in 0..EVENTS {
            address.send(Message::Work(n)).await.expect("it is read");
        }
        settle().await;
    });
}

fn ask() {
    let runtime = runtime();
    let (_tree, address) = reader(&runtime, 64);
    counted(&runtime, async {
        for _ in 0..EVENTS {
            address.ask(Message::Question).await.expect("an answer");
        }
    });
}
