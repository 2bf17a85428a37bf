//! A lease in a list of keys.

use verger::lease::Lease;
use verger::testing::MemoryLeases;
use verger::{ChildSpec, Context, Lifecycle, supervisor, worker};

#[worker]
async fn scheduler(ctx: Context) {
    assert_eq!(ctx.fencing_token().map(|token| token.get()), Some(1));
    ctx.cancelled().await;
}

#[supervisor]
struct App {
    #[child(lease = Lease::new("scheduler", self.leases.clone()))]
    scheduler: ChildSpec,
    leases: MemoryLeases,
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let app = App { scheduler: scheduler(), leases: MemoryLeases::new() };
    let tree = app.builder().build().unwrap().start().await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!(tree.which_child("scheduler").await.unwrap().lifecycle, Lifecycle::Active);
    tree.stop("the test is over").await.unwrap();
}
