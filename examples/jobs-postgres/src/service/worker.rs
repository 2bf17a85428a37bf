//! Takes one job after the other.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use verger::{Context, Exit};

use super::Shared;
use crate::queue;

/// How often a worker looks for jobs that were not announced: those that a different worker has given back, and those
/// that were added while the listener had no connection.
const POLL: Duration = Duration::from_secs(1);

pub(super) async fn worker(ctx: Context, shared: Arc<Shared>) -> Exit {
    let settings = &shared.settings;
    let name = format!("{}/{}", settings.name, ctx.path().name());
    let mut client = settings.database.connect(&ctx).await?;
    let mut added = shared.added.subscribe();
    ctx.ready();
    while !ctx.is_cancelled() {
        // Before it looks, so that what is added while it looks wakes it.
        added.mark_unchanged();
        // Not dropped when the worker is cancelled: a job that was begun is finished, within the grace of the child.
        if queue::run_one(&settings.database, &mut client, &name).await?.is_none() {
            tokio::select! {
                () = ctx.cancelled() => {}
                _ = added.changed() => {}
                () = sleep(POLL) => {}
            }
        }
    }
    Ok(())
}
