//! Arguments may have the lifetime `'static`, or borrow when they are called.

use std::borrow::Cow;
use std::time::Duration;

use verger::{Context, Exit, Supervisor, worker};

#[worker]
async fn statics(
    ctx: Context,
    name: &'static str,
    all: &'static [&'static str],
    show: fn(&str) -> String,
    other: Cow<'static, str>,
    map: impl Fn(&str) -> Cow<'_, str> + Clone + Send + Sync + 'static,
) -> Exit {
    ctx.set_status([&*show(name), all[0], &*other, &*map("d")].concat());
    ctx.cancelled().await;
    Ok(())
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let statics = statics("a", &["b"], str::to_uppercase, "c".into(), |text| text.into());
    let app = Supervisor::builder("app").child(statics);
    let tree = app.build().unwrap().start().await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(tree.which_child("statics").await.unwrap().status.as_deref(), Some("Abcd"));
    tree.stop("the test is over").await.unwrap();
}
