//! Wakes the workers when jobs are added.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use verger::{Context, Exit};

use super::Shared;
use crate::database::CHANNEL;

/// How often the connection is checked. Nothing is written to it otherwise, so a network that is cut would never be
/// noticed.
const CHECK: Duration = Duration::from_secs(2);

pub(super) async fn listener(ctx: Context, shared: Arc<Shared>) -> Exit {
    let database = &shared.settings.database;
    let client = database.connect_and_wake(&ctx, Some(shared.added.clone())).await?;
    database.answer(client.batch_execute(&format!("LISTEN {CHANNEL}"))).await?;
    ctx.ready();
    // What was announced before this connection was open has reached no one.
    shared.added.send_replace(());
    while ctx.run_until_cancelled(sleep(CHECK)).await.is_some() {
        database.answer(client.batch_execute("")).await?;
    }
    Ok(())
}
