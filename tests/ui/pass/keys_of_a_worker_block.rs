//! Keys above an `impl` block hold for every child of that type.

use std::time::Duration;

use verger::policy::{AutoShutdown, OnLeak};
use verger::{Backoff, Context, RestartType, Shutdown, Supervisor, component, supervisor, worker};

const SECOND: Duration = Duration::from_secs(1);

#[derive(Clone)]
struct Db;

#[worker]
impl Db {
    async fn run(&mut self, ctx: &Context) {
        ctx.cancelled().await;
    }
}

#[derive(Clone)]
struct Api;

#[worker(
    restart = "transient",
    shutdown = "20s",
    backoff(constant, delay = "3s"),
    significant,
    requires = "db",
    readiness = "on_start",
    activation_timeout = "4s",
    watchdog = "30s",
    run_time_limit = "5m",
    on_leak = "park",
    crate = ::verger
)]
impl Api {
    async fn run(&mut self, ctx: &Context) {
        ctx.cancelled().await;
    }
}

#[supervisor(auto_shutdown = "any_significant", defaults(shutdown = "1s"))]
struct App {
    #[child]
    db: Db,
    #[child(restart = "temporary")]
    api: Api,
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let tree = App { db: Db, api: Api }.builder().build().unwrap().start().await.unwrap();
    let api = tree.child_spec("api").await.unwrap();
    assert_eq!((api.restart, api.shutdown), (RestartType::Temporary, Shutdown::from(20 * SECOND)));
    assert_eq!(api.backoff, Backoff::constant(3 * SECOND));
    assert!(api.significant);
    assert_eq!((api.activation_timeout, api.on_leak), (Some(4 * SECOND), OnLeak::Park));
    assert_eq!(api.watchdog, Some(30 * SECOND));
    assert_eq!(api.run_time_limit, Some(300 * SECOND));
    assert_eq!(tree.child_spec("db").await.unwrap().shutdown, Shutdown::from(SECOND));
    tree.stop("the test is over").await.unwrap();

    // It requires a sibling wherever it is used.
    let alone = Supervisor::builder("app").auto_shutdown(AutoShutdown::AnySignificant);
    let error = alone.child(component("api", Api)).build().unwrap_err().to_string();
    assert!(error.contains("`db`"), "{error}");
}
