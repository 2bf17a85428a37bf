//! A worker may have type parameters and constants. The bounds that a restart needs are added.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use verger::{ChildSpec, Context, Exit, Supervisor, worker};

#[worker]
async fn of_an_argument<T: Display>(ctx: Context, value: T) {
    ctx.set_status(value.to_string());
    ctx.cancelled().await;
}

#[worker]
async fn of_several<T, F, const N: usize>(ctx: Context, values: [T; N], show: F) -> Exit
where
    T: Into<u64> + Send,
    F: Fn(u64) -> String,
{
    let sum = values.into_iter().map(Into::into).sum();
    ctx.set_status(show(sum));
    ctx.cancelled().await;
    Ok(())
}

#[worker]
async fn of_nothing<T: Default + Display + Send + 'static>(ctx: Context) {
    ctx.set_status(T::default().to_string());
    ctx.cancelled().await;
}

#[worker]
async fn shared<T: Display + ?Sized>(ctx: Context, value: Arc<T>) {
    ctx.set_status(value.to_string());
    ctx.cancelled().await;
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let table: [(ChildSpec, &str); 5] = [
        (of_an_argument("text"), "text"),
        (of_an_argument(5), "5"),
        (of_several([1_u32, 2, 3], |sum| format!("sum {sum}")), "sum 6"),
        (of_nothing::<u8>(), "0"),
        (shared::<str>("shared".into()), "shared"),
    ];
    for (spec, status) in table {
        let app = Supervisor::builder("app").child(spec.named("any"));
        let tree = app.build().unwrap().start().await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(tree.which_child("any").await.unwrap().status.as_deref(), Some(status));
        tree.stop("the test is over").await.unwrap();
    }
}
