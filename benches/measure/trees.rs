//! Trees of supervisors with idle workers on the lowest level.

use std::time::{Duration, Instant};

use verger::{ChildSpec, Supervisor, SupervisorBuilder, worker};

use super::children::{STARTS, idle, name};

/// Each supervisor has `width` children; those of the lowest level are workers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) levels: u32,
    pub(crate) width: u64,
}

impl Shape {
    pub(crate) fn workers(self) -> u64 {
        self.width.pow(self.levels)
    }

    /// Workers and supervisors.
    pub(crate) fn nodes(self) -> u64 {
        (0..=self.levels).map(|level| self.width.pow(level)).sum()
    }

    /// The shape of each subtree. `None` if the children are workers.
    pub(crate) fn below(self) -> Option<Self> {
        (self.levels > 1).then_some(Self { levels: self.levels - 1, ..self })
    }
}

/// From the start to the last worker's first instruction, and from the stop to the root's end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    pub(crate) build: Duration,
    pub(crate) stop: Duration,
}

pub(crate) fn tree(shape: Shape) -> Supervisor {
    let level = |child: &dyn Fn(String) -> ChildSpec| {
        let children = (0..shape.width).map(|number| child(name(number)));
        children.fold(Supervisor::builder("level"), SupervisorBuilder::child)
    };
    let lowest = level(&|name| worker(name, idle));
    let above = |below: SupervisorBuilder, _| level(&|name| below.clone().into_child().named(name));
    (1..shape.levels).fold(lowest, above).build().expect("a tree")
}

/// Starts the tree on a worker thread, calls `up` once all of it runs, and stops it.
pub(crate) async fn up_and_down(shape: Shape, up: impl FnOnce()) -> Timing {
    let app = tree(shape);
    let all = STARTS.expect(shape.workers());
    let began = Instant::now();
    let tree = tokio::spawn(async { app.start().await.expect("it starts") });
    let tree = tree.await.expect("no panic");
    let build = Instant::now().max(all.await.expect("they start")) - began;
    up();
    let began = Instant::now();
    tree.stop("measured").await.expect("it stops");
    Timing { build, stop: began.elapsed() }
}
