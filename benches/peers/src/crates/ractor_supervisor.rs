//! ractor-supervisor: its static supervisor or, where children are added, its dynamic supervisor. The
//! children are actors of ractor, as are messages and names.

use std::marker::PhantomData;
use std::time::Duration;

use ractor::{ActorCell, ActorRef};
use ractor_supervisor::{
    ChildSpec, DynamicSupervisor, DynamicSupervisorMsg, DynamicSupervisorOptions, Restart, SpawnFn,
    Supervisor, SupervisorArguments, SupervisorOptions, SupervisorStrategy,
};

use super::ractor::Worker;
use crate::child::Life;
use crate::peer::{Peer, Plan, restart};

pub struct RactorSupervisor;

/// The supervisor, as two types if it is dynamic.
pub struct Tree {
    supervisor: ActorCell,
    dynamic: Option<ActorRef<DynamicSupervisorMsg>>,
}

/// The name of the root. Names are unique in a process, so those below begin with it.
const ROOT: &str = "app";
/// Each restart reads a list of all restarts in this time, so the shortest time is the fastest.
const WINDOW: Duration = Duration::from_micros(1);

impl Peer for RactorSupervisor {
    const PACKAGES: &[&str] = &["ractor-supervisor", "ractor"];
    const PAUSED: bool = true;
    const LACKS: &[&str] = &["message", "ask", "lookup"];
    type Tree = Tree;

    async fn start<L: Life>(plan: Plan) -> Tree {
        if L::GROWS {
            return dynamic::<L>(plan.width()).await;
        }
        let root = Supervisor::spawn(ROOT.into(), level::<L>(ROOT, plan)).await;
        Tree { supervisor: root.expect("the name is free").0.get_cell(), dynamic: None }
    }

    async fn stop(tree: Tree) {
        tree.supervisor.stop_and_wait(None, None).await.expect("it runs");
    }

    async fn add<L: Life>(tree: &Tree, index: usize) {
        let supervisor = tree.dynamic.clone().expect("it was started for this");
        DynamicSupervisor::spawn_child(supervisor, child::<L>(ROOT, index))
            .await
            .expect("it starts");
    }
}

async fn dynamic<L: Life>(n: usize) -> Tree {
    let options = DynamicSupervisorOptions {
        max_children: None,
        max_restarts: usize::MAX,
        max_window: WINDOW,
        reset_after: None,
    };
    let root = DynamicSupervisor::spawn(ROOT.into(), options).await.expect("the name is free").0;
    let tree = Tree { supervisor: root.get_cell(), dynamic: Some(root) };
    for index in 0..n {
        RactorSupervisor::add::<L>(&tree, index).await;
    }
    tree
}

/// A supervisor of supervisors or, on the last level, of children.
fn level<L: Life>(id: &str, plan: Plan) -> SupervisorArguments {
    let child = |index| match plan.below() {
        None => child::<L>(id, index),
        Some(below) => {
            let spawn = SpawnFn::new(move |above, id: String| async move {
                let arguments = level::<L>(&id, below);
                Ok(Supervisor::spawn_linked(id, Supervisor, arguments, above).await?.0.get_cell())
            });
            spec(format!("{id}/{index}"), Restart::Permanent, spawn)
        }
    };
    let (max_restarts, max_window) = plan.limit((u32::MAX, WINDOW));
    let options = SupervisorOptions {
        strategy: plan.strategy(SupervisorStrategy::OneForOne, SupervisorStrategy::OneForAll),
        max_restarts: max_restarts as usize,
        max_window,
        reset_after: None,
    };
    SupervisorArguments { child_specs: (0..plan.width()).map(child).collect(), options }
}

fn child<L: Life>(above: &str, index: usize) -> ChildSpec {
    let spawn = SpawnFn::new(move |above, id| async move {
        let worker = Worker::<L>(PhantomData);
        Ok(Supervisor::spawn_linked(id, worker, index, above).await?.0.get_cell())
    });
    let restart = restart::<L, _>(index, Restart::Permanent, Restart::Transient);
    spec(format!("{above}/{index}"), restart, spawn)
}

fn spec(id: String, restart: Restart, spawn_fn: SpawnFn) -> ChildSpec {
    ChildSpec { id, restart, spawn_fn, backoff_fn: None, reset_after: None }
}
