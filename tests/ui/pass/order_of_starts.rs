//! Children start in the order of the fields, or as their requirements are met.

use std::time::Duration;

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use verger::{ChildSpec, Context, supervisor, worker};

#[worker(readiness = "signal")]
async fn slow(ctx: Context, log: UnboundedSender<String>, secs: u64) {
    tokio::time::sleep(Duration::from_secs(secs)).await;
    let _ = log.send(ctx.path().name().to_owned());
    ctx.ready();
    ctx.cancelled().await;
}

#[supervisor]
struct Sequential {
    #[child]
    first: ChildSpec,
    #[child]
    second: ChildSpec,
    #[child]
    third: ChildSpec,
}

#[supervisor(start = "concurrent")]
struct Concurrent {
    #[child(requires = ["second", "third"])]
    first: ChildSpec,
    #[child]
    second: ChildSpec,
    #[child]
    third: ChildSpec,
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let (log, mut lines) = unbounded_channel();
    let slow = |secs| slow(log.clone(), secs);
    let one = Sequential { first: slow(3), second: slow(2), third: slow(1) }.builder();
    let other = Concurrent { first: slow(3), second: slow(2), third: slow(1) }.builder();
    for (builder, order, secs) in
        [(one, ["first", "second", "third"], 6), (other, ["third", "second", "first"], 5)]
    {
        let began = tokio::time::Instant::now();
        let tree = builder.build().unwrap().start().await.unwrap();
        assert_eq!(began.elapsed(), Duration::from_secs(secs));
        for name in order {
            assert_eq!(lines.try_recv().unwrap(), name);
        }
        tree.stop("the test is over").await.unwrap();
    }
}
