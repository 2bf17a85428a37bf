//! The resource that all members write to. It keeps the token of each write that it accepts, and refuses older ones.
//!
//! Beside the locked files of `lease::File`, it is a file. Beside the rows of `lease::Postgres`, it is a table in the
//! same database, whose writes are fenced in the two ways that are documented.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use tokio::sync::Mutex;
use tokio_postgres::{Client, Error, NoTls};
use verger::lease::{Fenced, FencingToken, fence};

use super::LEASE;
use super::history::Write;

/// The table of [`Register`].
pub(crate) const TABLE: &str =
    "CREATE TABLE register (number bigserial, member bigint, token bigint)";

/// How long a member waits for the answer to a write. It fits into the grace of the worker.
const PATIENCE: Duration = Duration::from_millis(150);

/// The answer to a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Accepted,
    /// A higher token is known.
    Refused,
    /// It may be accepted, also later.
    Unknown,
}

/// See the [module](self).
#[derive(Clone)]
pub(crate) struct Register {
    place: Place,
    member: u32,
    is_fenced: bool,
}

#[derive(Clone)]
enum Place {
    File(PathBuf),
    Table { url: String, client: Arc<Mutex<Option<Client>>> },
}

impl Register {
    pub(crate) fn new(store: &str, member: u32, is_fenced: bool) -> Self {
        let place = if store.starts_with("postgres://") {
            Place::Table { url: store.to_owned(), client: Arc::default() }
        } else {
            Place::File(Path::new(store).join("register"))
        };
        Self { place, member, is_fenced }
    }

    /// Writes with this token.
    pub(crate) async fn write(&self, token: u64) -> Answer {
        match &self.place {
            Place::File(path) => {
                let (this, path) = (self.clone(), path.clone());
                tokio::task::spawn_blocking(move || this.write_file(&path, token)).await.unwrap()
            }
            Place::Table { url, client } => {
                let mut client = client.lock().await;
                let writing = self.write_row(url, &mut client, token);
                tokio::time::timeout(PATIENCE, writing).await.unwrap_or(Answer::Unknown)
            }
        }
    }

    fn write_file(&self, path: &Path, token: u64) -> Answer {
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).create(true).open(path).unwrap();
        flock(&file, FlockOperation::LockExclusive).unwrap();
        if self.is_fenced && token < last_token(&file) {
            return Answer::Refused;
        }
        file.write_all(format!("{} {token}\n", self.member).as_bytes()).unwrap();
        Answer::Accepted
    }

    /// Twice if necessary: the server may have closed the connection while this member was paused.
    async fn write_row(&self, url: &str, client: &mut Option<Client>, token: u64) -> Answer {
        for _ in 0..2 {
            if client.as_ref().is_none_or(Client::is_closed) {
                *client = connect(url).await.ok();
            }
            let Some(open) = client else { continue };
            match self.insert(open, token).await {
                Ok(true) => return Answer::Accepted,
                Ok(false) => return Answer::Refused,
                Err(_) => *client = None,
            }
        }
        Answer::Unknown
    }

    async fn insert(&self, client: &mut Client, token: u64) -> Result<bool, Error> {
        let (member, epoch) = (i64::from(self.member), i64::try_from(token).unwrap());
        let plain = "INSERT INTO register (member, token) VALUES ($1, $2)";
        if !self.is_fenced {
            return client.execute(plain, &[&member, &epoch]).await.map(|_| true);
        }
        if fastrand::bool() {
            let fenced = "INSERT INTO register (member, token) SELECT $1, $2 FROM verger_leases \
                 WHERE name = $3 AND epoch = $2 FOR KEY SHARE";
            return client.execute(fenced, &[&member, &epoch, &LEASE]).await.map(|rows| rows == 1);
        }
        let transaction = client.transaction().await?;
        match fence(&transaction, LEASE, FencingToken::new(token)).await {
            Ok(()) => {}
            Err(Fenced::Unknown { error, .. }) => return Err(error),
            Err(_) => return Ok(false),
        }
        transaction.execute(plain, &[&member, &epoch]).await?;
        transaction.commit().await?;
        Ok(true)
    }
}

async fn connect(url: &str) -> Result<Client, Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Returns the token in the last line.
fn last_token(file: &fs::File) -> u64 {
    let length = file.metadata().unwrap().len();
    // Longer than a line.
    let mut end = vec![0; length.min(64) as usize];
    let offset = length - end.len() as u64;
    file.read_exact_at(&mut end, offset).unwrap();
    let end = String::from_utf8(end).unwrap();
    end.trim_end()
        .rsplit(' ')
        .next()
        .filter(|it| !it.is_empty())
        .map_or(0, |it| it.parse().unwrap())
}

/// Returns the accepted writes of a file, in their order.
pub(crate) fn file_writes(register: &Path) -> Vec<Write> {
    let text = fs::read_to_string(register).unwrap();
    let write = |line: &str| {
        let (member, token) = line.split_once(' ').unwrap();
        Write { member: member.parse().unwrap(), token: token.parse().unwrap() }
    };
    text.lines().map(write).collect()
}
