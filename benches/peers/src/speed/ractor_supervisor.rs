//! ractor-supervisor: its static supervisor or, where children are added, its dynamic supervisor.
//! Messages and names are ractor's.

use std::marker::PhantomData;
use std::time::Duration;

use ractor::{ActorCell, ActorRef};
use ractor_supervisor::{
    ChildSpec, DynamicSupervisor, DynamicSupervisorMsg, DynamicSupervisorOptions, Restart, SpawnFn,
    Supervisor, SupervisorArguments, SupervisorOptions, SupervisorStrategy,
};

use super::child::{Idle, Life};
use super::peer::{Peer, name};
use super::ractor::Worker;

pub struct RactorSupervisor;

/// The supervisor, as two types if it is dynamic.
pub struct Tree {
    supervisor: ActorCell,
    dynamic: Option<ActorRef<DynamicSupervisorMsg>>,
}

/// Each restart reads a list of all restarts in this time, so the shortest time is the fastest.
const WINDOW: Duration = Duration::from_micros(1);

impl Peer for RactorSupervisor {
    const NAME: &str = "ractor-supervisor";
    const PACKAGES: &[&str] = &["ractor-supervisor", "ractor"];
    const LACKS: &[&str] = &["message", "ask", "lookup"];
    type Tree = Tree;

    async fn start<L: Life>(n: usize, one_for_all: bool) -> Tree {
        if L::GROWS {
            return dynamic::<L>(n).await;
        }
        let strategy =
            if one_for_all { SupervisorStrategy::OneForAll } else { SupervisorStrategy::OneForOne };
        up(arguments(strategy, (0..n).map(spec::<L>).collect())).await
    }

    async fn stop(tree: Tree) {
        tree.supervisor.stop_and_wait(None, None).await.expect("it runs");
    }

    async fn nest(widths: &'static [usize]) -> Tree {
        up(level("app", widths)).await
    }

    async fn add<L: Life>(tree: &Tree, index: usize) {
        let supervisor = tree.dynamic.clone().expect("it was started for this");
        DynamicSupervisor::spawn_child(supervisor, spec::<L>(index)).await.expect("it starts");
    }
}

async fn up(arguments: SupervisorArguments) -> Tree {
    let (root, _) = Supervisor::spawn("app".into(), arguments).await.expect("the name is free");
    Tree { supervisor: root.get_cell(), dynamic: None }
}

async fn dynamic<L: Life>(n: usize) -> Tree {
    let options = DynamicSupervisorOptions {
        max_children: None,
        max_restarts: usize::MAX,
        max_window: WINDOW,
        reset_after: None,
    };
    let root = DynamicSupervisor::spawn("app".into(), options).await;
    let (root, _) = root.expect("the name is free");
    for index in 0..n {
        let started = DynamicSupervisor::spawn_child(root.clone(), spec::<L>(index)).await;
        started.expect("it starts");
    }
    Tree { supervisor: root.get_cell(), dynamic: Some(root) }
}

fn arguments(strategy: SupervisorStrategy, child_specs: Vec<ChildSpec>) -> SupervisorArguments {
    let options = SupervisorOptions {
        strategy,
        max_restarts: usize::MAX,
        max_window: WINDOW,
        reset_after: None,
    };
    SupervisorArguments { child_specs, options }
}

fn spec<L: Life>(index: usize) -> ChildSpec {
    let spawn = SpawnFn::new(move |above, id| async move {
        let worker = Worker::<L>(PhantomData);
        let (child, _) = Supervisor::spawn_linked(id, worker, index, above).await?;
        Ok(child.get_cell())
    });
    permanent(name(index), spawn)
}

fn permanent(id: String, spawn_fn: SpawnFn) -> ChildSpec {
    ChildSpec { id, restart: Restart::Permanent, spawn_fn, backoff_fn: None, reset_after: None }
}

/// A supervisor of supervisors or, on the last level, of children.
fn level(above: &str, widths: &'static [usize]) -> SupervisorArguments {
    let (width, below) = widths.split_first().expect("there is a level");
    let child = |index| {
        // Names are unique in a process.
        let id = format!("{above}/{index}");
        let spawn = SpawnFn::new(move |above, id: String| async move {
            let child = if below.is_empty() {
                let worker = Worker::<Idle>(PhantomData);
                Supervisor::spawn_linked(id, worker, index, above).await?.0.get_cell()
            } else {
                let arguments = level(&id, below);
                Supervisor::spawn_linked(id, Supervisor, arguments, above).await?.0.get_cell()
            };
            Ok(child)
        });
        permanent(id, spawn)
    };
    arguments(SupervisorStrategy::OneForOne, (0..*width).map(child).collect())
}
