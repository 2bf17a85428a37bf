//! The child that reads the file again at SIGHUP, and changes the running tree to what it describes.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::signal::unix::Signal;
use tokio::sync::Mutex;
use tracing::{error, info, warn};
use verger::config::Applied;
use verger::{ChildSpec, Context, Exit, worker};

use crate::file::{self, Settings};
use crate::mistake::InputError;
use crate::tree;

/// The name of the child, which no process can have.
pub(crate) const NAME: &str = "reload";

/// What the child needs.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    /// Those that the program was started with.
    pub(crate) settings: Settings,
    /// Received since before the tree was started, and by one incarnation at a time: no signal is missed.
    pub(crate) hangups: Mutex<Signal>,
}

/// Returns the child.
pub(crate) fn child(source: &Arc<Source>) -> ChildSpec {
    let source = Arc::clone(source);
    worker(NAME, move |ctx| serve(ctx, Arc::clone(&source)))
}

async fn serve(ctx: Context, source: Arc<Source>) -> Exit {
    let mut hangups = source.hangups.lock().await;
    loop {
        ctx.set_status("waiting for SIGHUP");
        if ctx.run_until_cancelled(hangups.recv()).await.flatten().is_none() {
            return Ok(());
        }
        ctx.set_status("reloading");
        info!(file = %source.path.display(), "reloading");
        match reload(&ctx, &source).await {
            Ok(applied) => info!(changes = applied.changes.len(), "reloaded"),
            Err(problem) => {
                // Each line is a mistake.
                for line in problem.to_string().lines() {
                    error!("{line}");
                }
                warn!("not reloaded: everything runs as before");
            }
        }
    }
}

async fn reload(ctx: &Context, source: &Arc<Source>) -> Result<Applied, InputError> {
    let definition = file::read(&source.path)?;
    if definition.settings != source.settings {
        warn!("[run] has changed, which counts from the next start of verger-run");
    }
    let new = tree::build(&definition, child(source))?;
    let root = ctx.parent();
    let applied = async { root.apply(root.plan_tree(&new, &definition.config).await?).await };
    applied.await.map_err(|error| definition.not_applied(error))
}
