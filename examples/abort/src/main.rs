//! What is left of the guarantees in a program that is compiled with `panic = "abort"`: the build warns of it, a child that fails is
//! restarted, a child that panics ends the process, and the process's own panic hook has printed the panic. `.ci/run abort` runs it.
//!
//! `abort errors` ends with exit code 0, `abort panic` by the signal SIGABRT.

#![expect(clippy::print_stdout, reason = "the output is what `.ci/run` compares")]

use std::error::Error;
use std::time::Duration;

use verger::{Backoff, Context, Exit, Supervisor, worker};

async fn flaky(ctx: Context) -> Exit {
    if ctx.incarnation() < 3 {
        return Err("connection refused".into());
    }
    println!("active incarnation={}", ctx.incarnation());
    Err("done".into())
}

async fn panicking(_ctx: Context) -> Exit {
    panic!("no connection");
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // As in a real program. The hook must not swallow a panic that no supervisor will see.
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init();
    verger::install_panic_hook();
    let child = match std::env::args().nth(1).as_deref() {
        Some("errors") => worker("flaky", flaky),
        Some("panic") => worker("panicking", panicking),
        other => return Err(format!("expected `errors` or `panic`, not {other:?}").into()),
    };
    let app = Supervisor::builder("app")
        .restarts(2, Duration::from_secs(60))
        .child(child.backoff(Backoff::constant(Duration::from_millis(1))));
    let tree = app.build()?;
    for warning in tree.warnings() {
        println!("{warning}");
    }
    if let Err(error) = tree.run().await {
        println!("{error}");
    }
    Ok(())
}
