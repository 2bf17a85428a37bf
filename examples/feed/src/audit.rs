//! The audit after the end: compares input and database, text by text.
//!
//! The audit shares no code with the service. It splits the file into lines itself, generates the
//! clients' lines again, and reads the stored lines from the database. It uses the ledger for what
//! was accepted before an early stop, and for what external senders were answered. It does not use
//! the running counters.
//!
//! A line is *lost* if it was accepted and its row is missing or holds another text. A row is
//! *duplicated* if no line accounts for it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::ops::AddAssign;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Row, Statement};

use crate::app::App;
use crate::clients;
use crate::ledger::{Senders, digest};
use crate::storage::sqlite::{FILE, open_to_read};

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
    let accepted =
        if senders.file_ended { app.file_len } else { file_accepted(&connection, &senders)? };
    let mut report =
        Report { file: file(&connection, &app.options.file, accepted)?, ..Report::default() };
    let mut external = app.ledger.external();
    for source in sources(&connection, external.keys().map(ToString::to_string), &senders)? {
        if let Some(index) = clients::index(&source) {
            let answered = senders.clients.get(index).copied().unwrap_or(0);
            report.clients += client(&connection, &source, index, answered)?;
        } else {
            let answered = external.remove(source.as_str()).unwrap_or_default();
            let (findings, unknown) = compare_external(&connection, &source, &answered)?;
            report.external += findings;
            report.unknown += unknown;
        }
    }
    Ok(report)
}

/// Returns all sources but the file that have rows or acknowledgements, or should have.
fn sources(
    connection: &Connection,
    external: impl Iterator<Item = String>,
    senders: &Senders,
) -> Result<BTreeSet<String>> {
    let mut query = connection.prepare("SELECT DISTINCT source FROM lines WHERE source <> ?1")?;
    let stored = query.query_map([FILE], |row| row.get(0))?;
    let mut sources = stored.collect::<rusqlite::Result<BTreeSet<String>>>()?;
    sources.extend(external);
    sources.extend((0..senders.clients.len()).map(clients::name));
    Ok(sources)
}

/// Returns how many bytes of the file were accepted: what its reader received a receipt for, or what
/// was committed if the stop came between the commit and the receipt.
fn file_accepted(connection: &Connection, senders: &Senders) -> Result<u64> {
    let committed: Option<u64> = connection
        .query_row("SELECT offset FROM position WHERE source = ?1", [FILE], |row| row.get(0))
        .optional()?;
    Ok(senders.file.max(committed.unwrap_or(0)))
}

fn file(connection: &Connection, path: &Path, accepted: u64) -> Result<Findings> {
    let input = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut input = BufReader::new(input.take(accepted));
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
    compare(connection, FILE, lines)
}

/// Compares the lines of a built-in client, which are committed and acknowledged in order. Lines
/// after the last acknowledgement may be committed as well.
fn client(connection: &Connection, source: &str, index: usize, answered: u64) -> Result<Findings> {
    let last: Option<u64> =
        connection
            .query_row("SELECT max(n) FROM lines WHERE source = ?1", [source], |row| row.get(0))?;
    let accepted = answered.max(last.unwrap_or(0)).min(clients::LINES);
    compare(connection, source, (1..=accepted).map(|n| Ok(clients::text::text(index, n))))
}

/// Compares the lines of a source, numbered from 1, with its rows.
fn compare(
    connection: &Connection,
    source: &str,
    lines: impl Iterator<Item = Result<Vec<u8>>>,
) -> Result<Findings> {
    let mut query = rows_of(connection)?;
    let mut rows = query.query([source])?;
    let mut row = rows.next()?.map(read).transpose()?;
    let mut findings = Findings::default();
    for (n, line) in (1..).zip(lines) {
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

/// Compares an external sender's lines, by the digests of those that this run acknowledged.
fn compare_external(
    connection: &Connection,
    source: &str,
    answered: &BTreeMap<i64, Option<u64>>,
) -> Result<(Findings, u64)> {
    let lines = answered.len() as u64;
    let (mut findings, mut unknown) = (Findings { lines, ..Findings::default() }, 0);
    let mut found = BTreeSet::new();
    let mut query = rows_of(connection)?;
    let mut rows = query.query([source])?;
    while let Some(row) = rows.next()? {
        let (n, text) = read(row)?;
        let Some(expected) = answered.get(&n) else {
            unknown += 1;
            continue;
        };
        findings.stored += 1;
        let accounted =
            expected.is_none_or(|expected| expected == digest(&text)) && found.insert(n);
        findings.duplicated += u64::from(!accounted);
    }
    findings.lost = lines - found.len() as u64;
    Ok((findings, unknown))
}

fn rows_of(connection: &Connection) -> rusqlite::Result<Statement<'_>> {
    connection.prepare("SELECT n, text FROM lines WHERE source = ?1 ORDER BY n")
}

fn read(row: &Row<'_>) -> rusqlite::Result<(i64, Vec<u8>)> {
    Ok((row.get(0)?, row.get_ref(1)?.as_bytes()?.to_vec()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
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
            assert_eq!(compare(&connection, "s", lines).unwrap(), expected, "{rows:?}");
        }
    }

    #[test]
    fn the_file_is_split_into_lines_up_to_the_accepted_byte() {
        let (dir, connection) = database(&[]);
        let path = dir.path().join("input");
        std::fs::write(&path, "a\n\nb\r\nc").unwrap();

        for (accepted, lines) in [(0, 0), (2, 1), (3, 2), (6, 3), (7, 4)] {
            let found = file(&connection, &path, accepted).unwrap();
            assert_eq!(found, findings(lines, 0, lines, 0), "{accepted} bytes");
        }
    }

    #[test]
    fn external_lines_are_compared_with_the_acknowledged_ones() {
        let (_dir, connection) = database(&[(1, "a"), (2, "b"), (3, "c"), (9, "earlier")]);
        let answered = BTreeMap::from([
            (1, Some(digest(b"a"))),
            (2, Some(digest(b"B"))),
            (3, None),
            (4, Some(digest(b"d"))),
        ]);

        let (found, unknown) = compare_external(&connection, "s", &answered).unwrap();

        assert_eq!((found, unknown), (findings(4, 3, 2, 1), 1));
    }
}
