//! The children: one that does what its messages say, and one that messages are forwarded to.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use tokio::time::sleep;
use verger::mailbox::{
    Address, Closing, Delay, Delivery, Drain, Inbox, Mailbox, Next as Received, Overflow, WhileDown,
};
use verger::{ChildSpec, Context, Exit, Readiness, RestartType, worker_with_mailbox};

use super::ledger::{Fate, Ledger, Message};
use super::script::{Down, Options, Reading, Then};

/// Returns the mailbox with the options.
pub(super) fn mailbox(
    options: &Options,
    mailbox: Mailbox<Message>,
    ledger: &Arc<Ledger>,
    other: &Address<Message>,
) -> Mailbox<Message> {
    let overflows = [Overflow::Reject, Overflow::DropOldest, Overflow::DropNewest];
    let mailbox = mailbox.overflow(overflows[usize::from(options.overflow % 3)]);
    let mailbox = mailbox.while_down(match options.while_down {
        Down::Stash => WhileDown::Stash,
        Down::Drop => WhileDown::Drop,
        Down::DeadLetter => WhileDown::DeadLetter,
        Down::Handler => {
            let ledger = Arc::clone(ledger);
            WhileDown::reply(move |message: Message| {
                ledger.fate(message.number, Fate::Diverted);
                match message.then {
                    Then::Panic => resume_unwind(Box::new("on purpose")),
                    _ => message.answer(),
                }
            })
        }
        Down::Forward => WhileDown::Forward(other.clone()),
    });
    let drains = [Drain::AtReady, Drain::AtStart, Drain::After(Duration::from_millis(20))];
    let mailbox = match drains.get(usize::from(options.drain % 4)) {
        Some(drain) if options.hold_new => mailbox.hold_until(*drain),
        Some(drain) => mailbox.drain(*drain),
        None => mailbox,
    };
    let mailbox = if options.overtake { mailbox.allow_overtake() } else { mailbox };
    let mailbox = if options.manual_closing { mailbox.closing(Closing::Manually) } else { mailbox };
    let mailbox = if options.delays_delivery { mailbox.delay(Delay::Delivery) } else { mailbox };
    let mailbox = match options.max_attempts() {
        Some(max) => mailbox.max_attempts(max),
        None => mailbox.unlimited_attempts(),
    };
    if options.has_final {
        mailbox.final_message(|message| message.then == Then::End)
    } else {
        mailbox
    }
}

/// Returns the child with the options.
pub(super) fn reader(
    options: &Options,
    mailbox: Mailbox<Message>,
    ledger: &Arc<Ledger>,
) -> ChildSpec {
    let (ledger, reading) = (Arc::clone(ledger), options.reading);
    let spec = worker_with_mailbox("reader", mailbox, move |ctx, inbox| {
        let reader = Reader { ctx, ledger: Arc::clone(&ledger), kept: Vec::new() };
        reader.read(inbox, reading)
    });
    let spec = match options.restart % 3 {
        0 => spec,
        1 => spec.restart(RestartType::Transient),
        _ => spec.restart(RestartType::Temporary),
    };
    let spec = if options.signals { spec.readiness(Readiness::Signal) } else { spec };
    if options.starts_on_message { spec.start_on_message() } else { spec }
}

struct Reader {
    ctx: Context,
    ledger: Arc<Ledger>,
    kept: Vec<Delivery<Message>>,
}

/// What the child does next.
enum Next {
    GoOn,
    End(Exit),
}

impl Reader {
    async fn read(mut self, mut inbox: Inbox<Message>, reading: Reading) -> Exit {
        let ready = self.ctx.clone();
        tokio::spawn(async move {
            sleep(Duration::from_millis(20)).await;
            ready.ready();
        });
        let mut delivers = reading == Reading::Deliver;
        // Under a manual closing, `None` doesn't follow a cancellation.
        while !self.ctx.is_cancelled() {
            let next = if delivers {
                let next = self.ctx.run_until_cancelled(inbox.deliver()).await;
                let Some(Some(delivery)) = next else { break };
                self.delivered(&mut inbox, delivery).await
            } else {
                let Received::Message(message) = inbox.next().await else { break };
                self.received(&mut inbox, message).await
            };
            if let Next::End(exit) = next {
                return exit;
            }
            delivers ^= reading == Reading::Alternate;
        }
        // The rest of the queue, if the child is stopped for good.
        inbox.close();
        while let Some(message) = inbox.recv().await {
            self.note(&message);
            message.answer();
        }
        Ok(())
    }

