//! Exceptions to the restart type: functions, closures, and several of them.

use std::fmt;
use std::io::{self, ErrorKind};
use std::time::Duration;

use tokio::time::Instant;
use verger::{Backoff, ChildSpec, Context, Exit, Lifecycle, supervisor, worker};

#[derive(Clone, Copy, Debug)]
struct Refused(u32);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "refused for reason {}", self.0)
    }
}

impl std::error::Error for Refused {}

fn for_good(refused: &Refused) -> bool {
    refused.0 > 3
}

#[worker(
    backoff(none),
    leave_down_if = [for_good, |error: &io::Error| error.kind() == ErrorKind::NotFound]
)]
async fn answers(reason: u32) -> Exit {
    match reason {
        0 => Err(io::Error::from(ErrorKind::NotFound).into()),
        reason => Err(Refused(reason).into()),
    }
}

#[supervisor(unlimited_restarts, auto_shutdown = "all_significant")]
struct App {
    #[child]
    missing: ChildSpec,
    #[child]
    refused: ChildSpec,
    #[child(
        restart = "temporary",
        restart_if = Self::is_the_last,
        own_restarts(max = 3, period = "1h"),
        on_exhausted = "park"
    )]
    last: ChildSpec,
    // It does end for good, so that its end can mean something.
    #[child(
        restart = "permanent",
        significant,
        leave_down_if = move |refused: &Refused| refused.0 == self.limit
    )]
    limited: ChildSpec,
    limit: u32,
}

impl App {
    fn is_the_last(refused: &Refused) -> bool {
        refused.0 == 3
    }
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let limited = worker("limited", async |ctx: Context| {
        tokio::time::sleep(Duration::from_secs(2)).await;
        Err::<(), _>(Refused(ctx.incarnation()))
    });
    let app = App {
        missing: answers(0),
        refused: answers(4),
        last: answers(3),
        limited: limited.backoff(Backoff::none()),
        limit: 2,
    };
    let tree = app.builder().build().unwrap().start().await.unwrap();

    tokio::time::sleep(Duration::from_secs(1)).await;
    for (name, incarnations) in [("missing", 1), ("refused", 1), ("last", 4)] {
        let child = tree.which_child(name).await.unwrap();
        assert_eq!(
            (child.lifecycle, child.incarnation),
            (Lifecycle::Errored, incarnations),
            "{name}"
        );
    }

    // Once it is restarted; its second end is that of all.
    let begin = Instant::now();
    tree.wait().await.unwrap();
    assert_eq!(begin.elapsed(), Duration::from_secs(3));
}
