//! The resource that all members write to: a table in the database of the leases. It keeps the token of each write that it
//! accepts. Writes are fenced in the two ways that are documented.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio_postgres::{Client, Error, NoTls};
use verger::lease::FencingToken;
use verger_lease_postgres::{Fenced, fence};

use crate::shared::checker::LEASE;
use crate::shared::checker::member::Answer;

/// The table of [`Register`].
pub(crate) const TABLE: &str =
    "CREATE TABLE register (number bigserial, member bigint, token bigint)";

/// How long a member waits for the answer to a write. It fits into the grace of the worker.
const PATIENCE: Duration = Duration::from_millis(150);

/// See the [module](self).
#[derive(Clone)]
pub(crate) struct Register {
    url: String,
    client: Arc<Mutex<Option<Client>>>,
    member: u32,
    is_fenced: bool,
}

impl Register {
    pub(crate) fn new(store: &str, member: u32, is_fenced: bool) -> Self {
        Self { url: store.to_owned(), client: Arc::default(), member, is_fenced }
    }

    /// Writes with this token.
    pub(crate) async fn write(&self, token: u64) -> Answer {
        let mut client = self.client.lock().await;
        let writing = self.write_row(&mut client, token);
        tokio::time::timeout(PATIENCE, writing).await.unwrap_or(Answer::Unknown)
    }

    /// Twice if necessary: the server may have closed the connection while this member was paused.
    async fn write_row(&self, client: &mut Option<Client>, token: u64) -> Answer {
        for _ in 0..2 {
            if client.as_ref().is_none_or(Client::is_closed) {
                *client = connect(&self.url).await.ok();
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
