//! A parameter may have the type `impl Trait`.

use std::time::Duration;

use verger::{Context, Exit, Supervisor, worker};

#[worker]
async fn call<const TIMES: usize>(
    ctx: Context,
    name: impl Into<String>,
    call: impl Fn(&str) -> String,
) -> Exit {
    let mut name = name.into();
    for _ in 0..TIMES {
        name = call(&name);
    }
    ctx.set_status(name);
    ctx.cancelled().await;
    Ok(())
}

#[worker]
async fn alone(state: impl AsRef<str>) {
    assert_eq!(state.as_ref(), "state");
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let call = call::<3>("a", |name| format!("{name}b"));
    let app = Supervisor::builder("app").child(call).child(alone("state".to_owned()));
    let tree = app.build().unwrap().start().await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(tree.which_child("call").await.unwrap().status.as_deref(), Some("abbb"));
    tree.stop("the test is over").await.unwrap();
}
