//! Errors say how long to wait: a child's own function comes before that of its supervisor.

use std::fmt;
use std::time::Duration;

use verger::{ChildSpec, Context, Exit, Lifecycle, supervisor, worker};

#[derive(Clone, Copy, Debug)]
struct Busy(Option<u64>);

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "busy for {:?} s", self.0)
    }
}

impl std::error::Error for Busy {}

fn as_asked(busy: &Busy) -> Option<Duration> {
    busy.0.map(Duration::from_secs)
}

#[worker(backoff(constant, delay = "1m"), retry_after = as_asked)]
async fn asking(ctx: Context, seconds: Option<u64>) -> Exit {
    match ctx.incarnation() {
        1 => Err(Busy(seconds).into()),
        _ => Ok(ctx.cancelled().await),
    }
}

#[supervisor(defaults(retry_after = move |_: &Busy| Some(self.patience)))]
struct App {
    #[child]
    asked: ChildSpec,
    #[child]
    open: ChildSpec,
    patience: Duration,
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let patience = Duration::from_secs(7);
    let app = App { asked: asking(Some(3)), open: asking(None), patience };
    let tree = app.builder().build().unwrap().start().await.unwrap();

    let states = [
        (2, [Lifecycle::Restarting, Lifecycle::Restarting]),
        (2, [Lifecycle::Active, Lifecycle::Restarting]),
        (4, [Lifecycle::Active, Lifecycle::Active]),
    ];
    for (seconds, states) in states {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        for (name, state) in ["asked", "open"].into_iter().zip(states) {
            assert_eq!(tree.which_child(name).await.unwrap().lifecycle, state, "{name}");
        }
    }
    tree.stop("the test is over").await.unwrap();
}
