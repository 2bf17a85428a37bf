//! A lease engine of [verger](https://docs.rs/verger) for PostgreSQL: a row for each lease.
//!
//! [`Postgres`] is a [`LeaseEngine`], so a child with a [`Lease`](verger::lease::Lease) in it runs in one of many processes at a
//! time. [`fence()`] refuses the writes of a holder that has lost its lease.
//!
//! ```no_run
//! use verger::lease::Lease;
//! use verger::{Context, Supervisor, worker};
//! use verger_lease_postgres::Postgres;
//!
//! # async fn start() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = Postgres::new("postgres://app:password@db.internal/app")?;
//! engine.migrate().await?;
//!
//! let scheduler = worker("scheduler", async |ctx: Context| ctx.cancelled().await);
//! let scheduler = scheduler.lease(Lease::new("scheduler", engine));
//! Supervisor::builder("app").child(scheduler).build()?.run().await?;
//! # Ok(())
//! # }
//! ```
//!
//! | file | what |
//! | --- | --- |
//! | `table` | the name of the table and the statements |
//! | `schema` | the version of the table, and its migration |
//! | `target` | where an engine connects to |
//! | `connection` | the connection that all requests share |
//! | `fence` | transactions that an older token can't commit |
//! | `problem` | errors, with what to do about them |
//! | `causes` | the causes of an error, in one text |

mod causes;
mod connection;
mod fence;
mod problem;
mod schema;
mod table;
mod target;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, GenericClient, Row};
use verger::lease::{
    Acquired, Claim, FencingToken, LeaseEngine, LeaseError, LeaseRecord, Memo, MemoWrite, Released,
    Renewed,
};

use self::connection::{Connection, Connections, Connector};
pub use self::fence::{Fenced, fence};
use self::table::Table;
use self::target::ConnectError;

/// The default of [`Postgres::connect_timeout`].
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest TTL, in microseconds: a hundred years. The server couldn't add much more to its clock.
const LONGEST_TTL: i64 = 100 * 366 * 24 * 3600 * 1_000_000;

/// A parameter of a statement, with its type.
type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// Leases in a table of PostgreSQL 12 or later: a row for each lease.
///
/// A row holds the current token, its holder, the time at which the lease expires, and its [`Memo`]. That time is by the clock of
/// the server, so the clocks of the processes play no part. An advisory lock isn't used.
///
/// Each request is one statement without any state of the session, so a pooler may be between this engine and the
/// server, such as PgBouncer in transaction mode. The engine and its clones share one connection. It is opened at the
/// first request, and again after it was lost. Give each child a clone of one engine.
///
/// # The table
///
/// Put the statements of [`schema`](Self::schema) into your migrations, or call [`migrate`](Self::migrate) at the start
/// of the program. The user of the engine needs the rights SELECT, INSERT and UPDATE. The table has a version, which
/// is checked on each new connection.
///
/// ```sql
#[doc = include_str!("schema.sql")]
/// ```
///
/// # What it relies on
///
/// * Rows aren't deleted, because the tokens of a lease would begin with 1 again.
/// * The server's clock runs steadily. If it is set forward by the TTL or more, leases expire while their children
///   still run. This can also happen after a failover to a machine with a different time. Fence the writes: [`fence()`].
/// * A failover loses no commits. With asynchronous replication, the new primary may not know the last grants, and
///   grants their tokens again. Set `synchronous_standby_names`. A crash of one server loses none:
///   the engine waits for the disk, also where `synchronous_commit` is off.
///
/// # TLS and pools
///
/// The engine itself connects without TLS. For TLS, or to use the pool of a program, see
/// [`with_connector`](Self::with_connector).
///
/// # Cancel safety
///
/// A request that is dropped may still have its effect. The connection can be used further.
///
/// # Panics
///
/// Each request panics outside of a tokio runtime with IO and time enabled.
///
/// # Example
///
/// ```no_run
/// use verger::lease::Lease;
/// use verger_lease_postgres::Postgres;
///
/// # async fn start() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Postgres::new("postgres://app:password@db.internal/app")?;
/// engine.migrate().await?;
///
/// let billing = Lease::new("billing", engine.clone());
/// let reports = Lease::new("reports", engine);
/// # let _ = (billing, reports);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Postgres {
    table: Arc<Table>,
    connections: Arc<Connections>,
    connect_timeout: Duration,
}

impl Postgres {
    /// The statements that create the table `verger_leases`. See [`schema`](Self::schema).
    pub const SCHEMA: &str = table::SCHEMA;

    /// Creates an engine with a connection string, without TLS. It doesn't connect yet.
    ///
    /// The string has the form of libpq's: `postgres://USER:PASSWORD@HOST:PORT/DBNAME`, or
    /// `host=… port=… user=… password=… dbname=…`. Several hosts, `target_session_attrs` and the other options are
    /// those of [`Config`]. The default of `tcp_user_timeout` is 10 s here, so that a broken network is noticed;
    /// of `application_name`, it is `verger`.
    ///
    /// # Errors
    ///
    /// If the string can't be parsed. The error doesn't quote it, because it may contain a password.
    pub fn new(config: &str) -> Result<Self, LeaseError> {
        match config.parse() {
            Ok(config) => Ok(Self::with_config(config)),
            Err(error) => Err(problem::config(&error)),
        }
    }

