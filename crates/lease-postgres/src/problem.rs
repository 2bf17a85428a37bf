//! Errors of the server and of connections, with what to do about them. None of them contains a password.

use std::error::Error;
use std::io;
use std::time::Duration;

use tokio_postgres::error::{DbError, SqlState};
use verger::lease::{LeaseError, MemoTooLong};

use super::table::Table;
use super::target::{ConnectError, Server};
use crate::causes::chain;

/// The beginning of the only parse errors that quote nothing of the connection string but the name of an option.
const INVALID_VALUE: &str = "invalid value for option `";

/// A connection string that can't be parsed. The error beneath is left out, because it may quote the password.
pub(super) fn config(error: &tokio_postgres::Error) -> LeaseError {
    let detail = error.source().map(ToString::to_string).filter(|it| it.starts_with(INVALID_VALUE));
    let detail = detail.map(|it| format!(" ({it})")).unwrap_or_default();
    LeaseError::new(format!("the connection string can't be parsed{detail}")).with_hint(
        "write `host=… user=… password=… dbname=…` or `postgres://USER:PASSWORD@HOST/DBNAME`, with special \
         characters in quotes or as `%` and two digits",
    )
}

/// An error of a connector.
pub(super) fn connect(error: ConnectError, server: &Server) -> LeaseError {
    match error.downcast::<tokio_postgres::Error>() {
        Ok(error) => postgres(*error, None, server),
        Err(error) => {
            let problem = format!("the connector returned no connection ({})", chain(&*error));
            LeaseError::new(problem).with_source(error)
        }
    }
}

pub(super) fn connect_timeout(server: &Server, within: Duration) -> LeaseError {
    LeaseError::new(format!("{server} accepts no connection within {within:?}"))
        .with_hint("check the network and the server, or raise `Postgres::connect_timeout`")
}

/// An error of a request.
pub(super) fn query(error: tokio_postgres::Error, table: &Table, server: &Server) -> LeaseError {
    postgres(error, Some(table), server)
}

/// An answer of the wrong form, as from a server that isn't PostgreSQL.
pub(super) fn answer(server: &Server) -> LeaseError {
    LeaseError::new(format!("{server} gives an answer of the wrong form"))
        .with_hint("connect to PostgreSQL")
}

/// A memo that no engine has written.
pub(super) fn memo(table: &Table, error: MemoTooLong) -> LeaseError {
    LeaseError::new(format!("a memo in the table `{}` has {} bytes", table.name(), error.length))
        .with_hint("let nothing else write to this table")
        .with_source(error)
}

pub(super) fn missing_table(
    table: &Table,
    server: &Server,
    source: Option<tokio_postgres::Error>,
) -> LeaseError {
    let database = server.database.as_deref().map(|it| format!(" of the database `{it}`"));
    let (name, database) = (table.name(), database.unwrap_or_default());
    let problem = format!("{server}{database} has no table `{name}`");
    let error = LeaseError::new(problem)
        .with_hint("call `Postgres::migrate` once, or apply `Postgres::schema`");
    match source {
        Some(source) => error.with_source(source),
        None => error,
    }
}

/// Returns whether the server refuses all writes, so that only a different server helps.
pub(super) fn is_read_only(error: &tokio_postgres::Error) -> bool {
    error.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION)
}

/// Returns whether the statement was rolled back because of one that ran at the same time.
pub(super) fn is_conflict(error: &tokio_postgres::Error) -> bool {
    let conflicts = [&SqlState::T_R_SERIALIZATION_FAILURE, &SqlState::T_R_DEADLOCK_DETECTED];
    error.code().is_some_and(|it| conflicts.contains(&it))
}

pub(super) fn conflict(name: &str) -> LeaseError {
    let problem = format!("a statement about the lease `{name}` ran at the same time");
    LeaseError::new(problem).with_hint("repeat the request")
}

