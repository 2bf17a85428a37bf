//! Three processes of the queue, each behind a proxy, and a script that breaks them one after the other.
//!
//! ```text
//! demo            one_for_one
//! ├─ network      one_for_one   the proxies of a, b and c
//! ├─ processes    one_for_one   the processes a, b and c
//! └─ script       significant   breaks things; its end is that of the demo
//! ```
//!
//! A process that is killed is a child that has failed, so its supervisor starts it again.

mod cast;
mod process;
mod proxy;
mod script;

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use verger::policy::AutoShutdown;
use verger::{Application, BuildError, RestartType, Supervisor, worker_with};

use self::cast::{Cast, Member};
use crate::database::Database;
use crate::error::{Failure, chain};

#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) database: Database,
    /// How long the lease of the scheduler lasts.
    pub(crate) ttl: Duration,
}

/// How long a process may take to end in order.
const GRACE: Duration = Duration::from_secs(15);

/// Runs the demo. What it proves is in the tables afterwards.
pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let environment = |error: std::io::Error| Failure::Environment(error.to_string());
    // One message that there is no database, instead of one by each process.
    drop(options.database.open().await?);
    let mut members = Vec::new();
    for name in ["a", "b", "c"] {
        // Bound once, so that a proxy has the same port for the whole demo.
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(environment)?;
        members.push(Member::new(name, listener));
    }
    let tree = tree(&Arc::new(Cast::new(options, members)));
    let ended = Application::new(tree).run_to_end().await;
    ended.map_err(|error| Failure::Environment(chain(&error)))
}

fn tree(cast: &Arc<Cast>) -> Result<Supervisor, BuildError> {
    let network = Supervisor::builder("network");
    let network = (0..cast.members.len()).fold(network, |all, member| {
        let state = (Arc::clone(cast), member);
        all.child(worker_with(cast.members[member].name, state, proxy::proxy))
    });
    // The demo kills each process at most once. One that ends for a different reason ends the demo.
    let processes = Supervisor::builder("processes").restarts(1, Duration::MAX);
    let processes = (0..cast.members.len()).fold(processes, |all, member| {
        let state = (Arc::clone(cast), member);
        let process = worker_with(cast.members[member].name, state, process::process);
        all.child(process.shutdown(GRACE))
    });
    let script = worker_with("script", Arc::clone(cast), script::script);
    Supervisor::builder("demo")
        .restarts(0, Duration::MAX)
        .auto_shutdown(AutoShutdown::AnySignificant)
        .child(network)
        .child(processes)
        .child(script.restart(RestartType::Transient).significant())
        .build()
}
