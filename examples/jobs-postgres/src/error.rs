//! The errors of this program, with what to do about them. None of them contains a password.

use std::error::Error;
use std::io;
use std::time::Duration;

use tokio_postgres::error::SqlState;
use verger::ExitError;
use verger_lease_postgres::Fenced;

/// What the database has answered, or why it has answered nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DatabaseError {
    /// No restart mends this.
    #[error("{server} refuses the connection ({message}); correct user, password and database in {url}", url = crate::cli::URL)]
    Refused {
        /// Where it listens.
        server: String,
        /// The answer.
        message: String,
    },
    /// There is no server, or it starts or stops.
    #[error("PostgreSQL at {server} accepts no connections ({message})")]
    Unreachable {
        /// Where it should listen.
        server: String,
        /// Why not.
        message: String,
    },
    /// The network or the server doesn't work, and says nothing.
    #[error("PostgreSQL at {server} hasn't answered within {within:?}")]
    Silent {
        /// Where it listens.
        server: String,
        /// How long the request has waited.
        within: Duration,
    },
    /// Nothing of this program has ever run there.
    #[error(
        "the database at {server} has no tables of this program; start `jobs-postgres demo` or `run` first"
    )]
    NoTables {
        /// Where it listens.
        server: String,
    },
    /// A statement has failed, or the connection was lost.
    #[error("the connection to {server} or a statement has failed")]
    Failed {
        /// Where it listens.
        server: String,
        /// The error of the client.
        #[source]
        error: tokio_postgres::Error,
    },
    /// The process isn't the scheduler any more, or the check of it has failed.
    #[error(transparent)]
    Fenced(#[from] Fenced),
}

impl DatabaseError {
    /// Returns whether the token of the lease is too old.
    pub(crate) fn is_stale(&self) -> bool {
        matches!(self, Self::Fenced(Fenced::Stale { .. }))
    }

    /// Returns whether the database was lost, which is no error of this program.
    pub(crate) fn is_outage(&self) -> bool {
        let (Self::Failed { error, .. } | Self::Fenced(Fenced::Unknown { error, .. })) = self
        else {
            return matches!(self, Self::Unreachable { .. } | Self::Silent { .. });
        };
        match error.code() {
            // Class 57: the server shuts down, has crashed, or is starting. Class 08: the connection is broken.
            // 25P03: the transaction was idle for too long, because this process was paused.
            Some(code) => {
                let code = code.code();
                code.starts_with("57P") || code.starts_with("08") || code == "25P03"
            }
            // No answer of the server: its end of the connection is closed, or the network is broken.
            None => error.is_closed() || error.source().is_some_and(<dyn Error>::is::<io::Error>),
        }
    }

    /// Sorts an error of an attempt to connect.
    pub(crate) fn connect(server: &str, error: &tokio_postgres::Error) -> Self {
        let (server, message) = (server.to_owned(), chain(error));
        let is_permanent = [
            SqlState::INVALID_PASSWORD,
            SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
            SqlState::INVALID_CATALOG_NAME,
        ];
        if error.code().is_some_and(|code| is_permanent.contains(code)) {
            Self::Refused { server, message }
        } else {
            Self::Unreachable { server, message }
        }
    }

    /// Converts this into the error of a child that starts. If the database is there and no restart mends the error,
    /// the whole tree ends with it.
    pub(crate) fn into_exit_error(self) -> ExitError {
        if self.is_outage() { self.into() } else { ExitError::fatal(self) }
    }
}

/// Returns the texts of an error and of those beneath it.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut beneath = error.source();
    while let Some(error) = beneath {
        let cause = error.to_string();
        // Some errors include those beneath them.
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
        beneath = error.source();
    }
    text
}

/// Why a command has not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The arguments are wrong.
    #[error("{0}")]
    Usage(String),
    /// Something that the command needs is missing or fails.
    #[error("{0}")]
    Environment(String),
}

impl From<DatabaseError> for Failure {
    fn from(error: DatabaseError) -> Self {
        Self::Environment(chain(&error))
    }
}
