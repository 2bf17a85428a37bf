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

    /// Continues with the next file, after `before` lines.
    pub(crate) fn replace(&self, file: File, before: u64) -> Current {
        let current = Current { file: Arc::new(file), before };
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = current.clone();
        current
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
    Ok(end.ends_with(line) || end.strip_suffix(b"\n").is_some_and(|end| end.ends_with(line)))
}
