//! One process of the queue: a tree with the scheduler, the listener and the workers.
//!
//! ```text
//! jobs            one_for_one
//! ├─ tables       transient     creates the tables, and ends
//! ├─ listener                   LISTEN: wakes the workers
//! ├─ workers      one_for_one   each takes jobs, with a connection of its own
//! │  ├─ worker-1
//! │  ┆
//! │  └─ worker-n
//! └─ scheduler    lease         adds jobs, in one of all processes at a time
//! ```
//!
//! Each child opens its own connection, and fails when it loses it. What happens then is the restart policy: the child
//! tries again, after a wait that grows up to 2 s, for as long as the database is away. An attempt that fails before the
//! child is ready isn't charged to the limit of its supervisor, and neither is the loss of a connection (`on_error`
//! below). So the tree outlives an outage of any length, and still gives up when a child fails for a reason of its own.

mod listener;
mod scheduler;
mod tables;
mod worker;

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use verger::lease::Lease;
use verger::policy::{OnExit, Reset};
use verger::status::{Event, EventKind, Subscription};
use verger::{
    Application, Backoff, BuildError, ChildSpec, Lifecycle, Path, Readiness, RestartType,
    Supervisor, SupervisorHandle, worker_with,
};
use verger_lease_postgres::Postgres;

use crate::database::Database;
use crate::error::{DatabaseError, Failure, chain};
use crate::queue::LEASE;
use crate::report::say;

/// What a process is told.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) database: Database,
    /// The name of this process in the ledger.
    pub(crate) name: String,
    pub(crate) workers: u32,
    /// The time from one batch of jobs to the next.
    pub(crate) every: Duration,
    /// How long the lease lasts without a renewal.
    pub(crate) ttl: Duration,
}

/// Shared by all children and all their incarnations.
#[derive(Debug)]
struct Shared {
    settings: Settings,
    /// Changes when jobs may have been added.
    added: watch::Sender<()>,
}

/// Runs the process until a signal arrives, or until it gives up.
pub(crate) async fn run(settings: Settings) -> Result<(), Failure> {
    say!("waiting for PostgreSQL at {}", settings.database.server());
    let tree = tree(settings).map_err(|error| Failure::Usage(error.to_string()));
    let mut tree = tree?;
    let events = tree.events();
    let (start, started) = oneshot::channel();
    let application = Application::new(tree).on_start(move |handle| drop(start.send(handle)));
    let ended = tokio::select! {
        ended = application.run_to_end() => ended,
        never = show(events) => match never {},
        never = announce(started) => match never {},
    };
    ended.map_err(|error| Failure::Environment(chain(&error)))
}

fn tree(settings: Settings) -> Result<Supervisor, BuildError> {
    let lease = lease(&settings);
    let workers = settings.workers;
    let shared = Arc::new(Shared { settings, added: watch::Sender::default() });
    let child = |name: String| worker_with(name, Arc::clone(&shared), worker::worker);
    let workers = (1..=workers).fold(Supervisor::builder("workers"), |all, number| {
        all.child(patient(child(format!("worker-{number}"))))
    });
    let tables = worker_with("tables", Arc::clone(&shared), tables::tables);
    let listener = worker_with("listener", Arc::clone(&shared), listener::listener);
    let scheduler = worker_with("scheduler", Arc::clone(&shared), scheduler::scheduler);
    Supervisor::builder("jobs")
        // The scheduler has to be down before its lease expires, also if it had to be aborted.
        .leak_timeout(Duration::from_millis(100))
        .child(patient(tables).restart(RestartType::Transient))
        .child(patient(listener))
        .child(workers)
        .child(patient(scheduler).lease(lease))
        .build()
}

/// Sets what all children do when the database is away.
fn patient(child: ChildSpec) -> ChildSpec {
    let backoff = Backoff::exponential(Duration::from_millis(100), Duration::from_secs(2));
    child
        .readiness(Readiness::Signal)
        .backoff(backoff.reset(Reset::OnReady))
        .on_error(DatabaseError::is_outage, OnExit::RestartUncharged)
}

/// The times are the same parts of the TTL as by default.
fn lease(settings: &Settings) -> Lease {
    let (config, ttl) = (settings.database.config().clone(), settings.ttl);
    Lease::new(LEASE, Postgres::with_config(config))
        .ttl(ttl)
        .renew_deadline(ttl * 2 / 3)
        .retry(ttl * 2 / 15)
        .poll(ttl / 30)
        .advertise(settings.name.clone())
}

/// Says when all children have started.
async fn announce(started: oneshot::Receiver<SupervisorHandle>) -> Infallible {
    if let Ok(tree) = started.await
        && tree.until_started().await
    {
        say!("serving");
    }
    pending().await
}

/// Prints what happens to the children.
async fn show(mut events: Subscription<Event>) -> Infallible {
    let mut is_unknown = false;
    // Why a child has failed: how long it waits is in the event that follows.
    let mut reasons = HashMap::new();
    while let Some(event) = events.next().await {
        // The first problem of an outage is enough: each further attempt may have a different one.
        if let EventKind::Standby { problem, .. } = &event.kind
            && std::mem::replace(&mut is_unknown, problem.is_some())
            && is_unknown
        {
            continue;
        }
        if let EventKind::Moved { from, to: Lifecycle::Errored, reason: Some(reason), .. } = &event.kind
            // Of the attempts of an outage, only the first is shown.
            && (*from == Lifecycle::Active || event.incarnation == 1)
        {
            reasons.insert(event.path, reason.to_string());
        } else if let Some(line) = line(&event, &mut reasons) {
            say!("{line}");
        }
    }
    pending().await
}

/// Returns the line about an event. Most have none.
fn line(event: &Event, reasons: &mut HashMap<Path, String>) -> Option<String> {
    let name = event.path.name();
    match &event.kind {
        EventKind::Moved { to: Lifecycle::Restarting, wait: Some((_, delay)), .. } => {
            let reason = reasons.remove(&event.path)?;
            Some(format!("{name}: {reason}; tries again in {delay:?}"))
        }
        EventKind::Moved { to: Lifecycle::Active, .. } if event.incarnation > 1 => {
            Some(format!("{name}: active again"))
        }
        EventKind::LeaseGranted { .. }
        | EventKind::LeaseLost { .. }
        | EventKind::Standby { .. }
        | EventKind::GaveUp { .. } => Some(format!("{name}: {}", event.kind)),
        _ => None,
    }
}
