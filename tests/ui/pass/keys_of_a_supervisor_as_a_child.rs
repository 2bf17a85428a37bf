//! `child(…)` sets the options of a supervisor as a child; the attribute above the field wins.

use std::time::Duration;

use verger::status::ChildKind;
use verger::{RestartType, Shutdown, Supervisor, supervisor};

#[supervisor(child(restart = "transient", shutdown = "30s"))]
struct Pool {}

#[supervisor]
struct App {
    #[supervisor]
    first: Pool,
    #[supervisor(restart = "temporary")]
    second: Pool,
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let app = App { first: Pool {}, second: Pool {} }.builder();
    let tree = app.build().unwrap().start().await.unwrap();
    let grace = Shutdown::Timeout(Duration::from_secs(30));
    for (name, restart) in [("first", RestartType::Transient), ("second", RestartType::Temporary)] {
        let spec = tree.child_spec(name).await.unwrap();
        assert_eq!((spec.kind, spec.restart), (ChildKind::Supervisor, restart));
        assert_eq!(spec.shutdown, grace);
    }
    tree.stop("the test is over").await.unwrap();

    let tree = Supervisor::builder("app").child(Pool {}).build().unwrap().start().await.unwrap();
    assert_eq!(tree.child_spec("pool").await.unwrap().restart, RestartType::Transient);
    tree.stop("the test is over").await.unwrap();
}
