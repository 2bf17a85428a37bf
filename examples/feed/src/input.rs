//! The file that is read, which with `--follow` may be replaced by a successor.
//!
//! It stays open when its reader restarts, so that a file that was renamed or deleted is still read
//! to its end. Line numbers go on in the successor; offsets begin again.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::storage::batch::Position;

/// The path that is read, and the file that was found there.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) path: PathBuf,
    pub(crate) follow: bool,
    /// How many bytes of the file are read, unless it is followed.
    pub(crate) len: u64,
    current: Mutex<Current>,
}

/// One file.
#[derive(Clone, Debug)]
pub(crate) struct Current {
    file: Arc<File>,
    /// How many lines were stored from files before this one.
    pub(crate) before: u64,
}

/// Reads a file from an offset, with a cursor of its own.
#[derive(Debug)]
pub(crate) struct Reader {
    file: Arc<File>,
    offset: u64,
}

impl Input {
    /// Opens the file at this path, of which everything up to `position` is stored. `last` is the
    /// last stored line.
    ///
    /// # Errors
    ///
    /// If these bytes aren't those of the file, it is followed from its beginning, or else refused
    /// with [`ErrorKind::InvalidData`].
    pub(crate) fn open(
        path: &Path,
        follow: bool,
        position: Position,
        last: Option<&[u8]>,
    ) -> io::Result<Self> {
        let file = Arc::new(File::open(path)?);
        let len = file.metadata()?.len();
        let Position { offset, .. } = position;
        let problem = if len < offset {
            Some(format!(
                "it holds {offset} bytes of a file, but {} has only {len}",
                path.display()
            ))
        } else if !last.map_or(Ok(true), |last| ends_with(&file, offset, last))? {
            let path = path.display();
            Some(format!("its last line is not the one before byte {offset} of {path}"))
        } else {
            None
        };
        let before = match problem {
            None => position.before,
            Some(problem) if follow => {
                tracing::warn!(problem, "the file was replaced; reading it from its beginning");
                position.n
            }
            Some(problem) => return Err(io::Error::new(ErrorKind::InvalidData, problem)),
        };
        let current = Mutex::new(Current { file, before });
        Ok(Self { path: path.to_owned(), follow, len, current })
    }

    pub(crate) fn current(&self) -> Current {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the file that has replaced this one at its path, once it has any bytes.
    pub(crate) fn successor(&self, current: &Current) -> io::Result<Option<File>> {
        let file = match File::open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let (new, old) = (file.metadata()?, current.file.metadata()?);
        let same = (new.dev(), new.ino()) == (old.dev(), old.ino());
        Ok((!same && new.is_file() && new.len() > 0).then_some(file))
    }

    /// Continues with the successor of `old`, after `before` lines, and returns the current file.
    ///
    /// An incarnation that was aborted may still be at this. What the next one has done stays.
    pub(crate) fn replace(&self, old: &Current, successor: File, before: u64) -> Current {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&current.file, &old.file) {
            *current = Current { file: Arc::new(successor), before };
        }
        current.clone()
    }
}

impl Current {
    pub(crate) fn reader(&self, offset: u64) -> Reader {
        Reader { file: Arc::clone(&self.file), offset }
    }

    pub(crate) fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Returns how much of this file is stored when everything up to `position` is.
    pub(crate) fn stored(&self, position: Position) -> u64 {
        if position.before == self.before { position.offset } else { 0 }
    }

    /// Whether the file's first `offset` bytes end with a line; no bytes do.
    pub(crate) fn ends_with_newline(&self, offset: u64) -> io::Result<bool> {
        ends_with(&self.file, offset, b"\n").map(|newline| newline || offset == 0)
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

/// Whether the file's first `offset` bytes end with this line, with or without its newline.
fn ends_with(file: &File, offset: u64, line: &[u8]) -> io::Result<bool> {
    let len = (offset as usize).min(line.len() + 1);
    let mut end = vec![0; len];
    file.read_exact_at(&mut end, offset - len as u64)?;
    let complete = end.strip_suffix(b"\n").is_some_and(|end| end.ends_with(line));
    Ok(complete || (!line.is_empty() && end.ends_with(line)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_at_the_path_is_the_one_that_was_read_if_the_last_line_is_in_its_place() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "a\nbb\n\nc").unwrap();

        for (offset, last, is_same) in [
            (0, None, true),
            (2, Some("a"), true),
            (5, Some("bb"), true),
            (6, Some(""), true),
            (7, Some("c"), true),
            (3, Some(""), false),
            (5, Some("c"), false),
            (2, Some("much longer"), false),
            (8, Some("c"), false),
        ] {
            let position = Position { n: 1, offset, before: 0 };
            let last = last.map(str::as_bytes);
            let opened = Input::open(file.path(), false, position, last);
            assert_eq!(opened.is_ok(), is_same, "{offset} {last:?}");
            let followed = Input::open(file.path(), true, position, last).unwrap();
            assert_eq!(followed.current().before, u64::from(!is_same), "{offset} {last:?}");
        }
    }

    #[test]
    fn a_successor_takes_the_place_of_its_predecessor_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("input");
        std::fs::write(&path, "a\n").unwrap();
        let input = Input::open(&path, true, Position::default(), None).unwrap();
        let first = input.current();
        assert!(input.successor(&first).unwrap().is_none());
        let open = || File::open(&path).unwrap();
        let second = input.replace(&first, open(), 1);
        let third = input.replace(&second, open(), 2);

        let late = input.replace(&first, open(), 1);

        assert!((late.before, third.before) == (2, 2) && Arc::ptr_eq(&late.file, &third.file));
    }
}
