//! Runs the tree until it ends or a signal arrives, and keeps its last snapshot.

use std::convert::Infallible;
use std::future::pending;
use std::net::TcpListener;
use std::sync::Arc;

use tokio::sync::watch;
use verger::app::{Signals, hook};
use verger::console::Console;
use verger::status::Node;
use verger::{Application, RunError, SupervisorHandle};

use crate::app::App;
use crate::service::Failure;
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
pub(crate) async fn run(
    app: &Arc<App>,
    probes: TcpListener,
    console: Option<(TcpListener, Console)>,
    signals: Signals,
) -> Result<Ended, Failure> {
    let tree = tree::build(app).map_err(|error| error.to_string())?;
    let (started, handle) = watch::channel(None);
    let last_look = {
        let (app, handle) = (Arc::clone(app), handle.clone());
        hook("last look", async move |_cause| app.look(&running(handle).await).await)
    };
    let mut application = Application::new(tree)
        .stop_on(signals)
        .drain(app.options.drain)
        .probes_on(probes)
        .before_stop(last_look)
        .on_start(move |tree| drop(started.send(Some(tree))));
    if let Some((listener, console)) = console {
        application = application.console_on(listener, console);
    }
    if let Some(file) = &app.options.config {
        application = application.config_file(file);
    }
    let mut dead_letters = 0;
    let result = tokio::select! {
        result = application.run_to_end() => result,
        never = count(app, handle, &mut dead_letters) => match never {},
    };
    // The file was valid a moment ago, and has been changed since.
    if let Err(error @ RunError::Config { .. }) = result {
        return Err(Failure::Usage(error.to_string()));
    }
    let status = app.last_look();
    Ok(Ended {
        // A child that hangs is killed in the stop, and what it has taken is stored by the next run.
        gave_up: result
            .err()
            .filter(|error| !matches!(error, RunError::Forced { .. }))
            .map(|error| error.to_string()),
        tree: status.as_ref().map_or(String::new(), ToString::to_string),
        restarts: status.map_or(0, |status| restarts(&status.root)),
        dead_letters,
    })
}

/// Returns the tree once it has been started.
async fn running(mut handle: watch::Receiver<Option<SupervisorHandle>>) -> SupervisorHandle {
    let tree = handle.wait_for(Option::is_some).await.map(|tree| tree.clone());
    match tree {
        Ok(Some(tree)) => tree,
        // It will never be started.
        Ok(None) | Err(_) => pending().await,
    }
}

/// Counts dead letters, and takes a snapshot at each. A supervisor that gives up publishes one, which
/// may be the last chance for a snapshot.
async fn count(
    app: &App,
    handle: watch::Receiver<Option<SupervisorHandle>>,
    count: &mut u64,
) -> Infallible {
    let tree = running(handle).await;
    let mut letters = tree.dead_letters();
    while letters.next().await.is_some() {
        *count += 1;
        app.look(&tree).await;
    }
    pending().await
}

/// Returns the restarts of this child and of all below it.
fn restarts(node: &Node) -> u64 {
    u64::from(node.child.restarts) + node.children.iter().map(restarts).sum::<u64>()
}
