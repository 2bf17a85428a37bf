//! SQLite: the schema, the transaction that stores rows and position, and where to resume.
//!
//! All functions block; callers run them on blocking threads.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension, Result, Row, Transaction, params};
use rusqlite::{TransactionBehavior, named_params};

use super::batch::{Batch, Line, Position, Receipt};

/// The source of the lines that come from the file.
pub(crate) const FILE: &str = "file";

/// How long a commit waits for the lock of a different connection, such as that of an incarnation
/// that was aborted during a commit.
const BUSY: Duration = Duration::from_secs(5);

/// `n` counts from 1 within its source. Texts may repeat; the pair `(source, n)` may not.
const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS lines (
        source TEXT NOT NULL,
        n      INTEGER NOT NULL,
        text   BLOB NOT NULL,
        PRIMARY KEY (source, n)
    );
    CREATE TABLE IF NOT EXISTS position (
        source TEXT PRIMARY KEY,
        n      INTEGER NOT NULL,
        offset INTEGER NOT NULL,
        before INTEGER NOT NULL
    );
";

/// The only connection that writes.
#[derive(Debug)]
pub(crate) struct Store {
    connection: Connection,
}

impl Store {
    /// Opens the database for writing, and checks that it is writable.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(BUSY)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        // An acknowledged line survives a power cut, not only a crash of the process.
        connection.pragma_update(None, "synchronous", "full")?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(SCHEMA)?;
        transaction.prepare("SELECT source, n, text FROM lines")?;
        transaction.prepare("SELECT source, n, offset, before FROM position")?;
        transaction.commit()?;
        Ok(Self { connection })
    }

    /// Stores the batches in one transaction and returns a receipt for each.
    pub(crate) fn commit(&mut self, batches: &[Arc<Batch>]) -> Result<Vec<Receipt>> {
        let immediate = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(immediate)?;
        let receipts = batches.iter().map(|batch| store(&transaction, batch));
        let receipts = receipts.collect::<Result<Vec<_>>>()?;
        transaction.commit()?;
        Ok(receipts)
    }
}

fn store(transaction: &Transaction<'_>, batch: &Batch) -> Result<Receipt> {
    match batch {
        Batch::File { from, to, again, texts } => {
            let position = position(transaction)?;
            if position != *from {
                return Ok(Receipt { position, ..Receipt::default() });
            }
            store_file(transaction, *from, *to, *again, texts)
        }
        Batch::Connection(lines) => store_lines(transaction, lines),
    }
}

fn store_file(
    transaction: &Transaction<'_>,
    from: Position,
    to: Position,
    again: bool,
    texts: &[Vec<u8>],
) -> Result<Receipt> {
    if again {
        let mut delete =
            transaction.prepare_cached("DELETE FROM lines WHERE source = ?1 AND n = ?2")?;
        delete.execute(params![FILE, from.n])?;
    }
    let first = if again { from.n } else { from.n + 1 };
    // Not `OR IGNORE`: an existing line would mean that the position is wrong.
    let mut insert =
        transaction.prepare_cached("INSERT INTO lines (source, n, text) VALUES (?1, ?2, ?3)")?;
    for (n, text) in (first..).zip(texts) {
        insert.execute(params![FILE, n, text])?;
    }
    let mut advance = transaction.prepare_cached(
        "INSERT INTO position (source, n, offset, before) VALUES (:source, :n, :offset, :before)
         ON CONFLICT (source) DO UPDATE SET n = :n, offset = :offset, before = :before",
    )?;
    let Position { n, offset, before } = to;
    advance.execute(
        named_params! { ":source": FILE, ":n": n, ":offset": offset, ":before": before },
    )?;
    Ok(Receipt { new: Vec::new(), stored: to.n - from.n, position: to })
}

fn store_lines(transaction: &Transaction<'_>, lines: &[Line]) -> Result<Receipt> {
    let mut insert = transaction
        .prepare_cached("INSERT OR IGNORE INTO lines (source, n, text) VALUES (?1, ?2, ?3)")?;
    let insert =
        |line: &Line| insert.execute(params![line.source, line.n, line.text]).map(|rows| rows == 1);
    let new = lines.iter().map(insert).collect::<Result<Vec<_>>>()?;
    let stored = new.iter().map(|&new| u64::from(new)).sum();
    Ok(Receipt { new, stored, position: Position::default() })
}

