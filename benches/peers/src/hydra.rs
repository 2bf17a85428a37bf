//! hydra: servers under its supervisor. They trap exits, so that they can clean up.

use std::time::Duration;

use hydra::{
    ChildSpec, ExitReason, GenServer, GenServerOptions, Local, Message, Pid, Process, ProcessFlags,
    Restart, SupervisionStrategy, Supervisor, SupervisorOptions, SystemMessage,
};
use tokio::sync::oneshot;

use crate::board::{After, Order, Run};
use crate::peer::{ChildPlan, Peer, Plan};

pub struct Hydra;

/// The channels to the process that owns the supervisor: only a process can start and stop one.
pub struct Tree {
    stop: oneshot::Sender<()>,
    stopped: oneshot::Receiver<()>,
}

impl Peer for Hydra {
    const PACKAGES: &[&str] = &["hydra"];
    const PAUSED: bool = false;
    type Tree = Tree;

    async fn start(plan: Plan) -> Tree {
        up(supervisor(plan)).await
    }

    async fn stop(tree: Tree) {
        tree.stop.send(()).expect("the process waits for it");
        tree.stopped.await.expect("the process waits for the supervisor");
    }

    async fn start_nested(inner: Plan) -> Tree {
        let inner = supervisor(inner).child_spec(SupervisorOptions::new());
        let root = Supervisor::with_children([inner])
            .max_restarts(10)
            .max_duration(Duration::from_secs(300));
        up(root).await
    }
}

/// As the crate's own `Application` does it.
async fn up(supervisor: Supervisor) -> Tree {
    let (started, has_started) = oneshot::channel();
    let (stop, stop_asked) = oneshot::channel();
    let (ended, stopped) = oneshot::channel();
    Process::spawn(async move {
        Process::set_flags(ProcessFlags::TRAP_EXIT);
        let supervisor = supervisor.start_link(SupervisorOptions::new()).await;
        let supervisor: Pid = supervisor.expect("no set-up fails");
        started.send(()).expect("the start waits for it");
        if stop_asked.await.is_err() {
            return;
        }
        Process::exit(supervisor, ExitReason::from("shutdown"));
        loop {
            if let Message::System(SystemMessage::Exit(pid, _)) = Process::receive::<()>().await
                && pid == supervisor
            {
                break;
            }
        }
        ended.send(()).expect("the stop waits for it");
    });
    has_started.await.expect("the process says so");
    Tree { stop, stopped }
}

fn supervisor(plan: Plan) -> Supervisor {
    let strategy = if plan.one_for_all {
        SupervisionStrategy::OneForAll
    } else {
        SupervisionStrategy::OneForOne
    };
    let children = plan.children.into_iter().map(|plan| {
        let restart = if plan.transient { Restart::Transient } else { Restart::Permanent };
        ChildSpec::new(plan.name)
            .start(move || Worker { plan, run: None }.start_link(GenServerOptions::new()))
            .restart(restart)
    });
    Supervisor::with_children(children)
        .strategy(strategy)
        .max_restarts(plan.restarts as usize)
        .max_duration(plan.period)
}

struct Worker {
    plan: ChildPlan,
    /// `Some` from `init` on.
    run: Option<Run>,
}

impl GenServer for Worker {
    type Message = Local<Order>;

    async fn init(&mut self) -> Result<(), ExitReason> {
        Process::set_flags(ProcessFlags::TRAP_EXIT);
        let this = Process::current();
        let run = Run::started(self.plan, move |order| Self::cast(this, Local::new(order)));
        run.set_up().await;
        self.run = Some(run);
        Ok(())
    }

    async fn handle_cast(&mut self, order: Local<Order>) -> Result<(), ExitReason> {
        match order.into_inner().carry_out().await {
            Ok(After::GoesOn) => Ok(()),
            Ok(After::Ends) => Err(ExitReason::Normal),
            Err(error) => Err(ExitReason::from(error.to_string())),
        }
    }

    async fn terminate(&mut self, _reason: ExitReason) {
        if let Some(run) = &self.run {
            run.clean_up().await;
        }
    }
}
