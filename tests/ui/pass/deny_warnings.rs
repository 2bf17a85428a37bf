//! The expansions cause no warnings, also where parts of them are unused.

#![deny(warnings)]
#![forbid(unsafe_code)]

use std::time::Duration;

use verger::{ChildSpec, Context, DynamicSupervisor, Supervisor, supervisor, worker};

#[worker(restart = "transient", shutdown = "5s")]
async fn clock(ctx: Context, every: Duration, _zone: &'static str) {
    while ctx.run_until_cancelled(tokio::time::sleep(every)).await.is_some() {}
}

#[worker]
async fn nothing() {}

#[derive(Clone)]
struct Db;

#[worker(shutdown = "5s")]
impl Db {
    async fn activate(&mut self) {}

    async fn run(&self, ctx: &Context) {
        ctx.cancelled().await;
    }

    async fn deactivate(&mut self, _: &Context) {}
}

#[supervisor(strategy = "one_for_all", max_restarts = self.limit, period = "60s")]
struct App {
    #[child]
    clock: ChildSpec,
    #[child]
    db: Db,
    #[child]
    #[cfg(not(any()))]
    nothing: ChildSpec,
    #[supervisor]
    below: Below,
    #[dynamic]
    conns: DynamicSupervisor,
    limit: u32,
}

/// Only a child.
#[derive(Supervisor)]
#[tree(defaults(shutdown = "1s"))]
struct Below {}

/// Only run.
#[supervisor]
struct Runs;

/// Only turned into a child.
#[supervisor]
struct Converts {}

pub(crate) fn main() {
    let app = App {
        clock: clock(Duration::from_secs(1), ""),
        db: Db,
        nothing: nothing(),
        below: Below {},
        conns: DynamicSupervisor,
        limit: 5,
    };
    assert!(app.builder().child(Converts {}).build().is_ok());
    drop(Runs.run());
}
