//! LISTEN of PostgreSQL: a notification wakes a child, and a table says what there is to do.
//!
//! ```text
//! app          one_for_one
//! ├─ server    PostgreSQL, which ends the listener's session
//! └─ jobs      listens, and takes the jobs out of the table
//! ```
//!
//! A connection of tokio-postgres doesn't come back: its end is a failure of the child, and the next incarnation connects
//! again. The server keeps no notification for a client that isn't connected, so each incarnation reads the table once it
//! listens. A notification is a hint and no message.
//!
//! ```text
//! cargo run --bin listen
//! ```

use std::future::poll_fn;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use recipes::{Server, until_active};
use tokio::sync::{Notify, mpsc};
use tokio_postgres::{AsyncMessage, Client, NoTls};
use verger::{Context, Exit, Readiness, Supervisor, worker_with};

type Jobs = mpsc::UnboundedSender<i32>;

async fn jobs(ctx: Context, (url, done): (String, Jobs)) -> Exit {
    let (client, mut connection) = tokio_postgres::connect(&url, NoTls).await?;
    let notified = Arc::new(Notify::new());
    let wake = Arc::clone(&notified);
    // The connection has to be polled beside the queries. Its end fails the child.
    ctx.spawn(async move {
        while let Some(message) = poll_fn(|cx| connection.poll_message(cx)).await {
            if let AsyncMessage::Notification(_) = message? {
                wake.notify_one();
            }
        }
        Exit::Err("the connection has ended".into())
    });
    client.batch_execute("LISTEN jobs").await?;
    ctx.ready();
    loop {
        // After LISTEN, and before the first notification: nothing falls between the two.
        for row in client.query("DELETE FROM jobs RETURNING id", &[]).await? {
            done.send(row.get(0))?;
        }
        if ctx.run_until_cancelled(notified.notified()).await.is_none() {
            return Ok(());
        }
    }
}

/// Adds a job, and notifies the child.
async fn add(client: &Client, id: i32) -> anyhow::Result<()> {
    client.batch_execute(&format!("INSERT INTO jobs VALUES ({id}); NOTIFY jobs")).await?;
    Ok(())
}

async fn show() -> anyhow::Result<String> {
    let server = Server::postgres()?;
    let url = format!("postgres://postgres@{}/postgres", server.address());
    let app = Supervisor::builder("app").child(server.child()).build()?.start().await?;
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
    #[expect(clippy::disallowed_methods, reason = "it is joined below")]
    let connection = tokio::spawn(connection);
    client.batch_execute("CREATE TABLE jobs (id INT PRIMARY KEY)").await?;

    let (done, mut seen) = mpsc::unbounded_channel();
    let url = format!("{url}?application_name=jobs");
    let jobs = worker_with("jobs", (url, done), jobs).readiness(Readiness::Signal);
    app.start_child(jobs).await?;
    add(&client, 1).await?;
    ensure!(seen.recv().await == Some(1), "no notification");

    let session = "FROM pg_stat_activity WHERE application_name = 'jobs'";
    client.batch_execute(&format!("SELECT pg_terminate_backend(pid) {session}")).await?;
    // No session listens, so this notification reaches no client.
    add(&client, 2).await?;
    until_active(&app, "jobs", 2).await?;
    add(&client, 3).await?;
    let mut ids = vec![1];
    while ids.len() < 3 {
        ids.push(seen.recv().await.context("the child has ended")?);
    }
    drop(client);
    connection.await??;
    app.stop("the recipe is over").await?;
    Ok(format!("listen: jobs {ids:?} are done, one of them from a time without a listener"))
}

fn main() -> ExitCode {
    recipes::run(show())
}
