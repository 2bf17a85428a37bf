//! A field or method that is configured out is no child and has no generated code.

use std::time::Duration;

use verger::{ChildSpec, Context, component, supervisor, worker};

#[worker]
#[cfg(feature = "macros")]
async fn idle(ctx: Context) {
    ctx.cancelled().await;
}

#[worker]
#[cfg(any())]
async fn idle(ctx: NotThere) {}

#[derive(Clone)]
struct Db;

#[worker]
impl Db {
    #[cfg(any())]
    async fn activate(&mut self) {
        not_there();
    }

    #[cfg(feature = "macros")]
    async fn run(&mut self, ctx: &Context) {
        ctx.set_status("runs");
        ctx.cancelled().await;
    }

    #[cfg(any())]
    async fn run(&mut self) {}
}

#[worker]
#[cfg(any())]
impl NotThere {
    async fn run(&mut self) {}
}

#[supervisor]
struct App {
    #[cfg(any())]
    #[child]
    first: NotThere,
    #[child]
    second: ChildSpec,
    #[cfg(feature = "macros")]
    #[child(name = "db")]
    third: Db,
    #[cfg(any())]
    #[child(name = "db")]
    instead: NotThere,
    #[dynamic]
    #[cfg(any())]
    fourth: NotThere,
    #[child(requires = ["db", "second"])]
    fifth: ChildSpec,
    #[cfg(any())]
    #[supervisor]
    last: NotThere,
}

#[supervisor]
#[cfg(any())]
struct NotThere {}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let app = App { second: idle(), third: Db, fifth: idle() };
    let tree = app.builder().build().unwrap().start().await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let children = tree.children().await.unwrap();
    let names: Vec<_> = children.iter().map(|child| child.path.name()).collect();
    assert_eq!(names, ["second", "db", "fifth"]);
    assert_eq!(children[1].status.as_deref(), Some("runs"));
    assert_eq!(component("db", Db).name(), "db");
    tree.stop("the test is over").await.unwrap();
}
