//! Supervisors below supervisors.

use verger::{Context, DynamicSupervisor, Supervisor, SupervisorBuilder, worker};

use crate::children::{count_build, count_start, count_stop, started};
use crate::{EVENTS, Scenario, counted, runtime};

pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario::alone("supervisor, build", LEVEL, || count_build(chain())),
    Scenario::alone("supervisor, start", LEVEL, || count_start(chain())),
    Scenario::alone("supervisor, stop", LEVEL, || count_stop(chain())),
    Scenario::alone("stop, wide", "worker of ten to a supervisor, in order", || count_stop(wide())),
    Scenario::alone("supervisor, by path", "lookup of one of many", look_up),
];

const LEVEL: &str = "supervisor in a chain";

/// Each supervisor has one child: the next.
fn chain() -> SupervisorBuilder {
    let idle = worker("idle", async |ctx: Context| ctx.cancelled().await);
    let last = Supervisor::builder("level").child(idle);
    (1..EVENTS).fold(last, |below, _| Supervisor::builder("level").child(below))
}

/// Ten children to a supervisor, on three levels.
fn wide() -> SupervisorBuilder {
    const { assert!(EVENTS == 10 * 10 * 10) };
    let idle = worker("idle", async |ctx: Context| ctx.cancelled().await);
    let ten = |child: &verger::ChildSpec| {
        let children = (0..10).map(|n| child.clone().named(format!("child-{n}")));
        children.fold(Supervisor::builder("level"), SupervisorBuilder::child)
    };
    ten(&ten(&ten(&idle).into_child()).into_child())
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
