//! The audit after the end: compares input and database, text by text.
//!
//! The audit shares no code with the service. It splits the file into lines itself, generates the
//! clients' lines again, and reads the stored lines from the database. It uses the ledger for what
//! was accepted before an early stop, and the acknowledged lines for what external senders were
//! answered. It does not use
//! the running counters.
//!
//! A line is *lost* if it was accepted and its row is missing or holds another text. A row is
//! *duplicated* if no line accounts for it. The lines of files before the current one are only counted.
//!
//! Its memory doesn't grow with the number of lines.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::ops::AddAssign;
use std::path::Path;

use rusqlite::{Connection, Row, params};

use crate::acknowledged::digest;
use crate::app::App;
use crate::clients;
use crate::kills;
use crate::ledger::Senders;
use crate::storage::batch::Position;
use crate::storage::sqlite::{FILE, open_to_read, position};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The result of the comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Findings {
    /// Lines accepted.
    pub(crate) lines: u64,
    /// Rows found.
    pub(crate) stored: u64,
    pub(crate) lost: u64,
    pub(crate) duplicated: u64,
}

impl AddAssign for Findings {
    fn add_assign(&mut self, other: Self) {
        self.lines += other.lines;
        self.stored += other.stored;
        self.lost += other.lost;
        self.duplicated += other.duplicated;
    }
}

/// The findings of one kind of source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) file: Findings,
    pub(crate) clients: Findings,
    pub(crate) external: Findings,
    /// Rows of external senders from earlier runs, or that were never acknowledged.
    pub(crate) unknown: u64,
}

impl Report {
    /// Returns the sum of all sources. Unknown rows of external senders count as correct.
    pub(crate) fn total(&self) -> Findings {
        let mut total =
            Findings { lines: self.unknown, stored: self.unknown, ..Findings::default() };
        total += self.file;
        total += self.clients;
        total += self.external;
        total
    }
}

/// Compares everything that `app` accepted with what its database holds.
pub(crate) fn audit(app: &App) -> Result<Report> {
    let senders = app.ledger.senders();
    let connection = open_to_read(&app.db)?;
    let mut report = Report { file: file(&connection, app, &senders)?, ..Report::default() };
    for source in client_names(&connection, &senders)? {
        report.clients += built_in(&connection, &source, &senders)?;
    }
    (report.external, report.unknown) = external(&app.acknowledged.lock(), &app.db)?;
    Ok(report)
}

/// Compares the clients of [`kills`], and the file up to where it is stored, with the
/// database of the killed service.
///
/// Rows of other sources are unknown.
pub(crate) fn audit_clients(db: &Path, file: &Path, senders: &Senders) -> Result<Report> {
    let connection = open_to_read(db)?;
    let Position { offset, before, .. } = position(&connection)?;
    let mut report = Report { file: earlier(&connection, before)?, ..Report::default() };
    report.file += current_file(&connection, File::open(file)?, offset, before)?;
    for (index, &answered) in senders.clients.iter().enumerate() {
        report.clients += client(&connection, &kills::name(index), index, answered, u64::MAX)?;
    }
    let rows: u64 = connection.query_row("SELECT count(*) FROM lines", [], |row| row.get(0))?;
    report.unknown = rows - report.file.stored - report.clients.stored;
    Ok(report)
}

/// Returns the names of built-in clients that have rows, or should have.
fn client_names(connection: &Connection, senders: &Senders) -> Result<BTreeSet<String>> {
    let mut query = connection.prepare("SELECT DISTINCT source FROM lines WHERE source GLOB ?1")?;
    let stored = query.query_map([format!("{}*", clients::PREFIX)], |row| row.get(0))?;
    let mut names = stored.collect::<rusqlite::Result<BTreeSet<String>>>()?;
    names.extend((0..senders.clients.len()).map(clients::name));
    Ok(names)
}

/// Compares the lines of the file up to the last receipt, or the last commit if the stop came between
/// the commit and the receipt.
fn file(connection: &Connection, app: &App, senders: &Senders) -> Result<Findings> {
    let (committed, current) = (position(connection)?, app.input.current());
    let accepted = committed.max(senders.file);
    let bytes = if senders.file_ended { app.input.len } else { current.stored(accepted) };
    let mut findings = earlier(connection, current.before)?;
    findings += current_file(connection, current.reader(0), bytes, current.before)?;
    Ok(findings)
}

/// Counts the lines of files that were replaced. There is nothing left to compare them with.
fn earlier(connection: &Connection, lines: u64) -> Result<Findings> {
    let stored: u64 = connection.query_row(
        "SELECT count(*) FROM lines WHERE source = ?1 AND n BETWEEN 1 AND ?2",
        params![FILE, lines],
        |row| row.get(0),
    )?;
    let (lost, duplicated) = (lines.saturating_sub(stored), stored.saturating_sub(lines));
    Ok(Findings { lines, stored, lost, duplicated })
}

