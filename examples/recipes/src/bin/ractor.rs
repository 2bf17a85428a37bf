//! A ractor actor as a child: `run_actor` is the adapter.
//!
//! ```text
//! app          one_for_one
//! └─ tally     an actor that adds up numbers, and panics at 13
//! ```
//!
//! * Kept across a restart: the name, the restart policy with its backoff and limits, the place in the start and the stop.
//! * Lost with the actor: its state, its ID, and the messages in its queue, also those behind the one at which it has
//!   panicked. An `ActorRef` of it fails from then on; a sibling gets the next one with `ctx.service()` or
//!   `ctx.watch_service()`. Messages that have to survive belong into a mailbox of verger.
//!
//! ```text
//! cargo run --bin ractor
//! ```

use std::process::ExitCode;

use anyhow::ensure;
use ractor::{
    Actor, ActorCell, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent, call,
};
use recipes::until_active;
use tokio::sync::oneshot;
use verger::{Context, Exit, Readiness, Supervisor, worker};

/// Runs an actor as this incarnation of a child, and provides its `ActorRef`.
async fn run_actor<A: Actor>(ctx: Context, actor: A, arguments: A::Arguments) -> Exit {
    let (report, mut exit) = oneshot::channel();
    let (watcher, _) = Actor::spawn(None, Watcher, report).await?;
    let _watcher = KillOnDrop(watcher.get_cell());
    // An error or a panic of `pre_start` is a failed activation of the child.
    let (actor, task) = Actor::spawn_linked(None, actor, arguments, watcher.get_cell()).await?;
    ctx.provide(actor.clone())?;
    ctx.ready();
    let exit = tokio::select! {
        exit = &mut exit => exit?,
        () = ctx.cancelled() => {
            // After the present message. With `drain`, after all that are queued.
            actor.stop(None);
            exit.await?
        }
    };
    task.await?;
    exit
}

/// Is linked to the actor: ractor reports only to a supervisor why an actor has ended.
struct Watcher;

type Report = oneshot::Sender<Exit>;
type Done<T = ()> = Result<T, ActorProcessingErr>;

impl Actor for Watcher {
    type Msg = ();
    type State = Option<Report>;
    type Arguments = Report;

    async fn pre_start(&self, _: ActorRef<()>, report: Report) -> Done<Option<Report>> {
        Ok(Some(report))
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<()>,
        event: SupervisionEvent,
        report: &mut Option<Report>,
    ) -> Done {
        let exit = match event {
            // An error, or the text of a panic.
            SupervisionEvent::ActorFailed(_, error) => Err(error.into()),
            SupervisionEvent::ActorTerminated(..) => Ok(()),
            _ => return Ok(()),
        };
        // The child may have been aborted.
        report.take().map(|report| report.send(exit));
        Ok(())
    }
}

/// Ends the watcher with the child, also if that is aborted. In ractor, the actor below a watcher ends with it.
struct KillOnDrop(ActorCell);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill();
    }
}

struct Tally;

enum Message {
    Add(u32),
    Total(RpcReplyPort<u32>),
}

impl Actor for Tally {
    type Msg = Message;
    type State = u32;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Message>, (): ()) -> Done<u32> {
        Ok(0)
    }

    async fn handle(&self, _: ActorRef<Message>, message: Message, total: &mut u32) -> Done {
        match message {
            Message::Add(13) => panic!("13 can't be added"),
            Message::Add(number) => *total += number,
            Message::Total(reply) => reply.send(*total)?,
        }
        Ok(())
    }
}

async fn show() -> anyhow::Result<String> {
    let tally = worker("tally", |ctx| run_actor(ctx, Tally, ())).readiness(Readiness::Signal);
    let app = Supervisor::builder("app").child(tally).build()?.start().await?;

    let first: ActorRef<Message> = app.service().await?;
    // The last number is behind the message at which the actor panics.
    for number in [1, 13, 2] {
        first.cast(Message::Add(number))?;
    }
    until_active(&app, "tally", 2).await?;
    ensure!(first.cast(Message::Add(4)).is_err(), "the first actor has received a message");

    let second: ActorRef<Message> = app.service().await?;
    second.cast(Message::Add(8))?;
    let total = call!(second, Message::Total)?;
    let exit = app.which_child("tally").await?.last_exit.map(|it| it.to_string());

    app.kill("tally").await?;
    until_active(&app, "tally", 3).await?;
    ensure!(
        second.cast(Message::Add(16)).is_err(),
        "the second actor outlives an abort of its child"
    );
    let third: ActorRef<Message> = app.service().await?;
    app.stop("the recipe is over").await?;
    ensure!(
        third.cast(Message::Add(32)).is_err(),
        "the third actor outlives the stop of its child"
    );
    Ok(format!("ractor: {}; the second actor's total is {total}", exit.unwrap_or_default()))
}

fn main() -> ExitCode {
    recipes::run(show())
}
