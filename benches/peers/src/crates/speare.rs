//! speare: actors under a node, each with its own supervision.

use speare::{Actor, Backoff, Ctx, ExitReason, Limit, Node, Supervision};

use crate::board::{self, board};
use crate::child::{Failure, Life, Order};
use crate::peer::{LONG, Peer, Plan};
use crate::texts;

pub struct Speare;

impl Peer for Speare {
    const PACKAGES: &[&str] = &["speare"];
    const PAUSED: bool = true;
    type Tree = Node;

    async fn start<L: Life>(plan: Plan) -> Node {
        let mut node = Node::new();
        for index in 0..plan.width() {
            let max = Limit::Amount(plan.limit((u32::MAX, LONG)).0.into());
            node.actor::<Worker<L>>(index)
                .supervision(Supervision::Restart { max, backoff: Backoff::None })
                .watch(|error| texts::saw("the callback `watch`", error))
                .spawn();
        }
        node
    }

    async fn stop(mut tree: Node) {
        tree.shutdown().await;
    }
}

struct Worker<L> {
    /// Ends when it is dropped.
    _life: L,
}

impl<L: Life> Actor for Worker<L> {
    type Props = usize;
    type Msg = Order;
    type Err = Failure;

    async fn init(ctx: &mut Ctx<Self>) -> Result<Self, Failure> {
        let this = ctx.this().clone();
        let life = L::begin(*ctx.props(), move |order| this.send(order)).await;
        Ok(Self { _life: life })
    }

    async fn handle(&mut self, order: Order, ctx: &mut Ctx<Self>) -> Result<(), Failure> {
        if L::obey(order).await?.is_break() {
            ctx.this().stop();
        }
        Ok(())
    }

    async fn exit(this: Option<Self>, _reason: ExitReason<Self>, ctx: &mut Ctx<Self>) {
        if this.is_none() {
            board().remark =
                "but without the actor's state: `exit` is called with `None` in its place";
        }
        board::clean_up(*ctx.props()).await;
    }
}
