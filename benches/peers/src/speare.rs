//! speare: actors under a node, each with its own supervision.

use speare::{Actor, Backoff, Ctx, ExitReason, Limit, Node, Supervision};

use crate::board::{self, After, Failure, Order, Run};
use crate::peer::{ChildPlan, Clock, Peer, Plan};
use crate::probe::{Probe, Verdict};
use crate::script;

pub struct Speare;

/// What is seen when a clean-up doesn't get the actor that it is to clean up.
const STATELESS: &str = "`exit` called with `None`";

impl Peer for Speare {
    const PACKAGES: &[&str] = &["speare"];
    const CLOCK: Clock = Clock::Paused;
    type Tree = Node;

    async fn start(plan: Plan) -> Node {
        let mut node = Node::new();
        let max = u64::try_from(plan.restarts).expect("limits are small");
        for child in plan.children {
            let max = Limit::Amount(max);
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

    async fn start_nested(_inner: Plan) -> Node {
        unreachable!("declined")
    }

    async fn clean_up() -> Verdict {
        match script::clean_up::<Self>().await {
            Verdict::Yes(_) if board::places("").0.contains(&STATELESS) => Verdict::Yes(
                "but without the actor's state: `exit` is called with `None` in its place".into(),
            ),
            verdict => verdict,
        }
    }

    fn declines(probe: Probe) -> Option<Verdict> {
        Some(match probe {
            Probe::Group | Probe::Busy | Probe::Finished | Probe::Hung | Probe::Twice => {
                Verdict::not_claimed(
                    "there are no groups: a failed actor restarts itself, and a parent can ask \
                     all its children to restart",
                )
            }
            Probe::Window => {
                Verdict::not_claimed("a limit has no period: \"restart at most this many times\"")
            }
            Probe::Escalation => Verdict::not_claimed(
                "an actor that isn't restarted any more is told to its parent by a callback",
            ),
            _ => return None,
        })
    }

    fn disclaims(probe: Probe) -> Option<&'static str> {
        match probe {
            Probe::Panic | Probe::Text => {
                Some("an actor \"is restarted on error\"; panics aren't mentioned")
            }
            Probe::Start => Some("`spawn` isn't async and doesn't wait for `init`"),
            Probe::Order => Some("actors are independent of each other"),
            Probe::Reverse => Some("`shutdown` stops all children, in no stated order"),
            _ => None,
        }
    }
}

struct Worker {
    /// Says that it is over when it is dropped.
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