fn postgres(error: tokio_postgres::Error, table: Option<&Table>, server: &Server) -> LeaseError {
    if let Some(db) = error.as_db_error() {
        return match (db.code(), table) {
            (&SqlState::UNDEFINED_TABLE, Some(table)) => missing_table(table, server, Some(error)),
            _ => refused(db, table, server).with_source(error),
        };
    }
    if error.is_closed() {
        let problem = format!("{server} has closed the connection");
        return LeaseError::new(problem).with_source(error);
    }
    let cause = chain(&error);
    let beneath = error.source().and_then(|it| it.downcast_ref::<io::Error>());
    let answer = match beneath.map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound) => {
            LeaseError::new(format!("{server} accepts no connections ({cause})"))
                .with_hint("start PostgreSQL there, or correct host and port")
        }
        _ if error.to_string().contains("TLS") => {
            LeaseError::new(format!("{server} can't be reached with TLS ({cause})"))
                .with_hint("open the connection with TLS yourself: `Postgres::with_connector`")
        }
        _ => LeaseError::new(format!("the request to {server} has failed ({cause})")),
    };
    answer.with_source(error)
}

/// An error that the server has answered. Its details are left out, because they may quote values.
fn refused(db: &DbError, table: Option<&Table>, server: &Server) -> LeaseError {
    let message = db.message();
    let user = server.user.as_deref().map(|it| format!("the user `{it}`"));
    let user = user.as_deref().unwrap_or("the user");
    let name = table.map(Table::name).unwrap_or_default();
    let (problem, hint) = match *db.code() {
        SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION => (
            format!("{server} refuses {user} ({message})"),
            "correct user and password; `pg_hba.conf` of the server has to allow the connection, and if it asks \
             for TLS, use `Postgres::with_connector`",
        ),
        SqlState::INVALID_CATALOG_NAME => (
            format!("{server} doesn't have the database ({message})"),
            "create it, or correct the name of the database",
        ),
        SqlState::INVALID_SCHEMA_NAME => (
            format!("{server} doesn't have the schema of the table `{name}` ({message})"),
            "create it, or select a different one with `Postgres::table`",
        ),
        SqlState::UNDEFINED_COLUMN | SqlState::DATATYPE_MISMATCH | SqlState::UNDEFINED_FUNCTION => {
            (
                format!("the table `{name}` has different columns ({message})"),
                "compare it with `Postgres::schema`, or select a different one with `Postgres::table`",
            )
        }
        SqlState::READ_ONLY_SQL_TRANSACTION => (
            format!("{server} is read-only ({message})"),
            "connect to the primary: add `target_session_attrs=read-write` to the connection string; and check \
             `default_transaction_read_only`",
        ),
        SqlState::INSUFFICIENT_PRIVILEGE => (
            format!("{server} doesn't allow this to {user} ({message})"),
            "grant SELECT, INSERT and UPDATE on the table; `Postgres::migrate` also needs CREATE on its schema",
        ),
        SqlState::TOO_MANY_CONNECTIONS => (
            format!("{server} has too many connections ({message})"),
            "raise `max_connections`, or find out which program needs so many",
        ),
        _ => {
            let code = db.code().code();
            let problem = format!("{server} answers with an error ({message}, SQLSTATE {code})");
            return LeaseError::new(problem);
        }
    };
    LeaseError::new(problem).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use tokio_postgres::Config;

    use super::*;

    fn parsed(config: &str) -> String {
        let error = super::config(&config.parse::<Config>().unwrap_err());
        assert!(error.source().is_none());
        format!("{error} {error:?}")
    }

    #[test]
    fn a_connection_string_is_never_quoted() {
        for config in [
            "host=db password=two hunter2=words",
            "host=db password='hunter2",
            "host=db password=x hunter2",
            "postgres://app:hunter2@db:hunter2/app",
            "postgres://app@db/app?hunter2=hunter2",
            "hunter2",
        ] {
            let text = parsed(config);
            assert!(text.starts_with("the connection string can't be parsed"), "{text}");
            assert!(!text.contains("hunter2"), "{text}");
        }
        let text = parsed("host=db port=x");
        assert!(text.starts_with(
            "the connection string can't be parsed (invalid value for option `port`): "
        ));
    }
}
