//! One child of three fails, under each of the three strategies and below a dynamic supervisor.
//!
//! ```text
//! app
//! ├─ one_for_one    a, b, c
//! ├─ one_for_all    a, b, c
//! ├─ rest_for_one   a, b, c
//! └─ dynamic        a#1, b#2, c#3
//! ```
//!
//! A line shows what its supervisor does once a child was killed: the children that it stops, in this order, and those
//! that it starts. Break another child: `a` or `c`.
//!
//! ```text
//! cargo run --example strategies
//! BREAK=a cargo run --example strategies
//! ```

#![expect(clippy::print_stdout, reason = "the example prints what happens")]

use std::collections::HashSet;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::time::timeout;
use verger::status::EventKind;
use verger::{
    Backoff, ChildSpec, Context, DynamicSupervisor, Lifecycle, Strategy, Supervisor,
    SupervisorHandle, worker,
};

const NAMES: [&str; 3] = ["a", "b", "c"];

fn idle(name: &str) -> ChildSpec {
    let child = worker(name, async |ctx: Context| ctx.cancelled().await);
    child.backoff(Backoff::constant(Duration::from_millis(20)))
}

/// What a supervisor did about a failure, in the order in which it happened.
#[derive(Default)]
struct Restart {
    stopped: Vec<String>,
    started: Vec<String>,
}

/// Kills a child, and watches its supervisor until all of its children are active again.
async fn kill(group: &SupervisorHandle, name: &str) -> anyhow::Result<Restart> {
    let mut events = group.events();
    group.kill(name).await?;
    let (mut down, mut seen) = (HashSet::new(), Restart::default());
    loop {
        let event = events.next().await.context("the supervisor has ended")?;
        let EventKind::Moved { to, .. } = event.kind else { continue };
        let child = event.path.name().to_owned();
        match to {
            // The one that was killed. It isn't stopped, because it has ended already.
            Lifecycle::Errored => _ = down.insert(child),
            // Of the start before, whose last event may come late.
            _ if down.is_empty() => continue,
            Lifecycle::Deactivating => {
                seen.stopped.push(child.clone());
                down.insert(child);
            }
            Lifecycle::Active => {
                down.remove(&child);
                seen.started.push(child);
            }
            _ => {}
        }
        if down.is_empty() {
            return Ok(seen);
        }
    }
}

async fn show(broken: &str) -> anyhow::Result<()> {
    let strategies = [Strategy::OneForOne, Strategy::OneForAll, Strategy::RestForOne];
    let mut app = Supervisor::builder("app");
    for strategy in strategies {
        let group = Supervisor::builder(strategy.to_string()).strategy(strategy);
        app = app.child(NAMES.iter().fold(group, |group, name| group.child(idle(name))));
    }
    let app = app.child(DynamicSupervisor::builder("dynamic")).build()?.start().await?;

    println!("{:<14}{:<10}{:<10}starts", "supervisor", "killed", "stops");
    let line = |group: &str, killed: &str, seen: Restart| {
        let list = |names: &[String]| if names.is_empty() { "-".into() } else { names.join(" ") };
        let (stopped, started) = (list(&seen.stopped), list(&seen.started));
        println!("{group:<14}{killed:<10}{stopped:<10}{started}");
    };
    for strategy in strategies.map(|strategy| strategy.to_string()) {
        let seen = kill(&app.supervisor(&strategy).await?, broken).await?;
        line(&strategy, broken, seen);
    }
    // Its children have no order, so there is nothing that they could have in common but a limit.
    let dynamic = app.supervisor("dynamic").await?;
    let mut killed = String::new();
    for name in NAMES {
        let child = dynamic.start_child(idle(name)).await?;
        if name == broken {
            killed = child.name().to_owned();
        }
    }
    line("dynamic", &killed, kill(&dynamic, &killed).await?);
    Ok(app.stop("the example is over").await?)
}

#[tokio::main]
pub(crate) async fn main() -> anyhow::Result<()> {
    let broken = std::env::var("BREAK").unwrap_or_else(|_| "b".to_owned());
    if !NAMES.contains(&&*broken) {
        bail!("BREAK={broken}: there is no such child; write `a`, `b` or `c`");
    }
    timeout(Duration::from_secs(20), show(&broken)).await.context("the example takes too long")?
}
