//! Functions with and without the context, with no, one and several arguments.

use std::time::Duration;

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use verger::{ChildSpec, Context, Exit, ExitError, supervisor, worker};

type Log = UnboundedSender<String>;

#[worker]
async fn nothing() {}

#[worker]
async fn context(ctx: Context) -> Exit {
    ctx.cancelled().await;
    Ok(())
}

#[worker]
async fn argument(log: Log) {
    let _ = log.send("argument".to_owned());
}

#[worker]
async fn context_and_argument(ctx: Context, log: Log) -> Result<(), ExitError> {
    let _ = log.send(format!("{}", ctx.path()));
    ctx.cancelled().await;
    Ok(())
}

#[worker]
async fn arguments(log: Log, name: &'static str, number: u32) -> Result<(), std::io::Error> {
    let _ = log.send(format!("{name} {number}"));
    Ok(())
}

#[worker]
async fn context_and_arguments(ctx: verger::Context, log: Log, every: Duration, times: u32) {
    for time in 0..times {
        if ctx.run_until_cancelled(tokio::time::sleep(every)).await.is_none() {
            return;
        }
        let _ = log.send(format!("tick {time}"));
    }
    ctx.cancelled().await;
}

#[supervisor(defaults(restart = "transient"))]
struct App {
    #[child]
    nothing: ChildSpec,
    #[child]
    context: ChildSpec,
    #[child]
    argument: ChildSpec,
    #[child]
    context_and_argument: ChildSpec,
    #[child]
    arguments: ChildSpec,
    #[child]
    context_and_arguments: ChildSpec,
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let (log, mut lines) = unbounded_channel();
    let app = App {
        nothing: nothing(),
        context: context(),
        argument: argument(log.clone()),
        context_and_argument: context_and_argument(log.clone()),
        arguments: arguments(log.clone(), "number", 5),
        context_and_arguments: context_and_arguments(log, Duration::from_secs(1), 2),
    };
    let tree = app.builder().build().unwrap().start().await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let mut all = Vec::new();
    while let Ok(line) = lines.try_recv() {
        all.push(line);
    }
    assert_eq!(all, ["argument", "app/context_and_argument", "number 5", "tick 0", "tick 1"]);
    assert_eq!(tree.otp().count_children().await.unwrap().specs, 6);
    tree.stop("the test is over").await.unwrap();
}
