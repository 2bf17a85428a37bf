//! The tree: who supervises whom, in which order they start, and how often they may fail.
//!
//! ```text
//! feed                 rest_for_one   what is below needs what is above
//! ├─ storage           one_for_all    the writer begins anew with its database
//! │  ├─ database
//! │  └─ writer
//! ├─ ingest            one_for_one    the file doesn't care about connections
//! │  ├─ file
//! │  └─ tcp            rest_for_one   the listener starts connections
//! │     ├─ connections dynamic        one for each
//! │     └─ listener
//! ├─ clients           one_for_one    only with --clients
//! ├─ http
//! └─ finish            significant    ends when everything is stored, and all else with it
//! ```

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use verger::{
    AutoShutdown, Backoff, BuildError, ChildSpec, Context, DynamicSupervisor, Exit, HealthCheck,
    RestartType, Strategy, Supervisor, SupervisorBuilder, child_with_mailbox, worker_with,
    worker_with_mailbox,
};

use crate::app::App;
use crate::clients::{self, client};
use crate::http::http;
use crate::ingest::{file::file, listener::listener};
use crate::storage::{Mailboxes, database::Database, writer::writer};

/// Strikes come close together at first, and then ever more rarely: storage, which has most of
/// them, meets about fifteen in the first 20,000 lines. A supervisor that needs more than this has
/// a problem that no restart cures.
const RESTARTS: u32 = 40;

/// And so has the root if its children have given up as often as this.
const ROOT_RESTARTS: u32 = 5;

const PERIOD: Duration = Duration::from_secs(60);

/// A child that ignores its stop request, as a hung one does, costs this much.
const GRACE: Duration = Duration::from_millis(400);

/// How long the database may be silent before it is given up as hung. A slow disk isn't silence.
const PATIENCE: Duration = Duration::from_secs(1);

/// More would be refused, and told so by a closed connection.
const MAX_CONNECTIONS: usize = 512;

pub(crate) fn build(app: &Arc<App>, mailboxes: Mailboxes) -> Result<Supervisor, BuildError> {
    let mut feed = supervisor("feed", Strategy::RestForOne, ROOT_RESTARTS)
        .auto_shutdown(AutoShutdown::AnySignificant)
        .child(storage(app, mailboxes))
        .child(ingest(app));
    if app.options.clients > 0 {
        feed = feed.child(clients(app));
    }
    feed.child(worker_with("http", Arc::clone(app), http)).child(finish(app)).build()
}

/// What all supervisors here have in common.
fn supervisor(name: &str, strategy: Strategy, restarts: u32) -> SupervisorBuilder {
    Supervisor::builder(name).strategy(strategy).restarts(restarts, PERIOD).defaults(|child| {
        let backoff = Backoff::exponential(Duration::from_millis(10), Duration::from_millis(200));
        child.shutdown(GRACE).backoff(backoff)
    })
}

pub(crate) fn storage(app: &Arc<App>, mailboxes: Mailboxes) -> SupervisorBuilder {
    let [checked, committing, gathering] = [(); 3].map(|()| Arc::clone(app));
    let check = HealthCheck::new(move |_| ready(checked.pulse.check()));
    let database = child_with_mailbox("database", mailboxes.database, move |inbox| {
        Database::new(Arc::clone(&committing), inbox)
    });
    let writer = worker_with_mailbox("writer", mailboxes.writer, move |ctx, inbox| {
        writer(ctx, inbox, Arc::clone(&gathering))
    });
    supervisor("storage", Strategy::OneForAll, RESTARTS)
        .child(database.health_check(check.every(PATIENCE / 2).failures(2).restarts()))
        .child(writer)
}

fn ingest(app: &Arc<App>) -> SupervisorBuilder {
    supervisor("ingest", Strategy::OneForOne, RESTARTS)
        .child(worker_with("file", Arc::clone(app), file).restart(RestartType::Transient))
        .child(
            supervisor("tcp", Strategy::RestForOne, RESTARTS)
                .child(
                    DynamicSupervisor::builder("connections")
                        .max_children(MAX_CONNECTIONS)
                        .defaults(|child| child.shutdown(GRACE)),
                )
                .child(worker_with("listener", Arc::clone(app), listener)),
        )
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
