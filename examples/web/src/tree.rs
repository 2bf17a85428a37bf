//! The tree: what starts before what, and what restarts with what.
//!
//! ```text
//! web                 one_for_one    a failure of one part doesn't restart the others
//! ├─ metrics                         serves /metrics, and sets the gauges
//! ├─ storage          rest_for_one   what uses the database restarts with it
//! │  ├─ database                     provides the pool
//! │  └─ cleanup       every minute   deletes old notes
//! └─ http             rest_for_one   the listener needs the supervisor of the connections
//!    ├─ connections   dynamic        one child for each connection
//!    └─ listener                     accepts connections
//! ```
//!
//! `http` starts when `storage` is active, and stops before it. It isn't restarted with the database: its
//! requests wait for the next pool.

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;
use verger::config::ChildConfig;
use verger::{
    DynamicSupervisor, HealthCheck, Strategy, Supervisor, SupervisorBuilder, child, every,
    worker_with,
};

use crate::http::config::ListenerConfig;
use crate::http::listener::{GRACE, listener};
use crate::metrics_page::metrics_page;
use crate::storage::cleanup::{CleanupConfig, cleanup, is_sensible};
use crate::storage::database::{Database, is_writable};

/// How many connections are open at once. A further one is closed.
const CONNECTIONS: usize = 512;
const SECOND: Duration = Duration::from_secs(1);

/// What was opened before the tree starts, and outlives every restart in it.
#[derive(Debug)]
pub(crate) struct Resources {
    pub(crate) listen: TcpListener,
    pub(crate) metrics: TcpListener,
    pub(crate) recorder: PrometheusHandle,
    pub(crate) database: PathBuf,
}

pub(crate) fn tree(resources: Resources) -> SupervisorBuilder {
    let Resources { listen, metrics, recorder, database } = resources;
    Supervisor::builder("web")
        .version(env!("CARGO_PKG_VERSION"))
        .child(worker_with("metrics", (Arc::new(metrics), recorder), metrics_page).essential(false))
        .child(storage(database))
        .child(http(listen).into_child().requires("storage"))
}

fn storage(path: PathBuf) -> SupervisorBuilder {
    // It only reports: a restart doesn't unlock a database.
    let check = HealthCheck::new(is_writable).every(2 * SECOND).failures(2);
    let database = child("database", move || Database::new(path.clone())).health_check(check);
    // A run that fails because the database is locked is logged, and the next one is a minute later. After three in a
    // row the service is not ready.
    let cleanup = every("cleanup", 60 * SECOND, cleanup)
        .limit_run(30 * SECOND)
        .spec()
        .config(ChildConfig::<CleanupConfig>::new().validate(is_sensible));
    Supervisor::builder("storage").strategy(Strategy::RestForOne).child(database).child(cleanup)
}

fn http(listen: TcpListener) -> SupervisorBuilder {
    let connections = DynamicSupervisor::builder("connections")
        .max_children(CONNECTIONS)
        .defaults(|connection| connection.shutdown(GRACE));
    let listener = worker_with("listener", Arc::new(listen), listener)
        .config(ChildConfig::<ListenerConfig>::new());
    Supervisor::builder("http").strategy(Strategy::RestForOne).child(connections).child(listener)
}
