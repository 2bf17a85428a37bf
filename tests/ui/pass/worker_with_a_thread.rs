//! Workers that block a thread of their own, and workers whose future isn't `Send`.

use std::rc::Rc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use verger::{BlockingContext, ChildSpec, Context, Exit, component, supervisor, worker};

#[worker(blocking, restart = "transient")]
fn nothing() {}

#[worker(blocking)]
fn context(ctx: BlockingContext) -> Exit {
    loop {
        ctx.check()?;
        ctx.sleep(Duration::from_secs(1));
    }
}

#[worker(blocking, restart = "transient")]
fn argument(log: Sender<&'static str>) {
    let _ = log.send("argument");
}

/// Polls a device.
#[worker(blocking, name = "device", shutdown = "1s")]
pub fn arguments<T: ToString>(ctx: BlockingContext, port: T, every: Duration) -> Result<(), std::io::Error> {
    while ctx.sleep(every) {
        ctx.set_status(port.to_string());
    }
    Ok(())
}

#[worker(local)]
async fn script(ctx: Context, text: String) {
    let text = Rc::new(text);
    ctx.cancelled().await;
    drop(text);
}

#[worker(local, restart = "transient")]
async fn idle() {
    let _held = Rc::new(());
    tokio::task::yield_now().await;
}

#[derive(Clone)]
struct Hasher<T> {
    log: Sender<&'static str>,
    rounds: T,
}

#[worker(blocking, shutdown = "2s")]
impl<T: Into<u32> + Copy> Hasher<T> {
    fn new(log: Sender<&'static str>, rounds: T) -> Self {
        Self { log, rounds }
    }

    fn run(&mut self, ctx: &BlockingContext) -> Exit {
        for _ in 0..self.rounds.into() {
            ctx.check()?;
            self.log.send("hash")?;
        }
        ctx.block_on(ctx.cancelled());
        Ok(())
    }
}

#[derive(Clone)]
struct Shared;

#[worker(blocking, restart = "transient")]
impl Shared {
    fn run(&self) {}
}

#[supervisor]
struct App {
    #[child]
    nothing: ChildSpec,
    #[child]
    context: ChildSpec,
    #[child]
    argument: ChildSpec,
    #[child]
    device: ChildSpec,
    #[child]
    script: ChildSpec,
    #[child]
    idle: ChildSpec,
    #[child(requires = "context")]
    hasher: Hasher<u8>,
    #[child]
    shared: Shared,
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let (log, lines) = channel();
    let app = App {
        nothing: nothing(),
        context: context(),
        argument: argument(log.clone()),
        device: arguments(80, Duration::from_secs(1)),
        script: script("text".to_owned()),
        idle: idle(),
        hasher: Hasher::new(log, 1),
        shared: Shared,
    };
    let app = app.builder().build().unwrap().start().await.unwrap();
    let mut sent = [lines.recv().unwrap(), lines.recv().unwrap()];
    sent.sort();
    assert_eq!(sent, ["argument", "hash"]);
    app.stop("enough").await.unwrap();
    drop(component("again", Shared));
}
