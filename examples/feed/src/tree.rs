//! The tree: supervisors and children, their start order and their restart limits.
//!
//! ```text
//! feed                 rest_for_one   each child needs those above it
//! ├─ storage           one_for_all    the writer restarts with its database
//! │  ├─ database
//! │  └─ writer
//! ├─ ingest            one_for_one    file and connections are independent
//! │  ├─ file
//! │  └─ tcp            rest_for_one   the listener starts connections
//! │     ├─ connections dynamic        one child for each connection
//! │     └─ listener
//! ├─ clients           one_for_one    only with --clients
//! ├─ requests          dynamic        one child for each HTTP connection
//! ├─ http                             starts requests
//! └─ finish            significant    ends the service when everything is stored
//! ```

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use verger::policy::AutoShutdown;
use verger::{
    Backoff, BuildError, ChildSpec, Context, DynamicSupervisor, DynamicSupervisorBuilder, Exit,
    HealthCheck, RestartType, Strategy, Supervisor, SupervisorBuilder, child_with_mailbox,
    worker_with, worker_with_mailbox,
};

use crate::app::App;
use crate::clients::{self, client};
use crate::http::http;
use crate::ingest::{file::file, listener::listener};
use crate::storage::{Mailboxes, database::Database, mailboxes, writer};

/// The restart limit of supervisors with injected failures. Failures are frequent at first and then
/// rare: storage, which has most of them, has about fifteen in the first 20,000 lines.
const RESTARTS: u32 = 30;

/// The restart limit of the root, whose children are supervisors that gave up.
const ROOT_RESTARTS: u32 = 5;

const PERIOD: Duration = Duration::from_secs(60);

/// The grace of a child, after which a hung child is aborted.
const GRACE: Duration = Duration::from_millis(400);

/// How long the database may go without a beat before it is unhealthy. A slow disk doesn't stop the
/// beats.
const PATIENCE: Duration = Duration::from_secs(1);

pub(crate) fn build(app: &Arc<App>) -> Result<Supervisor, BuildError> {
    let mut feed = supervisor("feed", Strategy::RestForOne, ROOT_RESTARTS)
        .auto_shutdown(AutoShutdown::AnySignificant)
        .child(storage(app, mailboxes()))
        .child(ingest(app).into_child().requires("storage"));
    if app.options.clients > 0 {
        feed = feed.child(clients(app));
    }
    feed.child(connections("requests"))
        .child(worker_with("http", Arc::clone(app), http).requires("storage"))
        .child(finish(app))
        .build()
}

/// Returns a builder with the settings that all supervisors share.
fn supervisor(name: &str, strategy: Strategy, restarts: u32) -> SupervisorBuilder {
    Supervisor::builder(name).strategy(strategy).restarts(restarts, PERIOD).defaults(|child| {
        let backoff = Backoff::exponential(Duration::from_millis(10), Duration::from_millis(200));
        child.shutdown(GRACE).backoff(backoff)
    })
}

pub(crate) fn storage(app: &Arc<App>, mailboxes: Mailboxes) -> SupervisorBuilder {
    let Mailboxes { sink, writer, commits, database } = mailboxes;
    let [checked, committing, gathering] = [(); 3].map(|()| Arc::clone(app));
    let check = HealthCheck::new(move |_| ready(checked.pulse.check()));
    let database = child_with_mailbox("database", database, move |inbox| {
        Database::new(Arc::clone(&committing), inbox, commits.clone())
    });
    let writer = worker_with_mailbox("writer", writer, move |ctx, inbox| {
        writer::writer(ctx, inbox, Arc::clone(&gathering), sink.clone())
    });
    supervisor("storage", Strategy::OneForAll, RESTARTS)
        .child(database.health_check(check.every(PATIENCE / 2).failures(2).restarts()))
        .child(writer.config(writer::config()))
}

fn ingest(app: &Arc<App>) -> SupervisorBuilder {
    supervisor("ingest", Strategy::OneForOne, RESTARTS)
        .child(worker_with("file", Arc::clone(app), file).restart(RestartType::Transient))
        .child(
            supervisor("tcp", Strategy::RestForOne, RESTARTS)
                .child(connections("connections"))
                .child(worker_with("listener", Arc::clone(app), listener)),
        )
}

/// Returns a supervisor of connections. Their number is limited by their [`Room`](crate::room::Room).
fn connections(name: &str) -> DynamicSupervisorBuilder {
    DynamicSupervisor::builder(name).defaults(|child| child.shutdown(GRACE))
}

fn clients(app: &Arc<App>) -> SupervisorBuilder {
    (0..app.options.clients).fold(
        supervisor("clients", Strategy::OneForOne, RESTARTS),
        |clients, index| {
            let state = (Arc::clone(app), index);
            let client =
                async |ctx: Context, (app, index)| -> Exit { client(ctx, app, index).await };
            let client = worker_with(clients::name(index), state, client);
            clients.child(client.restart(RestartType::Transient))
        },
    )
}

fn finish(app: &Arc<App>) -> ChildSpec {
    worker_with("finish", Arc::clone(app), async |ctx: Context, app: Arc<App>| -> Exit {
        if ctx.run_until_cancelled(app.ledger.done()).await.is_some() {
            app.look(&ctx.parent()).await;
        }
        Ok(())
    })
    .restart(RestartType::Transient)
    .significant()
}
