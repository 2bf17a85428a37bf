//! HTTP probes: is the process alive, is it ready, has it started?
//!
//! They look at the tree through a handle, and change nothing. A listener of an application's own serves
//! them until the hooks after the stop have run.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::companion::{Companion, RunStart, companion};
use super::connections::{Connections, serve};
use super::listen::ListenAddress;
use crate::error::RunError;
use crate::handle::SupervisorHandle;
use crate::named_task::OwnedTask;
use crate::spec::Supervisor;
use crate::status::{Problem, Status};
use crate::{Application, subscriber};

/// How long a supervisor may take for a turn of its loop.
const TURN: Duration = Duration::from_secs(5);
/// The most connections: a few clients send one request every few seconds.
const MOST: usize = 32;
/// How long a snapshot may take.
const SNAPSHOT: Duration = Duration::from_secs(2);

/// Returns the probes of a tree, to be served by a listener of your own.
///
/// | path | 200 | 503 |
/// | --- | --- | --- |
/// | `/livez` | every supervisor has gone through its loop within 5 s | some have not: the process should be restarted |
/// | `/readyz` | the tree [is ready](Status::is_ready) | it isn't, or it is about to stop |
/// | `/startupz` | the first start is complete | it is not |
///
/// The body of an answer with 503 names each problem in a line. With `?verbose`, the body of `/readyz` also names the
/// [problems](Status::problems) that leave the tree ready, and any body ends with the whole tree as text. `/livez` doesn't look at dependencies: a database that is down must not
/// restart the services that need it.
///
/// ```
/// use std::time::Duration;
///
/// use verger::app::probes;
///
/// # async fn f(tree: verger::Supervisor) -> Result<(), Box<dyn std::error::Error>> {
/// let tree = tree.start().await?;
/// let app = axum::Router::new().merge(probes(&tree));
/// # drop(app);
/// # Ok(())
/// # }
/// ```
pub fn probes(tree: &SupervisorHandle) -> Router {
    Router::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/startupz", get(startupz))
        .with_state(Arc::new(Probed { tree: tree.clone(), turn: Mutex::new(()) }))
}

/// The tree that is probed.
struct Probed {
    tree: SupervisorHandle,
    /// Held by the probe that waits for the loops: a loop that is stuck gets one request at a time, however
    /// often it is probed.
    turn: Mutex<()>,
}

type Tree = State<Arc<Probed>>;

#[derive(Debug, serde::Deserialize)]
struct Options {
    verbose: Option<String>,
}

type Answer = (StatusCode, String);

async fn livez(State(probed): Tree, Query(options): Query<Options>) -> Answer {
    let tree = &probed.tree;
    let stuck = {
        let _only = probed.turn.lock().await;
        tree.turn(TURN).await
    };
    let problems = stuck.iter().map(|path| format!("{path}: no turn within {TURN:?}")).collect();
    let status = if options.verbose.is_some() { snapshot(tree).await.ok() } else { None };
    answer(problems, &[], status.as_ref())
}

async fn readyz(State(probed): Tree, Query(options): Query<Options>) -> Answer {
    match snapshot(&probed.tree).await {
        Ok(status) => {
            let (essential, others) =
                status.problems().into_iter().partition::<Vec<_>, _>(|problem| problem.essential);
            let problems = essential.iter().map(ToString::to_string).collect();
            match options.verbose {
                Some(_) => answer(problems, &others, Some(&status)),
                None => answer(problems, &[], None),
            }
        }
        Err(problem) => answer(vec![problem], &[], None),
    }
}

async fn startupz(State(probed): Tree, Query(options): Query<Options>) -> Answer {
    let tree = &probed.tree;
    let problems = match tree.has_started() {
        true => Vec::new(),
        false => vec![format!("{}: not started", tree.path())],
    };
    let status = if options.verbose.is_some() { snapshot(tree).await.ok() } else { None };
    answer(problems, &[], status.as_ref())
}

/// # Errors
///
/// What is wrong, as a line of text.
async fn snapshot(tree: &SupervisorHandle) -> Result<Status, String> {
    match timeout(SNAPSHOT, tree.status()).await {
        Ok(status) => status.map_err(|error| error.to_string()),
        Err(_) => Err(format!("{}: no answer within {SNAPSHOT:?}", tree.path())),
    }
}

/// `others`: what is wrong although the answer may be that all is well.
fn answer(problems: Vec<String>, others: &[Problem], status: Option<&Status>) -> Answer {
    let (code, mut lines) = match problems.is_empty() {
        true => (StatusCode::OK, vec!["ok".to_owned()]),
        false => (StatusCode::SERVICE_UNAVAILABLE, problems),
    };
    lines.extend(others.iter().map(ToString::to_string));
    lines.extend(status.map(Status::to_string));
    (code, lines.join("\n") + "\n")
}

impl Application {
    /// Serves [probes](super::probes()) at this address, such as `0.0.0.0:8080`, on a listener of their own.
    ///
    /// It listens before the tree starts and until the hooks after the stop have run. `/readyz` answers with
    /// 503 as soon as something asks for a stop. If the address can't be bound, the application ends with exit
    /// code 2.
    pub fn probes(self, address: impl Into<String>) -> Self {
        self.probed_at(ListenAddress::Address(address.into()))
    }

    /// Serves [probes](super::probes()) on this listener, such as one that systemd has passed on.
    pub fn probes_on(self, listener: std::net::TcpListener) -> Self {
        self.probed_at(ListenAddress::Bound(listener))
    }

    fn probed_at(mut self, address: ListenAddress) -> Self {
        let address = Some(address);
        self.companions.probes = companion(ProbeServer {
            address,
            listener: None,
            task: None,
            end: CancellationToken::new(),
        });
        self
    }
}

/// The listener of an application that serves the probes of its tree.
struct ProbeServer {
    /// `None` once it is bound.
    address: Option<ListenAddress>,
    /// `None` once it is served.
    listener: Option<TcpListener>,
    task: Option<OwnedTask<()>>,
    /// Ends all connections.
    end: CancellationToken,
}

#[async_trait]
impl Companion for ProbeServer {
    async fn prepare(&mut self, _tree: &mut Supervisor) -> Result<(), RunError> {
        if let Some(address) = self.address.take() {
            self.listener = Some(address.bind("probes").await?);
        }
        Ok(())
    }

    fn start(&mut self, run: &mut RunStart<'_>) {
        let Some(listener) = self.listener.take() else { return };
        if let Ok(address) = listener.local_addr() {
            subscriber::info!(target: "verger::lifecycle", %address, "serving probes");
        }
        let connections = Connections::new(listener, MOST, self.end.clone());
        let router = probes(&run.handle());
        self.task = Some(serve("verger probes", connections, router, self.end.clone()));
    }

    async fn finish(self: Box<Self>) {
        if let Some(task) = self.task {
            task.stop().await;
        }
        self.end.cancel();
    }
}
