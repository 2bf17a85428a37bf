//! A kameo actor as a child: `run_actor` is the adapter.
//!
//! ```text
//! app          one_for_one
//! └─ tally     an actor that adds up numbers, and panics at 13
//! ```
//!
//! * Kept across a restart: the name, the restart policy with its backoff and limits, the place in the start and the stop.
//! * Lost with the actor: its state, its ID, its links, and the messages in its queue, also those behind the one at which it
//!   has panicked. An `ActorRef` of it fails from then on; a sibling gets the next one with `ctx.service()` or
//!   `ctx.watch_service()`. Messages that have to survive belong into a mailbox of verger.
//!
//! Kameo's own supervision isn't used: an actor that is restarted by two supervisors counts in neither.
//!
//! ```text
//! cargo run --bin kameo
//! ```

use std::convert::Infallible;
use std::pin::pin;
use std::process::ExitCode;

use anyhow::ensure;
use kameo::actor::{Actor, ActorRef, Spawn};
use kameo::error::ActorStopReason;
use kameo::message::{Context as MessageContext, Message};
use recipes::until_active;
use verger::{Context, Exit, Readiness, Supervisor, worker};

/// Runs an actor as this incarnation of a child, and provides its `ActorRef`.
async fn run_actor<A: Actor>(ctx: Context, arguments: A::Args) -> Exit {
    let actor = A::prepare();
    let address = actor.actor_ref().clone();
    ctx.provide(address.clone())?;
    // In the task of the child, and not in one of its own: if the child is aborted, the actor is dropped with it, without
    // `on_stop`.
    let mut actor = pin!(actor.run(arguments));
    let until_stopped = async {
        address.wait_for_startup().await;
        ctx.ready();
        ctx.cancelled().await;
        // After the messages that are queued.
        address.stop_gracefully().await
    };
    let ended = tokio::select! {
        ended = &mut actor => ended,
        _ = until_stopped => actor.await,
    };
    match ended {
        Ok((_, ActorStopReason::Normal)) => Ok(()),
        // A panic of a handler is one of the reasons.
        Ok((_, reason)) => Err(reason.to_string().into()),
        // `on_start` has failed, which is a failed activation of the child.
        Err(error) => Err(error.to_string().into()),
    }
}

struct Tally(u32);

impl Actor for Tally {
    type Args = ();
    type Error = Infallible;

    async fn on_start((): (), _: ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(Self(0))
    }
}

struct Add(u32);

/// Replies with the total.
impl Message<Add> for Tally {
    type Reply = u32;

    async fn handle(&mut self, Add(number): Add, _: &mut MessageContext<Self, u32>) -> u32 {
        assert!(number != 13, "13 can't be added");
        self.0 += number;
        self.0
    }
}

async fn show() -> anyhow::Result<String> {
    let tally = worker("tally", |ctx| run_actor::<Tally>(ctx, ())).readiness(Readiness::Signal);
    let app = Supervisor::builder("app").child(tally).build()?.start().await?;

    let first: ActorRef<Tally> = app.service().await?;
    // The last number is behind the message at which the actor panics.
    for number in [1, 13, 2] {
        first.tell(Add(number)).await?;
    }
    until_active(&app, "tally", 2).await?;
    ensure!(first.tell(Add(4)).await.is_err(), "the first actor has received a message");

    let second: ActorRef<Tally> = app.service().await?;
    let total = second.ask(Add(8)).await?;
    let exit = app.which_child("tally").await?.last_exit.map(|it| it.to_string());

    app.kill("tally").await?;
    until_active(&app, "tally", 3).await?;
    ensure!(second.tell(Add(16)).await.is_err(), "the second actor outlives an abort of its child");
    let third: ActorRef<Tally> = app.service().await?;
    app.stop("the recipe is over").await?;
    ensure!(third.tell(Add(32)).await.is_err(), "the third actor outlives the stop of its child");
    Ok(format!("kameo: {}; the second actor's total is {total}", exit.unwrap_or_default()))
}

fn main() -> ExitCode {
    recipes::run(show())
}
