//! The child that gathers batches from all sources, so that one commit serves many.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use verger::{Context, Exit};

use super::batch::{Batch, Receipt};
use crate::app::App;
use crate::chaos::Site;
use crate::port::Call;

/// How long the database may be silent before it is given up as hung. A slow disk isn't silence.
const PATIENCE: Duration = Duration::from_secs(1);

/// Batches that may wait; their senders wait behind them.
const QUEUE: usize = 64;

/// A commit takes no further batch beyond this many lines or bytes.
const MAX_LINES: usize = 512;
const MAX_BYTES: usize = 4 << 20;

pub(crate) async fn writer(ctx: Context, app: Arc<App>) -> Exit {
    let mut calls = app.writer.open(QUEUE);
    while let Some(Some(first)) = ctx.run_until_cancelled(calls.recv()).await {
        let group = gather(first, &mut calls);
        let batches: Arc<[_]> = group.iter().map(|call| Arc::clone(&call.question)).collect();
        let commit = app.database.ask(batches, PATIENCE);
        let Some(receipts) = ctx.run_until_cancelled(commit).await else { break };
        let receipts = receipts?;
        app.chaos.strike(&ctx, Site::Writer).await?;
        for (call, receipt) in group.into_iter().zip(receipts) {
            call.answer(receipt);
        }
        ctx.set_status(app.stats.line());
    }
    Ok(())
}

/// Takes what is waiting already, without waiting for more.
fn gather(
    first: Call<Arc<Batch>, Receipt>,
    calls: &mut mpsc::Receiver<Call<Arc<Batch>, Receipt>>,
) -> Vec<Call<Arc<Batch>, Receipt>> {
    let (mut lines, mut bytes) = (0, 0);
    let mut group = Vec::new();
    let mut next = Some(first);
    while let Some(call) = next {
        lines += call.question.len();
        bytes += call.question.bytes();
        group.push(call);
        next = if lines < MAX_LINES && bytes < MAX_BYTES { calls.try_recv().ok() } else { None };
    }
    group
}
