//! Each key above a function is a call of the spec that it makes; the field wins.

use std::time::Duration;

use verger::policy::OnLeak;
use verger::{Backoff, ChildSpec, Context, Readiness, RestartType, Shutdown, supervisor, worker};

const SECOND: Duration = Duration::from_secs(1);

#[worker(
    name = "the-clock",
    restart = "transient",
    shutdown = "brutal_kill",
    backoff(constant, delay = "3s"),
    significant,
    requires = ["dns", "net"],
    readiness = "signal",
    activation_timeout = "4s",
    watchdog = "30s",
    run_time_limit = "5m",
    on_leak = "park",
    crate = ::verger
)]
async fn clock(ctx: Context) {
    ctx.ready();
    ctx.cancelled().await;
}

#[worker(restart = "transient", shutdown = "1s")]
async fn log(ctx: Context) {
    ctx.cancelled().await;
}

#[supervisor(defaults(shutdown = "3s", restart = "temporary"))]
struct App {
    #[child(shutdown = "2s")]
    log: ChildSpec,
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let by_builder = worker("the-clock", async |_| {})
        .restart(RestartType::Transient)
        .shutdown(Shutdown::BrutalKill)
        .backoff(Backoff::constant(3 * SECOND))
        .significant()
        .requires("dns")
        .requires("net")
        .readiness(Readiness::Signal)
        .activation_timeout(4 * SECOND)
        .watchdog(30 * SECOND)
        .run_time_limit(300 * SECOND)
        .on_leak(OnLeak::Park);
    assert_eq!(format!("{:?}", clock()), format!("{by_builder:?}"));

    let tree = App { log: log() }.builder().build().unwrap().start().await.unwrap();
    let spec = tree.child_spec("log").await.unwrap();
    assert_eq!((spec.restart, spec.shutdown), (RestartType::Transient, (2 * SECOND).into()));
    tree.stop("the test is over").await.unwrap();
}
