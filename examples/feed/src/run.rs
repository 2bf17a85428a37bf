//! Runs the tree until it ends or a signal arrives, and keeps its last snapshot.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;

use verger::status::Node;
use verger::{RunError, SupervisorHandle};

use crate::app::App;
use crate::storage::Mailboxes;
use crate::tree;

/// How the tree ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Why the tree gave up, if it did.
    pub(crate) gave_up: Option<String>,
    /// The last snapshot of the tree, as text.
    pub(crate) tree: String,
    pub(crate) restarts: u64,
    pub(crate) dead_letters: u64,
}

/// Runs the tree until everything is stored, a signal arrives, or it gives up.
pub(crate) async fn run(app: &Arc<App>, mailboxes: Mailboxes) -> Result<Ended, String> {
    let supervisor = tree::build(app, mailboxes).map_err(|error| error.to_string())?;
    let tree = supervisor.start().await.map_err(|error| error.to_string())?;
    let mut dead_letters = 0;
    let result = tokio::select! {
        result = ended(app, &tree) => result,
        never = count(app, &tree, &mut dead_letters) => match never {},
    };
    let status = app.last_look();
    Ok(Ended {
        gave_up: result.err().map(|error| error.to_string()),
        tree: status.as_ref().map_or(String::new(), ToString::to_string),
        restarts: status.map_or(0, |status| restarts(&status.root)),
        dead_letters,
    })
}

/// Waits for the end of the tree, and stops it at a signal.
async fn ended(app: &App, tree: &SupervisorHandle) -> Result<(), RunError> {
    tokio::select! {
        result = tree.wait() => result,
        signal = verger::signals() => {
            app.look(tree).await;
            tree.stop(signal.to_string()).await
        }
    }
}

/// Counts dead letters, and takes a snapshot at each. A supervisor that gives up publishes one, which
/// may be the last chance for a snapshot.
async fn count(app: &App, tree: &SupervisorHandle, count: &mut u64) -> Infallible {
    let mut letters = tree.dead_letters();
    while letters.next().await.is_some() {
        *count += 1;
        app.look(tree).await;
    }
    pending().await
}

/// Returns the restarts of this child and of all below it.
fn restarts(node: &Node) -> u64 {
    u64::from(node.child.restarts) + node.children.iter().map(restarts).sum::<u64>()
}
