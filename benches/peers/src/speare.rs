//! speare: actors under a node, each with its own supervision.

use speare::{Actor, Backoff, Ctx, ExitReason, Limit, Node, Supervision};

use crate::board::{self, After, Failure, Order, Run};
use crate::peer::{ChildPlan, GROUP, Notes, Peer, Plan, Seen};
use crate::script;

pub struct Speare;

/// The place that is noted when a clean-up doesn't get the actor.
const STATELESS: &str = "`exit` called with `None`";

impl Peer for Speare {
    const PACKAGES: &[&str] = &["speare"];
    const PAUSED: bool = true;
    const UNCLAIMED: Notes = &[
        (
            GROUP,
            "there are no groups: a failed actor restarts itself, and a parent can ask all its \
             children to restart",
        ),
        ("window", "a limit has no period: \"restart at most this many times\""),
        ("escalation", "a callback tells the parent that an actor isn't restarted any more"),
    ];
    const DISCLAIMED: Notes = &[
        ("panic text", "an actor \"is restarted on error\"; panics aren't mentioned"),
        ("start", "`spawn` isn't async and doesn't wait for `init`"),
        ("order", "actors are independent of each other"),
        ("reverse", "`shutdown` stops all children, in no stated order"),
    ];
    type Tree = Node;

    async fn start(plan: Plan) -> Node {
        let mut node = Node::new();
        for child in plan.children {
            let max = Limit::Amount(plan.restarts.into());
            node.actor::<Worker>(child)
                .supervision(Supervision::Restart { max, backoff: Backoff::None })
                .watch(|error| board::saw("the callback `watch`", error.to_string()))
                .spawn();
        }
        node
    }

    async fn stop(mut tree: Node) {
        tree.shutdown().await;
    }

    async fn ask(probe: &str) -> Seen {
        let seen = script::ask::<Self>(probe).await?;
        if probe == "clean-up" && board::places("").0.contains(&STATELESS) {
            return Ok(
                "but without the actor's state: `exit` is called with `None` in its place".into()
            );
        }
        Ok(seen)
    }
}

struct Worker {
    /// Notes its end when it is dropped.
    _run: Run,
}

impl Actor for Worker {
    type Props = ChildPlan;
    type Msg = Order;
    type Err = Failure;

    async fn init(ctx: &mut Ctx<Self>) -> Result<Self, Failure> {
        let this = ctx.this().clone();
        let run = Run::started(*ctx.props(), move |order| this.send(order));
        run.set_up().await;
        Ok(Self { _run: run })
    }

    async fn handle(&mut self, order: Order, ctx: &mut Ctx<Self>) -> Result<(), Failure> {
        if order.carry_out().await? == After::Ends {
            ctx.this().stop();
        }
        Ok(())
    }

    async fn exit(this: Option<Self>, _reason: ExitReason<Self>, ctx: &mut Ctx<Self>) {
        if this.is_none() {
            board::saw(STATELESS, "");
        }
        board::clean_up(*ctx.props()).await;
    }
}
