//! Supervisors of supervisors of workers, each with its own rules.

use verger::{ChildSpec, Context, Supervisor, supervisor, worker};

#[worker]
async fn idle(ctx: Context) {
    ctx.cancelled().await;
}

#[supervisor(strategy = "one_for_all", max_restarts = 1, period = "1s")]
struct Pool {
    #[child]
    first: ChildSpec,
    #[child(requires = "first")]
    second: ChildSpec,
}

#[derive(Supervisor)]
#[tree(strategy = "rest_for_one", max_restarts = 2, period = "2s")]
struct Ingest {
    #[tree(shutdown = "30s")]
    pool: Pool,
    #[child(requires = "pool")]
    mqtt: ChildSpec,
}

#[supervisor(max_restarts = 3, period = "3s")]
struct App {
    #[supervisor]
    ingest: Ingest,
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let pool = Pool { first: idle(), second: idle() };
    let app = App { ingest: Ingest { pool, mqtt: idle() } };
    let tree = app.builder().build().unwrap().start().await.unwrap();

    let mut node = tree.status().await.unwrap().root;
    for (path, strategy, max) in [
        ("app", "one_for_one", 3),
        ("app/ingest", "rest_for_one", 2),
        ("app/ingest/pool", "one_for_all", 1),
    ] {
        assert_eq!(node.child.path.as_str(), path);
        let supervisor = node.supervisor.unwrap();
        assert_eq!((&*supervisor.strategy, supervisor.max_restarts), (strategy, Some(max)));
        node = node.children.swap_remove(0);
    }
    assert_eq!(node.child.path.as_str(), "app/ingest/pool/first");
    tree.stop("the test is over").await.unwrap();
}