/// Compares the first `bytes` of the current file with the rows that follow those of earlier files.
fn current_file(
    connection: &Connection,
    input: impl Read,
    bytes: u64,
    before: u64,
) -> Result<Findings> {
    let mut input = BufReader::new(input.take(bytes));
    let lines = std::iter::from_fn(move || {
        let mut line = Vec::new();
        match input.read_until(b'\n', &mut line) {
            Ok(0) => None,
            Ok(_) => {
                line.pop_if(|last| *last == b'\n');
                Some(Ok(line))
            }
            Err(error) => Some(Err(error.into())),
        }
    });
    compare(connection, FILE, before, lines)
}

/// Compares the lines of a built-in client.
fn built_in(connection: &Connection, source: &str, senders: &Senders) -> Result<Findings> {
    let Some(index) = clients::index(source) else {
        return compare(connection, source, 0, std::iter::empty());
    };
    let answered = senders.clients.get(index).copied().unwrap_or(0);
    client(connection, source, index, answered, clients::LINES)
}

/// Compares the lines of a client, which are committed and acknowledged in order. Lines after the last
/// acknowledgement may be committed as well, up to line `most`.
fn client(
    connection: &Connection,
    source: &str,
    index: usize,
    answered: u64,
    most: u64,
) -> Result<Findings> {
    let last: Option<u64> =
        connection
            .query_row("SELECT max(n) FROM lines WHERE source = ?1", [source], |row| row.get(0))?;
    let accepted = answered.max(last.unwrap_or(0)).min(most);
    compare(connection, source, 0, (1..=accepted).map(|n| Ok(clients::text::text(index, n))))
}

/// Compares lines of a source, numbered from `before + 1`, with its rows other than 1 to `before`.
fn compare(
    connection: &Connection,
    source: &str,
    before: u64,
    lines: impl Iterator<Item = Result<Vec<u8>>>,
) -> Result<Findings> {
    let mut query = connection.prepare(
        "SELECT n, text FROM lines WHERE source = ?1 AND n NOT BETWEEN 1 AND ?2 ORDER BY n",
    )?;
    let mut rows = query.query(params![source, before])?;
    let mut row = rows.next()?.map(read).transpose()?;
    let mut findings = Findings::default();
    for (n, line) in (before as i64 + 1..).zip(lines) {
        let line = line?;
        findings.lines += 1;
        let mut found = false;
        while let Some((stored, text)) = row.take_if(|(stored, _)| *stored <= n) {
            findings.stored += 1;
            let accounted = stored == n && text == line && !found;
            found |= accounted;
            findings.duplicated += u64::from(!accounted);
            row = rows.next()?.map(read).transpose()?;
        }
        findings.lost += u64::from(!found);
    }
    let mut left = row.is_some();
    while left {
        findings.stored += 1;
        findings.duplicated += 1;
        left = rows.next()?.is_some();
    }
    Ok(findings)
}

/// Compares external lines, by the digests of those that this run acknowledged. Also returns the
/// number of rows that it didn't acknowledge.
fn external(acknowledged: &Connection, db: &Path) -> Result<(Findings, u64)> {
    let db = db.to_str().ok_or("the path of the database is not UTF-8")?;
    acknowledged.execute("ATTACH ?1 AS service", [db])?;
    let mut findings = Findings::default();
    let mut query = acknowledged.prepare(
        "SELECT digest, text FROM acknowledged LEFT JOIN service.lines USING (source, n)",
    )?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        findings.lines += 1;
        let expected: Option<i64> = row.get(0)?;
        let Some(text) = row.get_ref(1)?.as_bytes_or_null()? else {
            findings.lost += 1;
            continue;
        };
        findings.stored += 1;
        let wrong = u64::from(expected.is_some_and(|expected| expected != digest(text)));
        findings.lost += wrong;
        findings.duplicated += wrong;
    }
    let unknown = acknowledged.query_row(
        "SELECT count(*) FROM service.lines WHERE source <> ?1 AND source NOT GLOB ?2
         AND NOT EXISTS (SELECT 1 FROM acknowledged AS a WHERE a.source = lines.source AND a.n = lines.n)",
        [FILE, &format!("{}*", clients::PREFIX)],
        |row| row.get(0),
    )?;
    Ok((findings, unknown))
}