    fn note(&self, message: &Message) {
        let first = self.ledger.entry(message.number, |entry| entry.attempts == 0);
        if first {
            self.ledger.received(message.number);
        }
        self.ledger.fate(message.number, Fate::Handled);
    }

    async fn received(&mut self, inbox: &mut Inbox<Message>, message: Message) -> Next {
        self.note(&message);
        if message.then == Then::Hand {
            tokio::spawn(async move {
                sleep(Duration::from_millis(30)).await;
                message.answer();
            });
            return Next::GoOn;
        }
        if message.then != Then::PutBack {
            message.answer();
        }
        let then = message.then;
        drop(message);
        self.act(inbox, then).await
    }

    async fn delivered(&mut self, inbox: &mut Inbox<Message>, delivery: Delivery<Message>) -> Next {
        self.ledger.attempt(delivery.number, delivery.attempt());
        let then = delivery.then;
        match then {
            // A message that is put back each time is delivered for ever.
            Then::PutBack if delivery.attempt() <= 3 => drop(delivery),
            Then::Keep => {
                self.kept.push(delivery);
                if self.kept.len() > 2 {
                    std::mem::take(&mut self.kept).into_iter().rev().for_each(|it| self.ack(it));
                }
            }
            Then::Hand => {
                let ledger = Arc::clone(&self.ledger);
                tokio::spawn(async move {
                    sleep(Duration::from_millis(30)).await;
                    ledger.fate(delivery.number, Fate::Handled);
                    delivery.ack().answer();
                });
            }
            Then::Fail | Then::Panic if delivery.attempt() % 2 == 1 => {
                let exit = self.act(inbox, then).await;
                drop(delivery);
                return exit;
            }
            _ => self.ack(delivery),
        }
        self.act(inbox, then).await
    }

    fn ack(&self, delivery: Delivery<Message>) {
        self.ledger.fate(delivery.number, Fate::Handled);
        delivery.ack().answer();
    }

    async fn act(&mut self, inbox: &mut Inbox<Message>, then: Then) -> Next {
        match then {
            Then::GoOn | Then::PutBack | Then::Keep | Then::Hand => {}
            Then::Fail => return Next::End(Err("on purpose".into())),
            // Calls no panic hook, since a fuzzer's hook ends the process.
            Then::Panic => resume_unwind(Box::new("on purpose")),
            Then::End => return Next::End(Ok(())),
            Then::Dawdle => sleep(Duration::from_millis(300)).await,
            Then::Batch => {
                while let Some(message) = inbox.try_recv() {
                    self.note(&message);
                    message.answer();
                }
                while let Some(delivery) = inbox.try_deliver() {
                    self.ledger.attempt(delivery.number, delivery.attempt());
                    self.kept.push(delivery);
                }
                std::mem::take(&mut self.kept).into_iter().for_each(|kept| self.ack(kept));
            }
            Then::Close => inbox.close(),
            Then::Ready => self.ctx.ready(),
            Then::Healthy => self.ctx.report_healthy(),
            Then::Poll => {
                let mut noop = TaskContext::from_waker(Waker::noop());
                let polled = std::pin::pin!(inbox.recv()).poll(&mut noop);
                if let Poll::Ready(Some(message)) = polled {
                    self.note(&message);
                    message.answer();
                }
            }
            Then::StopSelf => self.ctx.stop_self(),
        }
        Next::GoOn
    }
}

/// The child that messages are forwarded to.
pub(super) async fn other(ledger: Arc<Ledger>, mut inbox: Inbox<Message>) {
    while let Some(message) = inbox.recv().await {
        ledger.fate(message.number, Fate::Forwarded);
        message.answer();
    }
}