    /// Creates an engine with a configuration of `tokio-postgres` 0.7, without TLS. It doesn't connect yet.
    ///
    /// The defaults of `tcp_user_timeout` and `application_name` are as in [`new`](Self::new).
    #[must_use]
    pub fn with_config(config: Config) -> Self {
        Self::with(Connector::of_config(config))
    }

    /// Creates an engine whose connections this function opens. It isn't called yet.
    ///
    /// Use this for TLS, or for passwords that expire. The function is called at the first request, and again after
    /// the connection was lost. It has to spawn the task of the connection. Set `tcp_user_timeout`, so that a broken
    /// network is noticed.
    ///
    /// # Example
    ///
    /// With a connector for TLS in the place of [`NoTls`](tokio_postgres::NoTls), such as the one of
    /// `tokio-postgres-rustls` or `postgres-native-tls`:
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// # use tokio_postgres::NoTls as MakeTls;
    /// use tokio_postgres::Config;
    /// use verger_lease_postgres::Postgres;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut config: Config = "postgres://app@db.internal/app?sslmode=require".parse()?;
    /// config.tcp_user_timeout(Duration::from_secs(10));
    ///
    /// let engine = Postgres::with_connector(move || {
    ///     let config = config.clone();
    ///     async move {
    ///         let (client, connection) = config.connect(MakeTls).await?;
    ///         tokio::spawn(connection);
    ///         Ok(client)
    ///     }
    /// });
    /// # let _ = engine;
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_connector<F>(connect: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Client, ConnectError>> + Send + 'static,
    {
        Self::with(Connector::Function(Arc::new(move || Box::pin(connect()))))
    }

    fn with(connector: Connector) -> Self {
        let connections = Arc::new(Connections::new(connector));
        Self { table: Arc::default(), connections, connect_timeout: CONNECT_TIMEOUT }
    }

    /// Selects a table, which may have a schema in front: `ops.leases`. Default: `verger_leases`.
    ///
    /// An engine with a different table has a connection of its own, also if it is a clone.
    ///
    /// # Errors
    ///
    /// If the name has other characters than lower-case letters, digits and `_`, or is too long.
    pub fn table(mut self, name: &str) -> Result<Self, LeaseError> {
        self.table = Arc::new(Table::new(name)?);
        self.connections = Arc::new(Connections::new(self.connections.connector()));
        Ok(self)
    }

    /// Sets how long it may take to open a connection, until the server accepts statements. Default: 5 s.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Returns the statements that create the table. They can be applied again.
    ///
    /// The comment of the table holds the version of the schema, which the engine checks.
    #[must_use]
    pub fn schema(&self) -> String {
        self.table.schema()
    }

    /// Creates the table, or brings it to the version that this program needs. Several programs may call it at once.
    ///
    /// If the version is right already, no right to create tables is needed.
    ///
    /// # Errors
    ///
    /// If the server can't be reached or refuses, or if the table has a newer version or isn't one of this engine.
    ///
    /// # Cancel safety
    ///
    /// The statements are one transaction. If this is dropped, it has happened as a whole or not at all.
    pub async fn migrate(&self) -> Result<(), LeaseError> {
        let connection = self.connections.get(self.connect_timeout).await?;
        schema::migrate(&connection.client, &self.table, &self.connections.server).await
    }

    /// As [`fence()`], with the table of this engine.
    ///
    /// # Errors
    ///
    /// If the lease was granted again, or if the query fails.
    ///
    /// # Cancel safety
    ///
    /// If this is dropped, roll the transaction back.
    pub async fn fence<C: GenericClient + Sync>(
        &self,
        transaction: &C,
        name: &str,
        token: FencingToken,
    ) -> Result<(), Fenced> {
        fence::check(&self.table, transaction, name, token).await
    }

    /// Sends one statement. Returns `None` if it was rolled back because of another one.
    async fn request(
        &self,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Option<Vec<Row>>, LeaseError> {
        let connection = self.connections.get(self.connect_timeout).await?;
        self.check(&connection).await?;
        let unanswered = self.connections.sent();
        let answer = connection.client.query_typed(statement, parameters).await;
        unanswered.answered();
        match answer {
            Ok(rows) => Ok(Some(rows)),
            Err(error) if problem::is_conflict(&error) => Ok(None),
            Err(error) => {
                // It has become a replica, and there may be a primary under the same name.
                if problem::is_read_only(&error) {
                    self.connections.replace(&connection).await;
                }
                Err(problem::query(error, &self.table, &self.connections.server))
            }
        }
    }

    /// Sends a statement about a lease that the claim holds. Returns whether it does.
    async fn held(
        &self,
        statement: &str,
        claim: &Claim,
        token: FencingToken,
        last: Option<Parameter<'_>>,
    ) -> Result<bool, LeaseError> {
        let (name, holder) = (&**claim.name(), &**claim.holder());
        // A larger number was never granted.
        let Ok(epoch) = i64::try_from(token.get()) else { return Ok(false) };
        let mut parameters: Vec<Parameter<'_>> =
            vec![(&name, Type::TEXT), (&holder, Type::TEXT), (&epoch, Type::INT8)];
        parameters.extend(last);
        let Some(rows) = self.request(statement, &parameters).await? else {
            return Err(problem::conflict(claim.name()));
        };
        Ok(!rows.is_empty())
    }

    /// Reads a row of the statement that looks who has a lease.
    fn record(&self, row: &Row) -> Result<LeaseRecord, LeaseError> {
        let of_wrong_form = |_| problem::answer(&self.connections.server);
        let remaining: Option<i64> = row.try_get(3).map_err(of_wrong_form)?;
        let record = match remaining {
            Some(microseconds) => {
                let holder: &str = row.try_get(0).map_err(of_wrong_form)?;
                let epoch: i64 = row.try_get(1).map_err(of_wrong_form)?;
                LeaseRecord::held()
                    .with_holder(holder)
                    .with_token(FencingToken::new(epoch.unsigned_abs()))
                    .with_remaining(Duration::from_micros(microseconds.unsigned_abs()))
            }
            None => LeaseRecord::free(),
        };
        let memo: &[u8] = row.try_get(2).map_err(of_wrong_form)?;
        let memo = Memo::new(memo).map_err(|error| problem::memo(&self.table, error))?;
        Ok(record.with_memo(memo))
    }

    /// Checks the schema, once on each connection.
    async fn check(&self, connection: &Connection) -> Result<(), LeaseError> {
        if connection.is_checked() {
            return Ok(());
        }
        let unanswered = self.connections.sent();
        let checked =
            schema::check(&connection.client, &self.table, &self.connections.server).await;
        unanswered.answered();
        checked?;
        connection.set_checked();
        Ok(())
    }
}

impl fmt::Debug for Postgres {
    /// Without a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = &self.connections.server;
        f.debug_struct("Postgres")
            .field("server", &server.address)
            .field("database", &server.database)
            .field("table", &self.table.name())
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl LeaseEngine for Postgres {
    async fn acquire(&self, claim: &Claim) -> Result<Acquired, LeaseError> {
        let (name, holder, ttl) = (&**claim.name(), &**claim.holder(), microseconds(claim.ttl()));
        let parameters: [Parameter<'_>; 3] =
            [(&name, Type::TEXT), (&holder, Type::TEXT), (&ttl, Type::INT8)];
        let rows = self.request(&self.table.acquire, &parameters).await?;
        // No row, or a conflict: the lease was granted to another holder while this statement ran.
        let Some(row) = rows.as_ref().and_then(|it| it.first()) else {
            return Ok(Acquired::Held { by: None });
        };
        let of_wrong_form = |_| problem::answer(&self.connections.server);
        match row.try_get::<_, Option<i64>>(0).map_err(of_wrong_form)? {
            Some(epoch) => Ok(Acquired::Granted(FencingToken::new(epoch.unsigned_abs()))),
            None => {
                let by = row.try_get::<_, Option<&str>>(1).map_err(of_wrong_form)?;
                Ok(Acquired::Held { by: by.map(Arc::from) })
            }
        }
    }

    async fn renew(&self, claim: &Claim, token: FencingToken) -> Result<Renewed, LeaseError> {
        let ttl = microseconds(claim.ttl());
        let held = self.held(&self.table.renew, claim, token, Some((&ttl, Type::INT8))).await?;
        Ok(if held { Renewed::Extended } else { Renewed::Lost })
    }

    async fn release(&self, claim: &Claim, token: FencingToken) -> Result<Released, LeaseError> {
        let held = self.held(&self.table.release, claim, token, None).await?;
        Ok(if held { Released::Released } else { Released::NotHeld })
    }

    async fn holder(&self, name: &str) -> Result<LeaseRecord, LeaseError> {
        let Some(rows) = self.request(&self.table.holder, &[(&name, Type::TEXT)]).await? else {
            return Err(problem::conflict(name));
        };
        let Some(row) = rows.first() else { return Ok(LeaseRecord::free()) };
        self.record(row)
    }

    fn stores_memos(&self) -> bool {
        true
    }

    async fn write_memo(
        &self,
        claim: &Claim,
        token: FencingToken,
        memo: &Memo,
    ) -> Result<MemoWrite, LeaseError> {
        let memo = (&memo.as_bytes() as &(dyn ToSql + Sync), Type::BYTEA);
        let held = self.held(&self.table.write_memo, claim, token, Some(memo)).await?;
        Ok(if held { MemoWrite::Stored } else { MemoWrite::NotHeld })
    }
}

/// So that the listing in it compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Returns a TTL in the unit of the statements, rounded up.
fn microseconds(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_nanos().div_ceil(1000)).unwrap_or(i64::MAX).min(LONGEST_TTL)
}