fn read(row: &Row<'_>) -> rusqlite::Result<(i64, Vec<u8>)> {
    Ok((row.get(0)?, row.get_ref(1)?.as_bytes()?.to_vec()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::acknowledged::Acknowledged;
    use crate::storage::batch::{Batch, Line};
    use crate::storage::sqlite::Store;

    /// Returns a database with these numbered texts of one source.
    fn database(rows: &[(i64, &str)]) -> (tempfile::TempDir, Connection) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("feed.db");
        let line = |&(n, text): &(i64, &str)| Line { source: "s".into(), n, text: text.into() };
        let batch = Batch::Connection(rows.iter().map(line).collect());
        Store::open(&path).unwrap().commit(&[Arc::new(batch)]).unwrap();
        (dir, open_to_read(&path).unwrap())
    }

    fn findings(lines: u64, stored: u64, lost: u64, duplicated: u64) -> Findings {
        Findings { lines, stored, lost, duplicated }
    }

    #[test]
    fn each_line_is_compared_with_the_row_of_its_number() {
        for (lines, rows, expected) in [
            (&[][..], &[][..], findings(0, 0, 0, 0)),
            (&["a", "", "a"], &[(1, "a"), (2, ""), (3, "a")], findings(3, 3, 0, 0)),
            (&["a", "b"], &[], findings(2, 0, 2, 0)),
            (&["a", "b", "c"], &[(1, "a"), (3, "c")], findings(3, 2, 1, 0)),
            (&["a", "b"], &[(1, "a"), (2, "B")], findings(2, 2, 1, 1)),
            (&["a"], &[(1, "a"), (2, "a")], findings(1, 2, 0, 1)),
            (&["a"], &[(0, "a"), (1, "a")], findings(1, 2, 0, 1)),
            (&["a", "b", "c"], &[(1, "a"), (2, "a"), (3, "b"), (4, "c")], findings(3, 4, 2, 3)),
        ] {
            let (_dir, connection) = database(rows);
            let lines = lines.iter().map(|line| Ok(line.as_bytes().to_vec()));
            assert_eq!(compare(&connection, "s", 0, lines).unwrap(), expected, "{rows:?}");
        }
    }

    #[test]
    fn the_file_is_split_into_lines_up_to_the_accepted_byte() {
        let (_dir, connection) = database(&[]);

        for (accepted, lines) in [(0, 0), (2, 1), (3, 2), (6, 3), (7, 4)] {
            let found = current_file(&connection, &b"a\n\nb\r\nc"[..], accepted, 0).unwrap();
            assert_eq!(found, findings(lines, 0, lines, 0), "{accepted} bytes");
        }
    }

    #[test]
    fn lines_of_earlier_files_are_counted_and_the_current_file_follows_them() {
        let (dir, connection) = database(&[(1, "a"), (3, "c"), (4, "d")]);
        let writing = Connection::open(dir.path().join("feed.db")).unwrap();
        writing.execute("UPDATE lines SET source = ?1", [FILE]).unwrap();

        assert_eq!(earlier(&connection, 3).unwrap(), findings(3, 2, 1, 0));
        let found = current_file(&connection, &b"d\ne\n"[..], 4, 3).unwrap();
        assert_eq!(found, findings(2, 1, 1, 0));
    }

    /// Returns a database with the first `stored` lines of the first client of a killed service.
    fn killed(stored: u64) -> (tempfile::TempDir, Connection) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("feed.db");
        let line = |n: u64| Line {
            source: kills::name(0).into(),
            n: n.cast_signed(),
            text: clients::text::text(0, n),
        };
        let batch = Batch::Connection((1..=stored).map(line).collect());
        Store::open(&path).unwrap().commit(&[Arc::new(batch)]).unwrap();
        let connection = Connection::open(path).unwrap();
        (dir, connection)
    }

    #[test]
    fn each_acknowledged_line_of_a_killed_service_is_in_its_database() {
        for (answered, sql, expected) in [
            (40, "", findings(40, 40, 0, 0)),
            // Committed, but killed before the answer.
            (30, "", findings(40, 40, 0, 0)),
            (41, "", findings(41, 40, 1, 0)),
            (40, "DELETE FROM lines WHERE n = 7", findings(40, 39, 1, 0)),
            (40, "UPDATE lines SET text = x'00' WHERE n = 7", findings(40, 40, 1, 1)),
            (40, "INSERT INTO lines VALUES ('client-1', 0, x'00')", findings(40, 41, 0, 1)),
        ] {
            let (dir, connection) = killed(40);
            connection.execute_batch(sql).unwrap();
            let senders = Senders { clients: vec![answered], ..Senders::default() };
            let input = dir.path().join("input");
            std::fs::write(&input, "a\n").unwrap();

            let report = audit_clients(&dir.path().join("feed.db"), &input, &senders).unwrap();

            assert_eq!((report.total(), report.unknown), (expected, 0), "{answered} {sql}");
        }
    }

    #[test]
    fn external_lines_are_compared_with_the_acknowledged_ones() {
        let (dir, _) = database(&[(1, "a"), (2, "b"), (3, "c"), (9, "earlier")]);
        let acknowledged = Acknowledged::open().unwrap();
        let line = |(n, text): (i64, &str)| Line { source: "s".into(), n, text: text.into() };
        let lines = [(1, "a"), (2, "B"), (3, "unknown"), (4, "d")].map(line);
        let batch = Batch::Connection(lines.into());
        acknowledged.add(&batch, &[true, true, false, true]).unwrap();

        let found = external(&acknowledged.lock(), &dir.path().join("feed.db")).unwrap();

        assert_eq!(found, (findings(4, 3, 2, 1), 1));
    }
}
