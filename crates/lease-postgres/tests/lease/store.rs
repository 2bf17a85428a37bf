//! The store of the tests: a server, with a proxy in front of it for each member of a check.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use verger_lease_postgres::Postgres;

use crate::proxy::{Network, Proxy};
use crate::register::TABLE;
use crate::server::{PASSWORD, Server, kill};
use crate::shared::checker::faults::{Fault, Moment};
use crate::shared::checker::history::Write;
use crate::shared::checker::{MEMBERS, TTL};

/// Returns an engine of this store, for another process.
pub(crate) fn engine(store: &str) -> Postgres {
    Postgres::new(store).unwrap()
}

/// What can go wrong with a server, and with the network.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StoreFault {
    /// The server crashes, and starts again.
    RestartServer,
    /// All processes of the server are stopped by SIGSTOP.
    FreezeServer,
    /// What the holder and the server send each other is late.
    Delay,
    /// What the holder and the server send each other arrives after a long time.
    Hold,
    /// The holder can't reach the server.
    Cut,
    /// No member can reach the server.
    CutAll,
}

/// The store of a check.
pub(crate) struct Store {
    server: Server,
    proxies: Vec<Proxy>,
}

impl Store {
    /// The faults of a check.
    pub(crate) const FAULTS: &[Fault] = &[
        Fault::Stop,
        Fault::Kill,
        Fault::Pause,
        Fault::PauseAndKill,
        Fault::PauseStandby,
        Fault::KillStandby,
        Fault::OfStore(StoreFault::RestartServer),
        Fault::OfStore(StoreFault::FreezeServer),
        Fault::OfStore(StoreFault::Delay),
        Fault::OfStore(StoreFault::Hold),
        Fault::OfStore(StoreFault::Cut),
        Fault::OfStore(StoreFault::CutAll),
    ];

    /// Starts a server, or returns `None` if PostgreSQL isn't installed and needn't be.
    pub(crate) async fn start() -> Option<Self> {
        // A member that is paused in a transaction must not delay the next grant for longer than this.
        let server = Server::with(&["idle_in_transaction_session_timeout=300ms"])?;
        server.engine().migrate().await.unwrap();
        server.run_sql(TABLE).await;
        let mut proxies = Vec::new();
        for _ in 0..MEMBERS {
            proxies.push(Proxy::start(server.port).await);
        }
        Some(Self { server, proxies })
    }

    pub(crate) fn name(&self) -> &'static str {
        "rows"
    }

    /// Returns the way to the store of each member.
    pub(crate) fn addresses(&self) -> Vec<String> {
        let url =
            |it: &Proxy| format!("postgres://postgres:{PASSWORD}@127.0.0.1:{}/postgres", it.port);
        self.proxies.iter().map(url).collect()
    }

    /// Returns what the resource has accepted, in its order.
    pub(crate) async fn writes(&self) -> Vec<Write> {
        let query = "SELECT member, token FROM register ORDER BY number";
        let rows = self.server.client().await.query(query, &[]).await.unwrap();
        let write = |member: i64, token: i64| Write {
            member: member.try_into().unwrap(),
            token: token.unsigned_abs(),
        };
        rows.iter().map(|row| write(row.get(0), row.get(1))).collect()
    }

    pub(crate) async fn apply(&mut self, fault: StoreFault, moment: Moment<'_>) {
        let Moment { crowd, holder, longer_than_ttl, any_time, random } = moment;
        match fault {
            StoreFault::RestartServer => {
                self.server.stop();
                // It takes some time to start as well.
                tokio::time::sleep(any_time / 2).await;
                self.server.start_again();
            }
            StoreFault::FreezeServer => {
                let frozen = self.freeze();
                tokio::time::sleep(any_time).await;
                drop(frozen);
            }
            StoreFault::Delay => {
                let delay = TTL.mul_f64(0.01 + 0.2 * random.f64());
                self.break_network(&[holder], Network::Delays(delay), longer_than_ttl).await;
            }
            StoreFault::Hold => self.break_network(&[holder], Network::Holds, any_time).await,
            StoreFault::Cut => self.break_network(&[holder], Network::Cuts, any_time).await,
            StoreFault::CutAll => {
                let all: Vec<_> = crowd.places().collect();
                self.break_network(&all, Network::Cuts, any_time).await;
            }
        }
    }

    /// Changes the network between these members and the server for this time.
    async fn break_network(&self, places: &[usize], network: Network, time: Duration) {
        places.iter().for_each(|place| self.proxies[*place].set(network));
        tokio::time::sleep(time).await;
        places.iter().for_each(|place| self.proxies[*place].set(Network::Works));
    }

    /// Frees the lease of a holder that is paused: it expires without a call.
    pub(crate) fn free_lease(&self) {}

    /// Stops all processes of the server by SIGSTOP, until the result is dropped.
    fn freeze(&self) -> Frozen {
        let first = self.server.process_id();
        let mut frozen = Frozen(vec![first]);
        kill("-STOP", first);
        let children = PathBuf::from(format!("/proc/{first}/task/{first}/children"));
        for child in numbers(&children) {
            kill("-STOP", child);
            frozen.0.push(child);
        }
        frozen
    }
}

fn numbers(file: &Path) -> Vec<i32> {
    fs::read_to_string(file).unwrap().split_whitespace().map(|it| it.parse().unwrap()).collect()
}

/// Processes that are stopped by SIGSTOP. They continue when this is dropped: the server couldn't be ended otherwise.
struct Frozen(Vec<i32>);

impl Drop for Frozen {
    fn drop(&mut self) {
        self.0.iter().for_each(|process| kill("-CONT", *process));
    }
}
