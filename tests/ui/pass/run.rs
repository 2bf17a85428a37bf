//! `run` builds the tree and runs it until it ends, with and without an error.

use std::time::Duration;

use verger::{ChildSpec, Exit, RunError, supervisor, worker};

#[worker(restart = "transient")]
async fn shift(long: Duration) {
    tokio::time::sleep(long).await;
}

#[worker]
async fn fails() -> Exit {
    Err("no database".into())
}

#[supervisor(auto_shutdown = "any_significant")]
struct Ends {
    #[child(significant)]
    shift: ChildSpec,
}

#[supervisor(max_restarts = 1, period = "1m", backoff(constant, delay = "1s"))]
struct Fails {
    #[child]
    worker: ChildSpec,
}

#[supervisor]
struct CannotBeBuilt {
    #[child]
    needy: ChildSpec,
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let began = tokio::time::Instant::now();
    Ends { shift: shift(Duration::from_secs(9)) }.run().await.unwrap();
    assert_eq!(began.elapsed(), Duration::from_secs(9));

    let ended = Fails { worker: fails() }.run().await.unwrap_err();
    assert!(matches!(ended, RunError::GaveUp { .. }), "{ended}");
    assert_eq!(began.elapsed(), Duration::from_secs(10));

    let ended = CannotBeBuilt { needy: fails().requires("missing") }.run().await.unwrap_err();
    assert!(ended.to_string().contains("`missing`"), "{ended}");
}
