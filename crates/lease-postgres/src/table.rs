//! The name of the table, and the statements that use it.
//!
//! # Invariants
//!
//! 1. Each request is one statement, and needs nothing from a statement before it. So each may be sent on a
//!    different connection of a pool.
//! 2. A row is never deleted, and `epoch` never goes down.
//! 3. All times are `clock_timestamp()` of the server. `now()` would be the begin of the transaction, which is
//!    earlier than the moment at which a row is locked.
//! 4. A request that isn't granted locks no row and writes nothing, so that standbys cost no writes.
//! 5. A request for a lease never waits for a transaction of the program: it skips a row that is locked.

use verger::lease::LeaseError;

/// The name of the table by default.
pub(super) const DEFAULT: &str = "verger_leases";
/// The schema of the table by default. The comment at its end holds its version.
pub(super) const SCHEMA: &str = include_str!("schema.sql");
/// The longest identifier that the server doesn't cut off, in bytes.
const LONGEST: usize = 63;

/// A validated name, and the statements.
///
/// Their parameters are the name of the lease, the holder, the token and the TTL in microseconds or the memo, in this order
/// and as far as a statement needs them.
#[derive(Debug)]
pub(super) struct Table {
    name: String,
    pub(super) quoted: String,
    pub(super) acquire: String,
    pub(super) renew: String,
    pub(super) release: String,
    pub(super) holder: String,
    pub(super) write_memo: String,
    pub(super) fence: String,
}

impl Table {
    /// Checks a name, which may have a schema in front.
    ///
    /// # Errors
    ///
    /// If it isn't one or two plain identifiers.
    pub(super) fn new(name: &str) -> Result<Self, LeaseError> {
        let parts: Vec<_> = name.split('.').collect();
        if parts.len() > 2 || !parts.iter().all(|it| is_plain(it)) {
            let problem = format!("`{}` isn't the name of a table", name.escape_debug());
            let hint = format!(
                "write `table` or `schema.table`, each of lower-case letters, digits and `_`, at most {LONGEST} \
                 bytes, and not beginning with a digit"
            );
            return Err(LeaseError::new(problem).with_hint(hint));
        }
        Ok(Self::plain(name.to_owned()))
    }

    fn plain(name: String) -> Self {
        let quoted = format!("\"{}\"", name.replace('.', "\".\""));
        let expiry = |ttl| format!("clock_timestamp() + {ttl} * interval '1 microsecond'");
        // With `synchronous_commit = off`, a crash of the server could take back a grant that was answered, and the
        // next one would have the same token. So the commit of this statement waits for the disk.
        let durable = "durable AS MATERIALIZED (SELECT CASE current_setting('synchronous_commit') \
             WHEN 'off' THEN set_config('synchronous_commit', 'on', true) = 'on' ELSE true END AS yes)";
        let granted = expiry("$3");
        // Without a target, because two first requests can meet in either of the two unique indexes.
        let acquire = format!(
            "WITH {durable}, \
             present AS (SELECT holder FROM {quoted} WHERE name = $1), \
             granted AS (UPDATE {quoted} SET epoch = epoch + 1, holder = $2, expires_at = {granted} \
               WHERE (SELECT yes FROM durable) AND name = (SELECT name FROM {quoted} WHERE name = $1 \
                 AND (holder = $2 OR expires_at <= clock_timestamp()) FOR UPDATE SKIP LOCKED) \
               RETURNING epoch), \
             created AS (INSERT INTO {quoted} (name, epoch, holder, expires_at) \
               SELECT $1, 1, $2, {granted} WHERE (SELECT yes FROM durable) AND NOT EXISTS (SELECT FROM present) \
               ON CONFLICT DO NOTHING RETURNING epoch) \
             SELECT epoch, NULL AS holder FROM granted \
             UNION ALL SELECT epoch, NULL FROM created \
             UNION ALL SELECT NULL, holder FROM present WHERE NOT EXISTS (SELECT FROM granted)"
        );
        let held = "name = $1 AND holder = $2 AND epoch = $3 AND expires_at > clock_timestamp()";
        let extended = expiry("$4");
        let renew = format!(
            "WITH {durable} UPDATE {quoted} SET expires_at = {extended} \
             WHERE (SELECT yes FROM durable) AND {held} RETURNING true"
        );
        // Every clock shows a later time than this.
        let release =
            format!("UPDATE {quoted} SET expires_at = '-infinity' WHERE {held} RETURNING true");
        // No difference to `-infinity`, which servers before version 17 refuse.
        let holder = format!(
            "SELECT holder, epoch, memo, CASE WHEN expires_at > clock_timestamp() \
             THEN greatest(0, extract(epoch FROM expires_at - clock_timestamp()) * 1000000)::bigint END \
             FROM {quoted} WHERE name = $1"
        );
        let write_memo = format!(
            "WITH {durable} UPDATE {quoted} SET memo = $4 \
             WHERE (SELECT yes FROM durable) AND {held} RETURNING true"
        );
        let fence =
            format!("SELECT true FROM {quoted} WHERE name = $1 AND epoch = $2 FOR KEY SHARE");
        Self { name, quoted, acquire, renew, release, holder, write_memo, fence }
    }

