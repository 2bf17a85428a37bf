//! A connection pool of sqlx that outlives its database: the child that owns it is not restarted.
//!
//! ```text
//! app          one_for_one
//! ├─ server    PostgreSQL, which is killed
//! ├─ db        opens the pool once, and provides it
//! └─ writer    writes each number of its mailbox
//! ```
//!
//! A pool replaces broken connections itself, so `db` ends only with the program. What fails is a query: in the writer, a
//! failed one ends the incarnation, and the number is delivered to the next one.
//!
//! ```text
//! cargo run --bin sqlx
//! ```

use std::process::ExitCode;
use std::time::Duration;

use anyhow::ensure;
use recipes::{Server, until_active};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio::sync::watch;
use verger::mailbox::Inbox;
use verger::{Context, Exit, Readiness, Supervisor, mailbox, worker_with, worker_with_mailbox};

/// Owns the pool. At the first start, a database that is away fails the activation, which is repeated with backoff.
async fn db(ctx: Context, url: String) -> Exit {
    // A query waits that long for a connection, and so for the end of a short outage.
    let options = PgPoolOptions::new().acquire_timeout(Duration::from_secs(10));
    let pool = options.connect(&url).await?;
    let table = "CREATE TABLE IF NOT EXISTS numbers (number INT PRIMARY KEY)";
    sqlx::query(table).execute(&pool).await?;
    ctx.provide(pool.clone())?;
    ctx.ready();
    ctx.cancelled().await;
    // The children that are declared after this one have ended, so no query is running.
    pool.close().await;
    Ok(())
}

/// Writes numbers, each at least once: it is acknowledged after it was written.
async fn writer(ctx: Context, mut inbox: Inbox<i32>, written: watch::Sender<i32>) -> Exit {
    let pool: PgPool = ctx.service().await?;
    while let Some(number) = inbox.deliver().await {
        // The connection may break after the commit, and the number is written again.
        let insert = sqlx::query("INSERT INTO numbers VALUES ($1) ON CONFLICT DO NOTHING");
        insert.bind(*number).execute(&pool).await?;
        written.send_replace(number.ack());
    }
    Ok(())
}

async fn show() -> anyhow::Result<String> {
    let server = Server::postgres()?;
    let url = format!("postgres://postgres@{}/postgres", server.address());
    let (address, mailbox) = mailbox();
    let written = watch::Sender::new(0);
    let mut done = written.subscribe();
    let app = Supervisor::builder("app")
        .child(server.child())
        .child(worker_with("db", url, db).readiness(Readiness::Signal))
        .child(worker_with_mailbox("writer", mailbox, move |ctx, inbox| {
            writer(ctx, inbox, written.clone())
        }));
    let app = app.build()?.start().await?;
    for number in 1..=10 {
        address.send(number).await?;
    }
    done.wait_for(|&number| number == 10).await?;

    app.kill("server").await?;
    for number in 11..=20 {
        address.send(number).await?;
    }
    done.wait_for(|&number| number == 20).await?;
    until_active(&app, "server", 2).await?;

    let pool: PgPool = app.service().await?;
    let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM numbers").fetch_one(&pool).await?;
    ensure!(app.which_child("db").await?.incarnation == 1, "the pool was replaced");
    drop(pool);
    app.stop("the recipe is over").await?;
    Ok(format!("sqlx: {rows} of 20 rows after the database was killed, with the same pool"))
}

fn main() -> ExitCode {
    recipes::run(show())
}
