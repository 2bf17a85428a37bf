//! Kills the service at random moments, and audits what its database holds afterwards.
//!
//! The service runs in a process of its own, a second one of this program. The clients run in this
//! process, so that a kill doesn't erase what they were answered. A line that a client sent is sent
//! again until it is acknowledged, by whichever process takes it.
//!
//! 1. There is one service process at a time: the next one starts when the killed one was reaped.
//! 2. The moments of the kills depend only on the seed ([`moments`]).
//! 3. Clients send new lines until the last kill. The process after the last kill is stopped when every
//!    line that was sent is acknowledged, and its own audit counts, too.
//! 4. The audit uses what the clients were answered, and the database; it asks the service nothing.
//!
//! ```text
//! kills          one_for_one
//! ├─ service     significant   starts and kills the processes, and stops the last one
//! └─ clients     one_for_one   only with --clients
//! ```

mod client;
mod moments;
mod process;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use verger::policy::AutoShutdown;
use verger::{
    BuildError, Context, Exit, ExitError, RestartType, RunError, Supervisor, signals, worker_with,
};

use crate::audit::{self, Report};
use crate::cli::Options;
use crate::config;
use crate::ledger::Ledger;
use crate::report::say;
use crate::service::{self, Failure};
use moments::Moment;
use process::Process;

pub(crate) use client::name;

/// How long a process may take until it serves, until every line is acknowledged, and until it ends
/// after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(60);

/// After how many kills a line on standard output shows the progress.
const SHOWN: u32 = 20;

/// The state that the killing child shares with the clients.
#[derive(Debug)]
struct Shared {
    options: Options,
    db: PathBuf,
    /// Where the service takes lines; `None` while no process serves.
    address: watch::Sender<Option<std::net::SocketAddr>>,
    /// Which lines of each client were acknowledged.
    ledger: Ledger,
    progress: watch::Sender<Progress>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// Processes killed.
    kills: u32,
    /// Clients whose last line was acknowledged.
    finished: usize,
}

/// How a run with kills ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) kills: u32,
    /// Why not every kill was made, or what was wrong with a process.
    pub(crate) problem: Option<String>,
    /// The result of the audit, or why there is none.
    pub(crate) report: Result<Report, String>,
}

/// Runs the service, kills it `options.kills` times, and audits its database.
pub(crate) async fn run(options: Options) -> Result<Outcome, Failure> {
    service::check_file(&options.file)?;
    config::check(&options).await?;
    let (db, _temporary) = service::database(&options.db)?;
    let shared = Arc::new(Shared {
        address: watch::Sender::new(None),
        ledger: Ledger::new(options.clients),
        progress: watch::Sender::default(),
        options,
        db,
    });
    say!("seed={}", shared.options.seed);
    let tree = tree(&shared).map_err(|error| error.to_string())?;
    let ended = tree.with_graceful_shutdown(signals()).await;
    let kills = shared.progress.borrow().kills;
    let problem = problem(ended, kills, shared.options.kills);
    let audit = tokio::task::spawn_blocking(move || {
        audit::audit_clients(&shared.db, &shared.options.file, &shared.ledger.senders())
    });
    let report = audit
        .await
        .map_err(|panic| panic.to_string())
        .and_then(|report| report.map_err(|error| error.to_string()));
    Ok(Outcome { kills, problem, report })
}

fn problem(ended: Result<(), RunError>, kills: u32, wanted: u32) -> Option<String> {
    match ended {
        Err(error) => Some(error.to_string()),
        Ok(()) if kills < wanted => Some(format!("stopped after {kills} of {wanted} kills")),
        Ok(()) => None,
    }
}

fn tree(shared: &Arc<Shared>) -> Result<Supervisor, BuildError> {
    let service = worker_with("service", Arc::clone(shared), service)
        .restart(RestartType::Transient)
        .significant();
    let clients = (0..shared.options.clients).fold(Supervisor::builder("clients"), |all, index| {
        let client = worker_with(name(index), (Arc::clone(shared), index), client::client);
        all.child(client.restart(RestartType::Transient))
    });
    // A process that fails is a finding; a second try would hide it.
    let kills = Supervisor::builder("kills")
        .restarts(0, PATIENCE)
        .auto_shutdown(AutoShutdown::AnySignificant)
        .child(service);
    if shared.options.clients == 0 { kills.build() } else { kills.child(clients).build() }
}

/// Starts and kills one process after the other, and stops the one that comes after the last kill.
async fn service(ctx: Context, shared: Arc<Shared>) -> Exit {
    match ctx.run_until_cancelled(kill_and_stop(&shared)).await {
        None => Ok(()),
        Some(done) => done,
    }
}

async fn kill_and_stop(shared: &Shared) -> Exit {
    let kills = shared.options.kills;
    for (kill, moment) in (1..=kills).zip(moments::moments(shared.options.seed)) {
        let mut process = Process::start(&shared.options, &shared.db)?;
        tokio::select! {
            ended = process.serve(&shared.address) => {
                return Err(format!("the process before kill {kill} ended: {}", ended?).into());
            }
            due = is_due(moment, &shared.address) => due?,
        }
        shared.address.send_replace(None);
        process.kill().await?;
        shared.progress.send_modify(|progress| progress.kills = kill);
        if kill.is_multiple_of(SHOWN) {
            let answered: u64 = shared.ledger.senders().clients.iter().sum();
            say!("kills={kill} answered={answered}");
        }
    }
    let mut process = Process::start(&shared.options, &shared.db)?;
    let mut progress = shared.progress.subscribe();
    let all = |progress: &Progress| progress.finished == shared.options.clients;
    let finished = async {
        serves(&shared.address).await?;
        let late = || "a line was not acknowledged after the last kill".to_owned();
        timeout(PATIENCE, progress.wait_for(all)).await.map_err(|_elapsed| late())??;
        Ok::<(), ExitError>(())
    };
    tokio::select! {
        ended = process.serve(&shared.address) => {
            return Err(format!("the last process ended: {}", ended?).into());
        }
        finished = finished => finished?,
    }
    process.terminate()?;
    let ended = timeout(PATIENCE, process.serve(&shared.address)).await;
    let ended = ended.map_err(|_elapsed| "the last process does not end after SIGTERM")??;
    if !ended.status.success() {
        return Err(format!("the last process failed: {ended}").into());
    }
    say!("service: {}", ended.last_line);
    Ok(())
}

/// Waits until a process serves.
async fn serves(address: &watch::Sender<Option<std::net::SocketAddr>>) -> Exit {
    let mut address = address.subscribe();
    let served = timeout(PATIENCE, address.wait_for(Option::is_some)).await;
    served.map_err(|_elapsed| "the process does not say where it takes lines")??;
    Ok(())
}

/// Waits for the moment of a kill.
async fn is_due(moment: Moment, address: &watch::Sender<Option<std::net::SocketAddr>>) -> Exit {
    if let Moment::Serving(_) = moment {
        serves(address).await?;
    }
    let (Moment::Starting(after) | Moment::Serving(after)) = moment;
    sleep(after).await;
    Ok(())
}
