//! The external lines that were acknowledged, for the audit.
//!
//! They are kept on disk, in a database that is deleted with this value, because external senders
//! decide how many there are. The audit trusts it about what was accepted. It shares nothing with
//! the database of the service.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, Result, params};

use crate::storage::batch::Batch;

/// The texts may be large and can't be generated again, so there is a digest of each. There is none
/// for a line that was already stored when it was first acknowledged, because the stored text is
/// unknown.
const SCHEMA: &str = "
    PRAGMA synchronous = off;
    CREATE TABLE acknowledged (
        source TEXT NOT NULL,
        n      INTEGER NOT NULL,
        digest INTEGER,
        PRIMARY KEY (source, n)
    ) WITHOUT ROWID;
";

#[derive(Debug)]
pub(crate) struct Acknowledged(Mutex<Connection>);

impl Acknowledged {
    pub(crate) fn open() -> Result<Self> {
        // The empty name is a database on disk that no other connection can open.
        let connection = Connection::open("")?;
        connection.execute_batch(SCHEMA)?;
        Ok(Self(Mutex::new(connection)))
    }

    /// Adds the lines of a connection that are about to be acknowledged. `new` marks those that were
    /// not stored before. It blocks.
    pub(crate) fn add(&self, batch: &Batch, new: &[bool]) -> Result<()> {
        let Batch::Connection(lines) = batch else { return Ok(()) };
        let mut connection = self.lock();
        let transaction = connection.transaction()?;
        {
            let mut insert = transaction.prepare_cached(
                "INSERT INTO acknowledged VALUES (?1, ?2, ?3)
                 ON CONFLICT DO UPDATE SET digest = ifnull(excluded.digest, digest)",
            )?;
            for (line, &new) in lines.iter().zip(new) {
                insert.execute(params![line.source, line.n, new.then(|| digest(&line.text))])?;
            }
        }
        transaction.commit()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the digest of a text.
pub(crate) fn digest(text: &[u8]) -> i64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish().cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::batch::Line;

    #[test]
    fn the_digest_is_of_the_batch_that_stored_the_line() {
        let acknowledged = Acknowledged::open().unwrap();
        let line = |text: &str| Line { source: "mill".into(), n: 1, text: text.into() };

        let batch = Batch::Connection(vec![line("y"), line("x"), line("y")]);
        acknowledged.add(&batch, &[false, true, false]).unwrap();

        let query = "SELECT n, digest FROM acknowledged";
        let row = acknowledged.lock().query_row(query, [], |row| Ok((row.get(0)?, row.get(1)?)));
        assert_eq!(row, Ok((1, digest(b"x"))));
    }

    #[test]
    fn memory_does_not_grow_with_the_number_of_lines() {
        let acknowledged = Acknowledged::open().unwrap();
        let connection = acknowledged.lock();
        let file: i64 = connection.query_row("PRAGMA temp_store", [], |row| row.get(0)).unwrap();
        let cache: i64 = connection.query_row("PRAGMA cache_size", [], |row| row.get(0)).unwrap();

        assert!(file < 2, "it is kept on disk");
        assert!((-2_000..=2_000).contains(&cache), "a cache of {cache}");
    }
}
