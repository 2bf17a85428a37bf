//! Adds jobs, in one of all processes at a time.

use std::sync::Arc;

use tokio::time::{MissedTickBehavior, interval};
use verger::{Context, Exit};

use super::Shared;
use crate::queue;
use crate::report::say;

pub(super) async fn scheduler(ctx: Context, shared: Arc<Shared>) -> Exit {
    let token = ctx.fencing_token().ok_or("the scheduler needs a lease: `ChildSpec::lease`")?;
    let settings = &shared.settings;
    let mut client = settings.database.connect(&ctx).await?;
    ctx.ready();
    say!("scheduler: adds jobs, token={token}");
    let mut ticks = interval(settings.every);
    // After a pause, it adds one batch, and not all that were missed.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let adding = async {
            ticks.tick().await;
            queue::add(&settings.database, &mut client, token).await
        };
        // If it is cancelled, the transaction is rolled back. There is no time to wait: the lease expires.
        match ctx.run_until_cancelled(adding).await {
            None => return Ok(()),
            Some(Ok(())) => {}
            Some(Err(error)) if error.is_stale() => {
                say!("scheduler: refused: {error}");
                // The database knows before the supervisor of this child does.
                ctx.cancelled().await;
                return Ok(());
            }
            Some(Err(error)) => return Err(error.into()),
        }
    }
}
