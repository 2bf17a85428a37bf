//! The three methods with and without the context, by `&self` and `&mut self`, with any outcome.

use std::fmt;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use verger::{Context, Exit, ExitError, supervisor, worker};

#[derive(Clone)]
struct Log(UnboundedSender<String>);

impl Log {
    fn say(&self, text: impl Into<String>) {
        let _ = self.0.send(text.into());
    }
}

#[derive(Debug)]
struct Refused;

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("refused")
    }
}

impl std::error::Error for Refused {}

#[derive(Clone)]
struct Least {
    log: Log,
}

#[worker]
impl Least {
    async fn run(&self) {
        self.activated().await;
        std::future::pending().await
    }

    /// A method of its own, in spite of its name.
    async fn activated(&self) {
        self.log.say("least runs");
    }
}

#[derive(Clone)]
struct Most {
    log: Log,
    connections: Vec<u32>,
}

#[worker(shutdown = "20s")]
impl Most {
    const SIZE: u32 = 2;

    fn new(log: Log) -> Self {
        Self { log, connections: Vec::new() }
    }

    async fn activate(&mut self, ctx: &Context) -> Result<(), Refused> {
        for number in 0..Self::SIZE {
            self.connect(number).await?;
        }
        self.log.say(format!("{} has {:?}", ctx.path(), self.connections));
        Ok(())
    }

    async fn run(&mut self, ctx: &Context) -> Result<(), ExitError> {
        self.log.say("most runs");
        ctx.cancelled().await;
        Ok(())
    }

    async fn deactivate(&mut self, _ctx: &Context) -> Exit {
        self.log.say("most is over");
        Ok(())
    }

    async fn connect(&mut self, number: u32) -> Result<(), Refused> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.connections.push(number);
        Ok(())
    }
}

#[derive(Clone)]
struct Mixed {
    log: Log,
}

impl Mixed {
    /// What is not in the block is no part of the worker.
    async fn deactivate(&self) {
        unreachable!();
    }
}

#[worker(restart = "temporary")]
impl Mixed {
    async fn activate(&self) -> Result<(), String> {
        self.log.say("mixed is active");
        Ok(())
    }

    async fn run(&mut self) -> Result<(), &'static str> {
        if false {
            self.deactivate().await;
        }
        Err("mixed fails")
    }
}

#[supervisor]
struct App {
    #[child]
    least: Least,
    #[child]
    most: Most,
    #[child]
    mixed: Mixed,
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let (sender, mut lines) = unbounded_channel();
    let log = || Log(sender.clone());
    let app =
        App { least: Least { log: log() }, most: Most::new(log()), mixed: Mixed { log: log() } };
    let tree = app.builder().build().unwrap().start().await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(tree.otp().count_children().await.unwrap().specs, 2, "the temporary one has failed");
    let stopped = tree.stop("the test is over").await.unwrap_err();
    assert!(stopped.to_string().starts_with("stopped, but killed"), "{stopped}");
    let mut all = Vec::new();
    while let Ok(line) = lines.try_recv() {
        all.push(line);
    }
    let expected =
        ["least runs", "app/most has [0, 1]", "most runs", "mixed is active", "most is over"];
    assert_eq!(all, expected);
}
