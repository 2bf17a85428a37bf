//! ash-flare: workers are added one at a time, with the call that waits for `initialize`. Those of a
//! supervisor below a supervisor are known from its spec. Only probes run on it.

use std::time::Duration;

use ash_flare::{
    RestartBackoff, RestartIntensity, RestartPolicy, RestartStrategy, ShutdownSignal,
    SupervisorHandle, SupervisorSpec, Worker,
};
use async_trait::async_trait;
use tokio::sync::mpsc;

use crate::board::Probed;
use crate::child::{Failure, Life, Order};
use crate::peer::{LONG, Peer, Plan, name, restart};

pub struct AshFlare;

impl Peer for AshFlare {
    const PACKAGES: &[&str] = &["ash-flare"];
    type Tree = SupervisorHandle<Child>;

    async fn start<L: Life>(plan: Plan) -> Self::Tree {
        if let Some(below) = plan.below() {
            let worker = |spec: SupervisorSpec<Child>, index| {
                spec.with_worker_signal(name(index), move |it| Child::new(index, it), policy(index))
            };
            let below = (0..below.width()).fold(spec("below", below), worker);
            return SupervisorHandle::start(spec("root", plan).with_supervisor(below));
        }
        let handle = SupervisorHandle::start(spec("root", plan));
        for index in 0..plan.width() {
            let worker = move |signal| Child::new(index, signal);
            let patience = Duration::from_secs(5);
            handle
                .start_child_linked_with_signal(name(index), worker, policy(index), patience)
                .await
                .expect("the set-up ends in time");
        }
        handle
    }

    async fn stop(tree: Self::Tree) {
        tree.shutdown().await.expect("it runs");
    }
}

fn spec(name: &str, plan: Plan) -> SupervisorSpec<Child> {
    let (restarts, period) = plan.limit((u32::MAX, LONG));
    SupervisorSpec::new(name)
        .with_restart_strategy(
            plan.strategy(RestartStrategy::OneForOne, RestartStrategy::OneForAll),
        )
        .with_restart_intensity(RestartIntensity::new(restarts as usize, period.as_secs()))
        .with_restart_backoff(RestartBackoff::none())
}

fn policy(index: usize) -> RestartPolicy {
    restart::<Probed, _>(index, RestartPolicy::Permanent, RestartPolicy::Transient)
}

pub struct Child {
    index: usize,
    signal: ShutdownSignal,
    /// `Some` from `initialize` on.
    life: Option<(Probed, mpsc::UnboundedReceiver<Order>)>,
}

impl Child {
    fn new(index: usize, signal: ShutdownSignal) -> Self {
        Self { index, signal, life: None }
    }
}

#[async_trait]
impl Worker for Child {
    type Error = Failure;

    async fn initialize(&mut self) -> Result<(), Failure> {
        let (sender, orders) = mpsc::unbounded_channel();
        let life = Probed::begin(self.index, move |order| sender.send(order)).await;
        self.life = Some((life, orders));
        Ok(())
    }

    async fn run(&mut self) -> Result<(), Failure> {
        let (_, orders) = self.life.as_mut().expect("initialize has returned");
        loop {
            tokio::select! {
                () = self.signal.cancelled() => return Ok(()),
                Some(order) = orders.recv() => if Probed::obey(order).await?.is_break() {
                    return Ok(());
                },
            }
        }
    }

    async fn shutdown(&mut self) -> Result<(), Failure> {
        if let Some((life, _)) = &self.life {
            life.clean_up().await;
        }
        Ok(())
    }
}
