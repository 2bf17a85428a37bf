//! What is stored: notes, each with a number and a time. All functions block.

use rusqlite::{Connection, Result};
use serde::Serialize;

/// How many notes a list has.
const LISTED: u32 = 100;

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Note {
    pub(crate) id: i64,
    pub(crate) text: String,
}

pub(crate) fn create_table(connection: &Connection) -> Result<()> {
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS notes (
            id   INTEGER PRIMARY KEY,
            text TEXT NOT NULL,
            at   INTEGER NOT NULL DEFAULT (unixepoch())
        )",
    )
}

pub(crate) fn add(connection: &Connection, text: String) -> Result<Note> {
    let mut insert = connection.prepare_cached("INSERT INTO notes (text) VALUES (?1)")?;
    let id = insert.insert([&text])?;
    Ok(Note { id, text })
}

/// Returns the latest notes, the newest first.
pub(crate) fn latest(connection: &Connection) -> Result<Vec<Note>> {
    let mut select =
        connection.prepare_cached("SELECT id, text FROM notes ORDER BY id DESC LIMIT ?1")?;
    select.query_map([LISTED], |row| Ok(Note { id: row.get(0)?, text: row.get(1)? }))?.collect()
}

/// Deletes notes that are older, and returns their number.
pub(crate) fn delete_older(connection: &Connection, seconds: u64) -> Result<usize> {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    connection.execute("DELETE FROM notes WHERE at < unixepoch() - ?1", [seconds])
}
