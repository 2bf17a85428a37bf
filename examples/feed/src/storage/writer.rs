//! The child that combines batches of all sources, so that one commit stores many.

use std::sync::Arc;

use verger::mailbox::{Delivery, Inbox};
use verger::{Context, Exit};

use super::{Commit, Offer};
use crate::app::App;
use crate::chaos::Site;

/// A commit takes no further batch once it has this many lines or bytes.
const MAX_LINES: usize = 512;
const MAX_BYTES: usize = 4 << 20;

pub(crate) async fn writer(ctx: Context, mut inbox: Inbox<Offer>, app: Arc<App>) -> Exit {
    while let Some(first) = inbox.deliver().await {
        let group = gather(first, &mut inbox);
        let batches = group.iter().map(|offer| Arc::clone(&offer.batch)).collect();
        let commit = app.database.ask(|reply| Commit { batches, reply });
        let Some(receipts) = ctx.run_until_cancelled(commit).await else { break };
        let receipts = receipts?;
        app.chaos.strike(&ctx, Site::Writer).await?;
        for (offer, receipt) in group.into_iter().zip(receipts) {
            offer.reply.send(receipt);
            offer.ack();
        }
        app.progress.made();
        ctx.set_status(app.stats.line());
    }
    Ok(())
}

/// Takes the batches that are queued, without waiting for more.
fn gather(first: Delivery<Offer>, inbox: &mut Inbox<Offer>) -> Vec<Delivery<Offer>> {
    let (mut lines, mut bytes) = (0, 0);
    let mut group = Vec::new();
    let mut next = Some(first);
    while let Some(offer) = next {
        lines += offer.batch.len();
        bytes += offer.batch.bytes();
        group.push(offer);
        next = if lines < MAX_LINES && bytes < MAX_BYTES { inbox.try_deliver() } else { None };
    }
    group
}
