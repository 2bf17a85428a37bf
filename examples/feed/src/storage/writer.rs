//! The child that combines batches of all sources, so that one commit stores many.

use std::sync::Arc;

use serde::Deserialize;
use verger::config::ChildConfig;
use verger::mailbox::{Address, Delivery, Inbox};
use verger::{Context, Exit};

use super::sink::Sink;
use super::{Commit, Offer};
use crate::app::App;
use crate::chaos::Site;

/// A commit takes no further batch once it has this many bytes.
const MAX_BYTES: usize = 4 << 20;

/// The writer's part of the configuration file.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    /// A commit takes no further batch once it has this many lines.
    batch: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { batch: 512 }
    }
}

/// Returns how a new value is checked. The writer uses it from the next commit on.
pub(crate) fn config() -> ChildConfig<Settings> {
    ChildConfig::new().validate(async |new: Arc<Settings>| -> Exit {
        if new.batch == 0 {
            return Err(
                "`batch` is 0; write how many lines one transaction stores, at least 1".into()
            );
        }
        Ok(())
    })
}

pub(crate) async fn writer(
    ctx: Context,
    mut inbox: Inbox<Offer>,
    app: Arc<App>,
    sink: Sink,
) -> Exit {
    let mut config = ctx.config::<Settings>()?;
    let progress = Arc::clone(&sink.progress);
    ctx.provide(sink)?;
    let database: Address<Commit> = ctx.service().await?;
    while let Some(first) = inbox.deliver().await {
        let Settings { batch } = *config.get();
        let group = gather(first, &mut inbox, batch);
        let batches = group.iter().map(|offer| Arc::clone(&offer.batch)).collect();
        let commit = database.ask(|reply| Commit { batches, reply });
        let Some(receipts) = ctx.run_until_cancelled(commit).await else { break };
        let receipts = receipts?;
        app.chaos.strike(&ctx, Site::Writer).await?;
        for (offer, receipt) in group.into_iter().zip(receipts) {
            offer.reply.send(receipt);
            offer.ack();
        }
        progress.made();
        ctx.set_status(format!("{}, batch {batch}", app.stats.line()));
    }
    Ok(())
}

/// Takes the batches that are queued, without waiting for more.
fn gather(
    first: Delivery<Offer>,
    inbox: &mut Inbox<Offer>,
    max_lines: usize,
) -> Vec<Delivery<Offer>> {
    let (mut lines, mut bytes) = (0, 0);
    let mut group = Vec::new();
    let mut next = Some(first);
    while let Some(offer) = next {
        lines += offer.batch.len();
        bytes += offer.batch.bytes();
        group.push(offer);
        next = if lines < max_lines && bytes < MAX_BYTES { inbox.try_deliver() } else { None };
    }
    group
}
