//! Keys of a dynamic supervisor are calls of its builder or of its spec.

use std::time::Duration;

use verger::policy::{OnExhausted, Preset};
use verger::{
    Backoff, ControlError, DynamicSupervisor, RestartType, Shutdown, Supervisor, supervisor, worker,
};

const SECOND: Duration = Duration::from_secs(1);

#[supervisor]
struct App {
    #[dynamic]
    plain: DynamicSupervisor,
    #[dynamic(
        name = "conns",
        max_children = self.limit,
        max_restarts = 100,
        period = "10s",
        on_exhausted = "park",
        leak_timeout = "2s",
        stop_deadline = "3s",
        preset = Preset::elixir(),
        defaults(restart = "temporary", backoff(none)),
        restart = "transient",
        shutdown = "20s",
        requires = "plain"
    )]
    everything: DynamicSupervisor,
    #[dynamic(unlimited_restarts)]
    unlimited: DynamicSupervisor,
    limit: usize,
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let fields = (DynamicSupervisor, DynamicSupervisor, DynamicSupervisor);
    let (plain, everything, unlimited) = fields;
    let app = App { plain, everything, unlimited, limit: 1 };

    let conns = DynamicSupervisor::builder("conns")
        .max_children(1)
        .restarts(100, 10 * SECOND)
        .on_exhausted(OnExhausted::Park)
        .leak_timeout(2 * SECOND)
        .stop_deadline(3 * SECOND)
        .preset(Preset::elixir())
        .defaults(|child| child.restart(RestartType::Temporary).backoff(Backoff::none()))
        .into_child()
        .restart(RestartType::Transient)
        .shutdown(20 * SECOND)
        .requires("plain");
    let by_builder = Supervisor::builder("app")
        .child(DynamicSupervisor::builder("plain"))
        .child(conns)
        .child(DynamicSupervisor::builder("unlimited").unlimited_restarts());
    let builder = app.builder();
    assert_eq!(format!("{builder:?}"), format!("{by_builder:?}"));

    let tree = builder.build().unwrap().start().await.unwrap();
    let spec = tree.child_spec("conns").await.unwrap();
    assert_eq!(
        (spec.restart, spec.shutdown),
        (RestartType::Transient, Shutdown::from(20 * SECOND))
    );
    let status = tree.status().await.unwrap();
    let limits = status.root.children.iter().map(|node| {
        let supervisor = node.supervisor.as_ref().unwrap();
        assert_eq!(supervisor.strategy, "dynamic");
        (supervisor.max_restarts, supervisor.child_limit.is_some())
    });
    // By default, each child has a limit of its own.
    assert_eq!(limits.collect::<Vec<_>>(), [(None, true), (Some(100), false), (None, false)]);

    let conns = tree.supervisor("conns").await.unwrap();
    let conn = || worker("conn", async |ctx| ctx.cancelled().await);
    let first = conns.start_child(conn()).await.unwrap();
    assert_eq!(conns.child_spec(first.name()).await.unwrap().restart, RestartType::Temporary);
    let second = conns.start_child(conn()).await;
    assert!(matches!(second, Err(ControlError::MaxChildren { .. })), "{second:?}");
    tree.stop("the test is over").await.unwrap();
}
