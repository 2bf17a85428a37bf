//! Connections: each child of a tree opens its own, and is restarted when it loses it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;
use tokio_postgres::config::Host;
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Client, Config, NoTls};
use verger::{Context, ExitError};

use crate::cli::URL;
use crate::error::{DatabaseError, Failure};

/// How long an answer may take before the connection counts as lost.
pub(crate) const ANSWER: Duration = Duration::from_secs(5);

/// The server ends a transaction in which nothing has happened for 3 s. Without this, a process that is paused would
/// keep its jobs, and a scheduler that is paused in a fenced transaction would keep its lease.
const SESSION: &str = "-c idle_in_transaction_session_timeout=3s";

/// The channel on which schedulers announce jobs.
pub(crate) const CHANNEL: &str = "jobs_example";

/// Where the database is.
#[derive(Clone, Debug)]
pub(crate) struct Database {
    config: Arc<Config>,
    /// Host and port, for messages.
    server: Arc<str>,
}

impl Database {
    /// Parses a connection string.
    ///
    /// # Errors
    ///
    /// If it can't be parsed. The message doesn't quote it, because it may contain a password.
    pub(crate) fn parse(url: &str) -> Result<Self, Failure> {
        let form = "write postgres://USER:PASSWORD@HOST:PORT/DATABASE";
        let config = url.parse::<Config>();
        let mut config = config.map_err(|_| Failure::Usage(format!("{URL}: {form}")))?;
        let [Host::Tcp(host)] = config.get_hosts() else {
            return Err(Failure::Usage(format!("{URL}: this has not one host; {form}")));
        };
        let server = format!("{host}:{}", config.get_ports().first().unwrap_or(&5432));
        config.options(SESSION).application_name("jobs-postgres");
        Ok(Self { config: Arc::new(config), server: server.into() })
    }

    /// Reads the connection string that `serve-database` has written.
    ///
    /// # Errors
    ///
    /// If there is no such file, or none that can be parsed.
    pub(crate) fn read(file: &Path) -> Result<Self, Failure> {
        match std::fs::read_to_string(file) {
            Ok(url) => Self::parse(url.trim()),
            Err(error) => Err(Failure::Environment(format!(
                "no database is known: start one with `jobs-postgres serve-database` in a different terminal, or set \
                 {URL} ({}: {error})",
                file.display()
            ))),
        }
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Returns host and port.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// Opens a connection for a child. It is closed with the incarnation of the child, and the child fails with it.
    ///
    /// # Errors
    ///
    /// If there is no server yet: the supervisor tries again. If the server refuses user or password, the error ends
    /// the whole tree.
    pub(crate) async fn connect(&self, ctx: &Context) -> Result<Client, ExitError> {
        self.connect_and_wake(ctx, None).await
    }

    /// As [`connect`](Self::connect). Each notification is passed on.
    pub(crate) async fn connect_and_wake(
        &self,
        ctx: &Context,
        notified: Option<watch::Sender<()>>,
    ) -> Result<Client, ExitError> {
        let (client, mut connection) = self.open().await.map_err(DatabaseError::into_exit_error)?;
        let database = self.clone();
        // A helper ends with its child. If it fails, the child fails.
        ctx.spawn(async move {
            while let Some(message) = std::future::poll_fn(|cx| connection.poll_message(cx)).await {
                match message {
                    Ok(AsyncMessage::Notification(_)) => {
                        if let Some(notified) = &notified {
                            notified.send_replace(());
                        }
                    }
                    Ok(_) => {}
                    Err(error) => return Err(database.failed(error)),
                }
            }
            Ok(())
        });
        Ok(client)
    }

    /// Opens a connection that isn't driven yet.
    pub(crate) async fn open(
        &self,
    ) -> Result<
        (
            Client,
            tokio_postgres::Connection<tokio_postgres::Socket, tokio_postgres::tls::NoTlsStream>,
        ),
        DatabaseError,
    > {
        match timeout(ANSWER, self.config.connect(NoTls)).await {
            Ok(Ok(opened)) => Ok(opened),
            Ok(Err(error)) => Err(DatabaseError::connect(&self.server, &error)),
            Err(_elapsed) => Err(self.silent()),
        }
    }

    /// Waits for an answer of the database.
    ///
    /// # Errors
    ///
    /// If it fails, or if there is none in time.
    pub(crate) async fn answer<T>(
        &self,
        request: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, DatabaseError> {
        match timeout(ANSWER, request).await {
            Ok(answer) => answer.map_err(|error| self.failed(error)),
            Err(_elapsed) => Err(self.silent()),
        }
    }

    pub(crate) fn failed(&self, error: tokio_postgres::Error) -> DatabaseError {
        let server = self.server.to_string();
        match error.code() {
            Some(&SqlState::UNDEFINED_TABLE) => DatabaseError::NoTables { server },
            _ => DatabaseError::Failed { server, error },
        }
    }

    pub(crate) fn silent(&self) -> DatabaseError {
        DatabaseError::Silent { server: self.server.to_string(), within: ANSWER }
    }
}
