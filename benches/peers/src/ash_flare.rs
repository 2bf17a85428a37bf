//! ash-flare: workers are added one at a time, with the call that waits for `initialize`.

use std::time::Duration;

use ash_flare::{
    RestartBackoff, RestartIntensity, RestartPolicy, RestartStrategy, ShutdownSignal,
    SupervisorHandle, SupervisorSpec,
};
use async_trait::async_trait;
use tokio::sync::mpsc;

use crate::board::{After, Failure, Order, Run};
use crate::peer::{ChildPlan, Notes, Peer, Plan};

pub struct AshFlare;

impl Peer for AshFlare {
    const PACKAGES: &[&str] = &["ash-flare"];
    const PAUSED: bool = false;
    const DISCLAIMED: Notes = &[
        ("twice", "a limit counts restarts, and crashes at the same time aren't spoken of"),
        (
            "clean-up",
            "`shutdown` \"requests a graceful shutdown of the supervisor tree\"; there is \
             nothing to wait for",
        ),
        ("reverse", "no order is given for a shutdown"),
    ];
    type Tree = SupervisorHandle<Worker>;

    async fn start(plan: Plan) -> Self::Tree {
        let handle = SupervisorHandle::start(spec("root", &plan));
        for child in plan.children {
            let worker = move |signal| Worker::new(child, signal);
            let patience = Duration::from_secs(5);
            handle
                .start_child_linked_with_signal(child.name, worker, policy(child), patience)
                .await
                .expect("the set-up ends in time");
        }
        handle
    }

    async fn stop(tree: Self::Tree) {
        tree.shutdown().await.expect("it runs");
    }

    async fn start_nested(inner: Plan) -> Self::Tree {
        let mut spec_of_inner = spec("inner", &inner);
        for child in inner.children {
            let worker = move |signal| Worker::new(child, signal);
            spec_of_inner = spec_of_inner.with_worker_signal(child.name, worker, policy(child));
        }
        let root = SupervisorSpec::new("root")
            .with_restart_intensity(RestartIntensity::new(10, 300))
            .with_restart_backoff(RestartBackoff::none())
            .with_supervisor(spec_of_inner);
        SupervisorHandle::start(root)
    }
}

fn spec(name: &str, plan: &Plan) -> SupervisorSpec<Worker> {
    let strategy =
        if plan.one_for_all { RestartStrategy::OneForAll } else { RestartStrategy::OneForOne };
    SupervisorSpec::new(name)
        .with_restart_strategy(strategy)
        .with_restart_intensity(RestartIntensity::new(
            plan.restarts as usize,
            plan.period.as_secs(),
        ))
        .with_restart_backoff(RestartBackoff::none())
}

fn policy(plan: ChildPlan) -> RestartPolicy {
    if plan.transient { RestartPolicy::Transient } else { RestartPolicy::Permanent }
}

pub struct Worker {
    plan: ChildPlan,
    signal: ShutdownSignal,
    /// `Some` from `initialize` on.
    life: Option<(Run, mpsc::UnboundedReceiver<Order>)>,
}

impl Worker {
    fn new(plan: ChildPlan, signal: ShutdownSignal) -> Self {
        Self { plan, signal, life: None }
    }
}

#[async_trait]
impl ash_flare::Worker for Worker {
    type Error = Failure;

    async fn initialize(&mut self) -> Result<(), Failure> {
        let (orders, told) = mpsc::unbounded_channel();
        let run = Run::started(self.plan, move |order| orders.send(order));
        run.set_up().await;
        self.life = Some((run, told));
        Ok(())
    }

    async fn run(&mut self) -> Result<(), Failure> {
        let (_, told) = self.life.as_mut().expect("initialize has returned");
        loop {
            tokio::select! {
                () = self.signal.cancelled() => return Ok(()),
                Some(order) = told.recv() => {
                    if order.carry_out().await? == After::Ends {
                        return Ok(());
                    }
                }
            }
        }
    }

    async fn shutdown(&mut self) -> Result<(), Failure> {
        if let Some((run, _)) = &self.life {
            run.clean_up().await;
        }
        Ok(())
    }
}