/// Returns the position in the file; its beginning if none of it was ever stored.
pub(crate) fn position(connection: &Connection) -> Result<Position> {
    let mut query =
        connection.prepare_cached("SELECT n, offset, before FROM position WHERE source = ?1")?;
    let read =
        |row: &Row<'_>| Ok(Position { n: row.get(0)?, offset: row.get(1)?, before: row.get(2)? });
    let position = query.query_row([FILE], read).optional()?;
    Ok(position.unwrap_or_default())
}

/// Opens the database for reading.
pub(crate) fn open_to_read(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    Ok(connection)
}

/// Returns where to resume the file, and the stored line before that position.
pub(crate) fn resume(path: &Path) -> Result<(Position, Option<Vec<u8>>)> {
    let connection = open_to_read(path)?;
    let position = position(&connection)?;
    let last = connection
        .query_row(
            "SELECT text FROM lines WHERE source = ?1 AND n = ?2",
            params![FILE, position.n],
            |row| Ok(row.get_ref(0)?.as_bytes()?.to_vec()),
        )
        .optional()?;
    Ok((position, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(source: &str, n: i64, text: &str) -> Line {
        Line { source: source.into(), n, text: text.into() }
    }

    fn file(from: (u64, u64), to: (u64, u64), again: bool, texts: &[&str]) -> Arc<Batch> {
        let position = |(n, offset)| Position { n, offset, before: 0 };
        let texts = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
        Arc::new(Batch::File { from: position(from), to: position(to), again, texts })
    }

    fn rows(path: &Path) -> Vec<(String, i64, Vec<u8>)> {
        let connection = open_to_read(path).unwrap();
        let mut query =
            connection.prepare("SELECT source, n, text FROM lines ORDER BY source, n").unwrap();
        let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
        rows.collect::<Result<_>>().unwrap()
    }

    #[test]
    fn rows_and_position_move_together() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("feed.db");
        let mut store = Store::open(&path).unwrap();

        let receipts = store.commit(&[file((0, 0), (2, 4), false, &["a", "a"])]).unwrap();

        assert_eq!(
            (receipts[0].stored, receipts[0].position),
            (2, Position { n: 2, offset: 4, before: 0 })
        );
        assert_eq!(
            resume(&path),
            Ok((Position { n: 2, offset: 4, before: 0 }, Some(b"a".to_vec())))
        );
        assert_eq!(rows(&path).len(), 2);
    }

    #[test]
    fn a_batch_from_another_position_stores_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("feed.db");
        let mut store = Store::open(&path).unwrap();
        let batch = file((0, 0), (1, 2), false, &["a"]);

        let receipts = store.commit(&[Arc::clone(&batch), batch]).unwrap();

        assert_eq!((receipts[0].stored, receipts[1].stored), (1, 0));
        assert_eq!(receipts[1].position, Position { n: 1, offset: 2, before: 0 });
        assert_eq!(rows(&path).len(), 1);
    }

    #[test]
    fn a_line_that_had_no_newline_is_replaced_when_it_has_grown() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("feed.db");
        let mut store = Store::open(&path).unwrap();
        store.commit(&[file((0, 0), (1, 1), false, &["a"])]).unwrap();

        let receipts = store.commit(&[file((1, 1), (2, 4), true, &["ab", "c"])]).unwrap();

        assert_eq!(receipts[0].stored, 1);
        let expected = [(FILE.into(), 1, b"ab".to_vec()), (FILE.into(), 2, b"c".to_vec())];
        assert_eq!(rows(&path), expected);
    }

    #[test]
    fn a_repeated_identity_stores_nothing_and_the_first_text_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("feed.db");
        let mut store = Store::open(&path).unwrap();
        let batch = vec![line("a", 1, "x"), line("a", 1, "y"), line("b", 1, "x")];

        let receipts = store.commit(&[Arc::new(Batch::Connection(batch))]).unwrap();

        assert_eq!((receipts[0].new.as_slice(), receipts[0].stored), (&[true, false, true][..], 2));
        let expected = [("a".into(), 1, b"x".to_vec()), ("b".into(), 1, b"x".to_vec())];
        assert_eq!(rows(&path), expected);
    }

    #[test]
    fn a_file_that_is_no_database_is_refused_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notes.txt");
        std::fs::write(&path, "these are my notes, not a database, whatever the flag says")
            .unwrap();

        let error = Store::open(&path).unwrap_err();

        assert!(error.to_string().contains("not a database"), "{error}");
        assert!(std::fs::read(&path).unwrap().starts_with(b"these are my notes"));
    }
}
