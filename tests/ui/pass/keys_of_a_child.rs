//! Each key above a field is a call of the child's spec.

use std::time::Duration;

use verger::policy::{AutoShutdown, OnLeak};
use verger::{Backoff, ChildSpec, Readiness, RestartType, Shutdown, Supervisor, supervisor, worker};

const SECOND: Duration = Duration::from_secs(1);

#[supervisor(auto_shutdown = "any_significant")]
struct App {
    #[child(name = "database", stop_order = 100, readiness = "signal")]
    db: ChildSpec,
    #[child(
        restart = "temporary",
        shutdown = "20s",
        backoff(constant, delay = "3s"),
        significant,
        requires = "database",
        readiness = "signal",
        activation_timeout = "4s",
        watchdog = "30s",
        run_time_limit = "5m",
        on_leak = "park",
        essential = false
    )]
    api: ChildSpec,
    #[child(shutdown = "infinity", requires = ["database", "api"])]
    log: ChildSpec,
}

fn idle(name: &str) -> ChildSpec {
    worker(name, async |ctx| {
        ctx.ready();
        ctx.cancelled().await;
    })
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let app = || App { db: idle("x"), api: idle("y"), log: idle("z") }.builder();

    let api = idle("api")
        .restart(RestartType::Temporary)
        .shutdown(20 * SECOND)
        .backoff(Backoff::constant(3 * SECOND))
        .significant()
        .requires("database")
        .readiness(Readiness::Signal)
        .activation_timeout(4 * SECOND)
        .watchdog(30 * SECOND)
        .run_time_limit(300 * SECOND)
        .on_leak(OnLeak::Park)
        .essential(false);
    let log = idle("log").shutdown(Shutdown::Infinity).requires("database").requires("api");
    let by_builder = Supervisor::builder("app")
        .auto_shutdown(AutoShutdown::AnySignificant)
        .child(idle("database").stop_order(100).readiness(Readiness::Signal))
        .child(api)
        .child(log);
    assert_eq!(format!("{:?}", app()), format!("{by_builder:?}"));

    let tree = app().build().unwrap().start().await.unwrap();
    let api = tree.child_spec("api").await.unwrap();
    assert_eq!((api.restart, api.shutdown), (RestartType::Temporary, (20 * SECOND).into()));
    assert_eq!(api.backoff, Backoff::constant(3 * SECOND));
    assert!(api.significant);
    assert_eq!((api.activation_timeout, api.on_leak), (Some(4 * SECOND), OnLeak::Park));
    assert_eq!(api.watchdog, Some(30 * SECOND));
    assert_eq!(tree.child_spec("log").await.unwrap().shutdown, Shutdown::Infinity);
    tree.stop("the test is over").await.unwrap();
}
