//! A constructor makes any number of children, each named after its field.

use std::time::Duration;

use verger::{ChildSpec, Context, Supervisor, supervisor, worker};

#[worker]
async fn poll(ctx: Context, url: &'static str) {
    ctx.set_status(url);
    ctx.cancelled().await;
}

#[supervisor]
struct App {
    #[child]
    north: ChildSpec,
    #[child]
    south: ChildSpec,
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let by_macro = App { north: poll("n"), south: poll("s") }.builder();
    let by_builder =
        Supervisor::builder("app").child(poll("n").named("north")).child(poll("s").named("south"));
    for builder in [by_macro, by_builder] {
        let tree = builder.build().unwrap().start().await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        for (name, status) in [("north", "n"), ("south", "s")] {
            assert_eq!(tree.which_child(name).await.unwrap().status.as_deref(), Some(status));
        }
        tree.stop("the test is over").await.unwrap();
    }
}
