//! The tree: who supervises whom, in which order they start, and how often they may fail.
//!
//! ```text
//! feed                 rest_for_one   what is below needs what is above
//! ├─ storage           one_for_all    a hung database is noticed by its writer, and goes with it
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

use std::sync::Arc;
use std::time::Duration;

use verger::{
    AutoShutdown, Backoff, BuildError, ChildSpec, Context, DynamicSupervisor, Exit, RestartType,
    Strategy, Supervisor, SupervisorBuilder, child, worker_with,
};

use crate::app::App;
use crate::clients::{self, client};
use crate::http::http;
use crate::ingest::{file::file, listener::listener};
use crate::storage::{database::Database, writer::writer};

/// Strikes come close together at first, and then ever more rarely: storage, which has most of
/// them, meets about fifteen in the first 20,000 lines. A supervisor that needs more than this has
/// a problem that no restart cures.
const RESTARTS: u32 = 40;

/// And so has the root if its children have given up as often as this.
const ROOT_RESTARTS: u32 = 5;

const PERIOD: Duration = Duration::from_secs(60);

/// A child that ignores its stop request, as a hung one does, costs this much.
const GRACE: Duration = Duration::from_millis(400);

/// More would be refused, and told so by a closed connection.
const MAX_CONNECTIONS: usize = 512;

pub(crate) fn build(app: &Arc<App>) -> Result<Supervisor, BuildError> {
    let mut feed = supervisor("feed", Strategy::RestForOne, ROOT_RESTARTS)
        .auto_shutdown(AutoShutdown::AnySignificant)
        .child(storage(app))
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

fn storage(app: &Arc<App>) -> SupervisorBuilder {
    let owner = Arc::clone(app);
    supervisor("storage", Strategy::OneForAll, RESTARTS)
        .child(child("database", move || Database::new(Arc::clone(&owner))))
        .child(worker_with("writer", Arc::clone(app), writer))
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
