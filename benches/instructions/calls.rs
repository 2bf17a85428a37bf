//! What a handle is asked.

use crate::children::{declared, started};
use crate::{EVENTS, Scenario, counted, runtime};

pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario::alone("which_child", "call", which_child),
    Scenario::alone("count_children", "call", count_children),
    Scenario::alone("status", "child in the snapshot", status),
];

fn which_child() {
    let runtime = runtime();
    let tree = started(&runtime, declared().build());
    let names: Vec<_> = (0..EVENTS).map(|n| format!("worker-{n}")).collect();
    counted(&runtime, async {
        for name in &names {
            tree.which_child(name).await.expect("it is there");
        }
    });
}

fn count_children() {
    let runtime = runtime();
    let tree = started(&runtime, declared().build());
    counted(&runtime, async {
        for _ in 0..EVENTS {
            tree.count_children().await.expect("it runs");
        }
    });
}

fn status() {
    let runtime = runtime();
    let tree = started(&runtime, declared().build());
    let status = counted(&runtime, tree.status()).expect("it runs");
    assert_eq!(status.root.children.len(), EVENTS as usize);
}
