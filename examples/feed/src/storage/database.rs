//! The child that owns the connection to SQLite.
//!
//! A commit runs on a blocking thread and can't be interrupted. If an incarnation is aborted during
//! a commit, the commit still finishes. The next incarnation waits for the lock of that commit, and
//! finds both its rows and its position, or neither.

use std::sync::Arc;

use rusqlite::Result;
use tokio::task::spawn_blocking;
use verger::mailbox::{Address, Inbox};
use verger::{Child, Context, Exit, async_trait};

use super::Commit;
use super::batch::{Batch, Receipt};
use super::sqlite::Store;
use crate::app::App;
use crate::chaos::Site;

#[derive(Debug)]
pub(crate) struct Database {
    app: Arc<App>,
    inbox: Inbox<Commit>,
    address: Address<Commit>,
    store: Option<Store>,
}

impl Database {
    pub(crate) fn new(app: Arc<App>, inbox: Inbox<Commit>, address: Address<Commit>) -> Self {
        Self { app, inbox, address, store: None }
    }
}

#[async_trait]
impl Child for Database {
    async fn activate(&mut self, ctx: &Context) -> Exit {
        let path = self.app.db.clone();
        self.store = Some(spawn_blocking(move || Store::open(&path)).await??);
        Ok(ctx.provide(self.address.clone())?)
    }

    async fn run(&mut self, ctx: &Context) -> Exit {
        let pulse = &self.app.pulse;
        while let Some(asked) = pulse.beating(self.inbox.deliver()).await {
            // A restarted writer sends its batches again.
            if asked.reply.is_wanted() {
                let store = self.store.take().ok_or("the connection is gone")?;
                let (app, batches) = (Arc::clone(&self.app), Arc::clone(&asked.batches));
                let committed = spawn_blocking(move || commit(&app, store, &batches));
                let (store, receipts) = pulse.beating(committed).await??;
                self.store = Some(store);
                self.app.chaos.strike(ctx, Site::Database).await?;
                asked.reply.send(receipts);
            }
            asked.ack();
        }
        Ok(())
    }
}

/// Commits, and counts the added lines at once, so that a line counts once even if the incarnation
/// that sent it has ended.
fn commit(app: &App, mut store: Store, batches: &[Arc<Batch>]) -> Result<(Store, Vec<Receipt>)> {
    let receipts = store.commit(batches)?;
    app.count(batches, &receipts);
    Ok((store, receipts))
}