    /// Returns the name as it was given.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the statements that create the table.
    pub(super) fn schema(&self) -> String {
        if self.name == DEFAULT { SCHEMA.to_owned() } else { SCHEMA.replace(DEFAULT, &self.quoted) }
    }
}

impl Default for Table {
    fn default() -> Self {
        Self::plain(DEFAULT.to_owned())
    }
}

fn is_plain(identifier: &str) -> bool {
    let mut bytes = identifier.bytes();
    bytes.next().is_some_and(|it| it.is_ascii_lowercase() || it == b'_')
        && bytes.all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_')
        && identifier.len() <= LONGEST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_may_have_a_schema() {
        for (name, quoted) in [
            ("leases", "\"leases\""),
            ("ops.leases_2", "\"ops\".\"leases_2\""),
            ("_", "\"_\""),
            // Reserved words are quoted.
            ("order.select", "\"order\".\"select\""),
        ] {
            let table = Table::new(name).unwrap();
            assert_eq!((table.name(), &*table.quoted), (name, quoted));
            assert!(table.schema().contains(&format!("IF NOT EXISTS {quoted} (")));
            assert!(table.schema().contains(&format!("COMMENT ON TABLE {quoted} IS")));
        }
    }

    #[test]
    fn a_name_that_would_need_care_is_refused() {
        let long = "a".repeat(64);
        for name in [
            "",
            ".",
            "a.",
            ".a",
            "a.b.c",
            "1a",
            "a-b",
            "a b",
            "Leases",
            "lé",
            "a\"b",
            "a;drop table b",
            "a'b",
            "a\0",
            &long,
        ] {
            let error = Table::new(name).unwrap_err().to_string();
            assert!(error.contains("isn't the name of a table: write `table` or"), "{error}");
        }
        assert!(Table::new(&long[1..]).is_ok());
    }

    #[test]
    fn all_statements_use_the_clock_of_the_server() {
        let Table { acquire, renew, release, holder, write_memo, fence, .. } = Table::default();
        for statement in [acquire, renew, release, holder, write_memo] {
            let compared = statement.matches("expires_at <= clock_timestamp()").count()
                + statement.matches("expires_at > clock_timestamp()").count();
            assert_eq!(compared, 1, "{statement}");
        }
        assert!(
            !fence.contains("expires_at"),
            "the last token may write until there is a newer one"
        );
    }

    #[test]
    fn the_default_schema_is_as_it_is_documented() {
        assert_eq!(Table::default().schema(), SCHEMA);
        assert_eq!(Table::new(DEFAULT).unwrap().schema(), SCHEMA);
    }
}
