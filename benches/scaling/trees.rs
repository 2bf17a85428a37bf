//! Trees of a million nodes in several shapes: up, down, and what a node weighs.

use std::time::Instant;

use verger::{Supervisor, SupervisorBuilder};

use crate::idle::{self, STARTS};
use crate::measure::{Part, Row, Side, Unit, peak_bytes, runtime};
use crate::table::{Layout, Table};

pub(crate) const TABLE: Table = Table {
    title: "Trees",
    note: "Up: from the start to the last worker's first instruction. A node's bytes are of the \
           largest resident set, with what the tree was described by; a supervisor is a node, too.",
    rows: ROWS,
    layout: Layout::Rows,
};

const PARTS: &[Part] = &[
    Part::without_budget("nodes", Unit::Count),
    Part::without_budget("up", Unit::Nanos),
    Part::without_budget("up, each", Unit::Nanos),
    Part::without_budget("down", Unit::Nanos),
    Part::without_budget("down, each", Unit::Nanos),
    Part::without_budget("a node", Unit::Bytes),
];

const fn row(name: &'static str, what: &'static str, run: fn(Side) -> Vec<f64>) -> Row {
    Row::new(name, run).what(what).parts(PARTS).rounds(3)
}

const ROWS: &[Row] = &[
    row("flat", "1,000,000 workers", |_| up_and_down(Shape { levels: 1, width: 1_000_000 })),
    row("thousands", "1,000 × 1,000", |_| up_and_down(Shape { levels: 2, width: 1_000 })),
    row("hundreds", "100 × 100 × 100", |_| up_and_down(Shape { levels: 3, width: 100 })),
    row("binary", "binary, 19 levels", |_| up_and_down(Shape { levels: 19, width: 2 })),
    row("chain-short", "a chain of 1,000", |_| up_and_down(Shape { levels: 1_000, width: 1 })),
    row("chain", "a chain of 10,000", |_| up_and_down(Shape { levels: 10_000, width: 1 })),
];

/// Each supervisor has so many children; those of the lowest are workers.
#[derive(Clone, Copy)]
struct Shape {
    levels: u32,
    width: u64,
}

impl Shape {
    fn workers(self) -> u64 {
        self.width.pow(self.levels)
    }

    fn nodes(self) -> u64 {
        (0..=self.levels).map(|level| self.width.pow(level)).sum()
    }
}

/// Once, as a program does it.
fn up_and_down(shape: Shape) -> Vec<f64> {
    let before = peak_bytes();
    let app = described(shape);
    runtime().block_on(async {
        let all = STARTS.expect(shape.workers());
        let began = Instant::now();
        let tree = tokio::spawn(async { app.start().await.expect("it starts") });
        let tree = tree.await.expect("no panic");
        let up = Instant::now().max(all.await.expect("they start")) - began;
        let bytes = peak_bytes() - before;
        let began = Instant::now();
        tree.stop("measured").await.expect("it stops");
        let down = began.elapsed();
        let nodes = shape.nodes() as f64;
        let [up, down] = [up, down].map(|took| took.as_secs_f64() * 1e9);
        vec![nodes, up, up / nodes, down, down / nodes, bytes as f64 / nodes]
    })
}

fn described(shape: Shape) -> Supervisor {
    let workers = idle::named(shape.width);
    let mut level = workers.fold(supervisor(), |level, worker| level.child(worker));
    for _ in 1..shape.levels {
        let below = level;
        let children = (0..shape.width).map(|it| below.clone().into_child().named(idle::name(it)));
        level = children.fold(supervisor(), |level, child| level.child(child));
    }
    level.build().expect("a tree")
}

fn supervisor() -> SupervisorBuilder {
    Supervisor::builder("level")
}
