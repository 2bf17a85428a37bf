//! A pool is provided by one child, used by two, and replaced under them.
//!
//! ```text
//! app          rest_for_one
//! ├─ api       watches the pool, and goes on with the next one
//! ├─ db        provides the pool; its connection breaks twice
//! └─ reports   restarted with `db`, and finds the pool when it starts
//! ```
//!
//! No code passes the pool from `db` to its users.
//!
//! ```text
//! cargo run --example shared_pool --features service
//! ```

#![expect(clippy::print_stdout, reason = "the example prints what happens")]

use std::time::Duration;

use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::time::{sleep, timeout};
use verger::service::Service;
use verger::{Context, Exit, supervisor, worker};

/// A pool of connections, which a program would take from a database client.
#[derive(Clone)]
struct Pool(u32);

#[supervisor(strategy = "rest_for_one")]
struct App {
    #[child]
    api: verger::ChildSpec,
    #[child]
    db: verger::ChildSpec,
    #[child(requires = "db")]
    reports: verger::ChildSpec,
}

/// What the children report to `main`: their name, their incarnation, and the pool that they use.
type Report = (&'static str, u32, Option<u32>);

/// Opens a pool and provides it until its connection breaks.
#[worker(backoff(constant, delay = "50ms"))]
async fn db(ctx: Context) -> Exit {
    ctx.provide(Pool(ctx.incarnation()))?;
    if ctx.incarnation() < 3 {
        sleep(Duration::from_millis(50)).await;
        return Err("the connection broke".into());
    }
    ctx.cancelled().await;
    Ok(())
}

/// Runs on while the pool is replaced. Declared before `db`, so it isn't restarted with it.
#[worker]
async fn api(ctx: Context, mut pool: Service<Pool>, reports: UnboundedSender<Report>) -> Exit {
    loop {
        let Pool(number) = pool.get().await?;
        reports.send(("api", ctx.incarnation(), Some(number)))?;
        // Serve requests here, until the pool is withdrawn.
        pool.changed().await?;
        reports.send(("api", ctx.incarnation(), None))?;
    }
}

/// Uses one pool for its whole life. Declared after `db`, so it is restarted with it.
#[worker]
async fn reports(ctx: Context, reports: UnboundedSender<Report>) -> Exit {
    let Pool(number) = ctx.service().await?;
    reports.send(("reports", ctx.incarnation(), Some(number)))?;
    ctx.cancelled().await;
    Ok(())
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (sender, mut received) = mpsc::unbounded_channel();
    let app = App { api: api(sender.clone()), db: db(), reports: reports(sender) };
    let app = app.builder().build()?.start().await?;
    let mut users_of_the_third = 0;
    while users_of_the_third < 2 {
        let report = timeout(Duration::from_secs(20), received.recv()).await?;
        match report.ok_or("the tree has ended")? {
            (name, incarnation, Some(pool)) => {
                println!("{name}, incarnation {incarnation}: uses pool {pool}");
                users_of_the_third += u32::from(pool == 3);
            }
            (name, incarnation, None) => {
                println!("{name}, incarnation {incarnation}: the pool was withdrawn");
            }
        }
    }
    for service in app.services() {
        println!("{} provides {}", service.provider, service.service);
    }
    Ok(app.stop("the example is over").await?)
}
