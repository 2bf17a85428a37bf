//! Trees of a million nodes, and a deep one: start, stop and memory of a node.

use crate::Scenario;
use crate::measure::Unit::{Bytes, Nanos};
use crate::measure::{Shape, nanos, peak_bytes, runtime, up_and_down};

/// The columns are indices of [`SHAPES`].
pub(crate) const TREES: Scenario = Scenario {
    name: "trees",
    title: "Trees, for each node. A supervisor is a node, too; memory includes the declaration:",
    columns: &[
        ("1,000,000 workers", 0),
        ("1,000 × 1,000", 1),
        ("100 × 100 × 100", 2),
        ("binary, 19 levels", 3),
        ("chain of 1,000", 4),
    ],
    lines: &[("start", Nanos), ("stop", Nanos), ("memory", Bytes)],
    work: |index| measured(SHAPES[index as usize]),
};

const SHAPES: [Shape; 5] = [
    Shape { levels: 1, width: 1_000_000 },
    Shape { levels: 2, width: 1_000 },
    Shape { levels: 3, width: 100 },
    Shape { levels: 19, width: 2 },
    Shape { levels: 1_000, width: 1 },
];

fn measured(shape: Shape) -> Vec<f64> {
    let (before, nodes) = (peak_bytes(), shape.nodes());
    let mut bytes = 0;
    let timing = runtime().block_on(up_and_down(shape, || bytes = peak_bytes() - before));
    vec![nanos(timing.build, nodes), nanos(timing.stop, nodes), bytes as f64 / nodes as f64]
}
