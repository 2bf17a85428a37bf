//! `?` works with any error, and a worker may return any `Outcome`.

use std::time::Duration;

use verger::{ChildSpec, Context, Exit, ExitReason, supervisor, worker};

type Fallible<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn parse(text: &str) -> Fallible<u16> {
    Ok(text.parse()?)
}

#[worker]
async fn exit(_ctx: Context, text: String) -> Exit {
    parse(&text)?;
    Ok(())
}

#[worker]
async fn io() -> std::io::Result<()> {
    Err(std::io::Error::other("no disk"))?;
    Ok(())
}

#[worker]
async fn boxed(text: &'static str) -> Fallible {
    parse(text)?;
    Ok(())
}

#[worker]
async fn anyhow(_: Context) -> anyhow::Result<()> {
    anyhow::bail!("no reason");
}

#[worker]
async fn text() -> Result<(), &'static str> {
    Err("no text")
}

#[derive(Clone)]
struct Block;

#[worker]
impl Block {
    async fn activate(&mut self) -> Fallible {
        parse("80")?;
        Ok(())
    }

    async fn run(&mut self) -> Result<(), std::num::ParseIntError> {
        "x".parse::<u16>()?;
        Ok(())
    }
}

#[supervisor(unlimited_restarts, backoff(constant, delay = "1h"))]
struct App {
    #[child]
    exit: ChildSpec,
    #[child]
    io: ChildSpec,
    #[child]
    boxed: ChildSpec,
    #[child]
    anyhow: ChildSpec,
    #[child]
    text: ChildSpec,
    #[child]
    block: Block,
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let exit = exit("80a".to_owned());
    let app =
        App { exit, io: io(), boxed: boxed(""), anyhow: anyhow(), text: text(), block: Block };
    let app = app.builder();
    let tree = app.build().unwrap().start().await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let table = [
        ("exit", "invalid digit found in string"),
        ("io", "no disk"),
        ("boxed", "cannot parse integer from empty string"),
        ("anyhow", "no reason"),
        ("text", "no text"),
        ("block", "invalid digit found in string"),
    ];
    for (name, message) in table {
        let reason = tree.which_child(name).await.unwrap().last_exit.unwrap().reason;
        let ExitReason::Failed(error) = &*reason else { panic!("{name}: {reason}") };
        assert_eq!(error.to_string(), message);
    }
    tree.stop("the test is over").await.unwrap();
}
