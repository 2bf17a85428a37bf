//! Supervisors below supervisors.

use verger::{Context, DynamicSupervisor, Supervisor, SupervisorBuilder, worker};

use crate::children::started;
use crate::{EVENTS, Scenario, counted, runtime, settle};

pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario { name: "supervisor, build", event: "supervisor in a chain", run: build },
    Scenario { name: "supervisor, start", event: "supervisor in a chain", run: start },
    Scenario { name: "supervisor, stop", event: "supervisor in a chain", run: stop },
    Scenario { name: "supervisor, by path", event: "lookup of one of many", run: look_up },
];

/// Each supervisor has one child: the next.
fn chain() -> SupervisorBuilder {
    let idle = worker("idle", async |ctx: Context| ctx.cancelled().await);
    let last = Supervisor::builder("level").child(idle);
    (1..EVENTS).fold(last, |below, _| Supervisor::builder("level").child(below))
}

fn build() {
    let app = chain();
    let built = counted(&runtime(), async { app.build() });
    assert!(built.is_ok(), "a tree");
}

fn start() {
    let app = chain().build().expect("a tree");
    let tree = counted(&runtime(), async {
        let tree = app.start().await;
        settle().await;
        tree
    });
    assert!(tree.is_ok(), "it starts");
}

fn stop() {
    let runtime = runtime();
    let tree = started(&runtime, chain().build());
    counted(&runtime, tree.stop("done")).expect("it stops");
}

fn look_up() {
    let names: Vec<_> = (0..EVENTS).map(|n| format!("level-{n}")).collect();
    let app = names.iter().map(DynamicSupervisor::builder);
    let app = app.fold(Supervisor::builder("app"), SupervisorBuilder::child);
    let runtime = runtime();
    let tree = started(&runtime, app.build());
    counted(&runtime, async {
        for name in &names {
            tree.supervisor(name).await.expect("it runs");
        }
    });
}
