//! The store of a check: a directory with locked files, or a server with a proxy in front of it for each member.

use std::fs;
use std::path::{Path, PathBuf};

use super::history::Write;
use super::proxy::{Network, Proxy};
use super::register::{TABLE, file_writes};
use super::{LEASE, MEMBERS};
use crate::folder::Folder;
use crate::server::{PASSWORD, Server, kill};

pub(crate) enum Store {
    Files(Folder),
    Rows { server: Server, proxies: Vec<Proxy> },
}

impl Store {
    pub(crate) fn files() -> Self {
        Self::Files(Folder::new())
    }

    /// Starts a server, or returns `None` if PostgreSQL isn't installed and needn't be.
    pub(crate) async fn rows() -> Option<Self> {
        // A member that is paused in a transaction must not delay the next grant for longer than this.
        let server = Server::with(&["idle_in_transaction_session_timeout=300ms"])?;
        server.engine().migrate().await.unwrap();
        server.run_sql(TABLE).await;
        let mut proxies = Vec::new();
        for _ in 0..MEMBERS {
            proxies.push(Proxy::start(server.port).await);
        }
        Some(Self::Rows { server, proxies })
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Files(_) => "files",
            Self::Rows { .. } => "rows",
        }
    }

    /// Returns the way to the store of each member.
    pub(crate) fn addresses(&self) -> Vec<String> {
        match self {
            Self::Files(folder) => vec![folder.path().to_str().unwrap().to_owned(); MEMBERS],
            Self::Rows { proxies, .. } => {
                let url = |it: &Proxy| {
                    format!("postgres://postgres:{PASSWORD}@127.0.0.1:{}/postgres", it.port)
                };
                proxies.iter().map(url).collect()
            }
        }
    }

    /// Returns what the resource has accepted, in its order.
    pub(crate) async fn writes(&self) -> Vec<Write> {
        match self {
            Self::Files(folder) => file_writes(&folder.path().join("register")),
            Self::Rows { server, .. } => {
                let query = "SELECT member, token FROM register ORDER BY number";
                let rows = server.client().await.query(query, &[]).await.unwrap();
                let write = |member: i64, token: i64| Write {
                    member: member.try_into().unwrap(),
                    token: token.unsigned_abs(),
                };
                rows.iter().map(|row| write(row.get(0), row.get(1))).collect()
            }
        }
    }

    /// Replaces the file of the lease by a copy of it, as the restore of a backup does. The copy isn't locked.
    pub(crate) fn replace_file(&self) {
        let Self::Files(folder) = self else { return };
        let file = folder.path().join(format!("{LEASE}.lease"));
        let copy = folder.path().join("copy");
        fs::copy(&file, &copy).unwrap();
        fs::rename(&copy, &file).unwrap();
    }

    /// Changes the network between a member and the server.
    pub(crate) fn set_network(&self, place: usize, network: Network) {
        if let Self::Rows { proxies, .. } = self {
            proxies[place].set(network);
        }
    }

    /// Stops all processes of the server by SIGSTOP, until the result is dropped.
    pub(crate) fn freeze(&self) -> Option<Frozen> {
        let Self::Rows { server, .. } = self else { return None };
        let first = server.process_id();
        let mut frozen = Frozen(vec![first]);
        kill("-STOP", first);
        let children = PathBuf::from(format!("/proc/{first}/task/{first}/children"));
        for child in numbers(&children) {
            kill("-STOP", child);
            frozen.0.push(child);
        }
        Some(frozen)
    }
}

fn numbers(file: &Path) -> Vec<i32> {
    fs::read_to_string(file).unwrap().split_whitespace().map(|it| it.parse().unwrap()).collect()
}

/// Processes that are stopped by SIGSTOP. They go on when this is dropped: the server couldn't be ended otherwise.
pub(crate) struct Frozen(Vec<i32>);

impl Drop for Frozen {
    fn drop(&mut self) {
        self.0.iter().for_each(|process| kill("-CONT", *process));
    }
}
