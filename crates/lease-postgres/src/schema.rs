//! The version of the table: read from its comment, and compared with the one of this program.

use tokio_postgres::Client;
use tokio_postgres::types::Type;
use verger::lease::LeaseError;

use super::problem;
use super::table::Table;
use super::target::Server;

/// The version of `schema.sql`.
const VERSION: u32 = 2;
/// The begin of the comment of the table. The version follows.
const COMMENT: &str = "verger leases, schema version ";
/// The key of the lock of a migration. Any number that no other program uses.
const MIGRATION: i64 = 0x7665_7267_6572_0001;

/// What the comment of a table says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    /// There is no such table.
    Missing,
    /// There is one, which doesn't say that it is of this engine.
    Unknown,
    Numbered(u32),
}

/// Checks that the table has the version of this program.
///
/// # Errors
///
/// If it doesn't, or if the server doesn't answer this.
pub(super) async fn check(
    client: &Client,
    table: &Table,
    server: &Server,
) -> Result<(), LeaseError> {
    match version(client, table, server).await? {
        Version::Numbered(VERSION) => Ok(()),
        Version::Missing => Err(problem::missing_table(table, server, None)),
        found => Err(mismatch(found, table)),
    }
}

/// Creates the table, or brings it to the version of this program.
///
/// # Errors
///
/// If that can't be done.
pub(super) async fn migrate(
    client: &Client,
    table: &Table,
    server: &Server,
) -> Result<(), LeaseError> {
    match version(client, table, server).await? {
        // Without a statement that needs the right to create tables.
        Version::Numbered(VERSION) => return Ok(()),
        Version::Numbered(older) if older < VERSION => {}
        Version::Missing => {}
        found => return Err(mismatch(found, table)),
    }
    // Several statements in one message are one transaction. Without the lock, two programs that create the same
    // table at the same time could fail: `IF NOT EXISTS` looks before the other one has committed.
    let statements = format!("SELECT pg_advisory_xact_lock({MIGRATION}); {}", table.schema());
    let migrated = client.batch_execute(&statements).await;
    migrated.map_err(|error| problem::query(error, table, server))
}

async fn version(client: &Client, table: &Table, server: &Server) -> Result<Version, LeaseError> {
    // Needs no rights on the table.
    let statement =
        "SELECT to_regclass($1) IS NOT NULL, obj_description(to_regclass($1), 'pg_class')";
    let rows = client.query_typed(statement, &[(&table.quoted, Type::TEXT)]).await;
    let rows = rows.map_err(|error| problem::query(error, table, server))?;
    let Some(row) = rows.first() else { return Err(problem::answer(server)) };
    let exists = row.try_get(0).map_err(|error| problem::query(error, table, server))?;
    let comment = row.try_get(1).map_err(|error| problem::query(error, table, server))?;
    Ok(read(exists, comment))
}

fn read(exists: bool, comment: Option<&str>) -> Version {
    let number = comment.and_then(|it| it.strip_prefix(COMMENT)?.parse().ok());
    match number {
        _ if !exists => Version::Missing,
        Some(number) => Version::Numbered(number),
        None => Version::Unknown,
    }
}

fn mismatch(found: Version, table: &Table) -> LeaseError {
    let name = table.name();
    match found {
        Version::Numbered(newer) if newer > VERSION => LeaseError::new(format!(
            "the table `{name}` has schema version {newer}, and this program knows {VERSION}"
        ))
        .with_hint("use the version of verger that has created it, or a later one"),
        Version::Numbered(older) => LeaseError::new(format!(
            "the table `{name}` has schema version {older}, and this program needs {VERSION}"
        ))
        .with_hint("call `Postgres::migrate` once, or apply `Postgres::schema`"),
        Version::Missing | Version::Unknown => LeaseError::new(format!(
            "the table `{name}` has no comment `{COMMENT}{VERSION}`, so it may be a different one"
        ))
        .with_hint(
            "set the comment as `Postgres::schema` does, or select a table with `Postgres::table`",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::SCHEMA;
    use super::*;

    #[test]
    fn the_schema_has_the_comment_that_is_checked() {
        assert!(SCHEMA.contains(&format!("IS '{COMMENT}{VERSION}';")));
    }

    #[test]
    fn a_comment_holds_the_version() {
        assert_eq!(read(false, None), Version::Missing);
        assert_eq!(read(true, None), Version::Unknown);
        assert_eq!(read(true, Some("leases of the old service")), Version::Unknown);
        assert_eq!(read(true, Some("verger leases, schema version x")), Version::Unknown);
        assert_eq!(read(true, Some("verger leases, schema version 1")), Version::Numbered(1));
        assert_eq!(read(true, Some("verger leases, schema version 12")), Version::Numbered(12));
    }

    #[test]
    fn a_mismatch_says_what_to_do() {
        let text = |version| mismatch(version, &Table::default()).to_string();
        assert_eq!(
            text(Version::Numbered(1)),
            "the table `verger_leases` has schema version 1, and this program needs 2: call `Postgres::migrate` \
             once, or apply `Postgres::schema`"
        );
        assert_eq!(
            text(Version::Numbered(3)),
            "the table `verger_leases` has schema version 3, and this program knows 2: use the version of verger \
             that has created it, or a later one"
        );
        assert!(text(Version::Unknown).contains("select a table with `Postgres::table`"));
    }
}
