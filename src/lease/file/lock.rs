//! A file that is locked by this process, and the token in it.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use super::problem;
use super::record::{self, FileRecord};
use crate::lease::{FencingToken, LeaseError, LeaseRecord};

/// How often a file is opened again because it was deleted or replaced before it was locked, or because a look has locked
/// it.
const ATTEMPTS: u32 = 16;
/// How much longer each of these attempts waits than the previous one: 120 ms together. The thread of a look may have to
/// wait for a processor while it has its lock.
const PAUSE: Duration = Duration::from_millis(1);

/// A locked file. It is unlocked when this is dropped.
#[derive(Debug)]
pub(super) struct LockedFile {
    file: fs::File,
    path: PathBuf,
    token: FencingToken,
}

/// The answer to a request for a lock.
#[derive(Debug)]
pub(super) enum LockAttempt {
    Locked(LockedFile),
    /// Granted again, to the holder that has it.
    Again(FencingToken),
    Held {
        by: Option<Arc<str>>,
    },
}

impl LockedFile {
    /// Locks the file of a lease, and grants the lease to the holder. Creates the file if necessary.
    ///
    /// # Errors
    ///
    /// If the file can't be opened, locked, read or written, or if its content isn't that of a lease.
    pub(super) fn lock(path: &Path, holder: &str) -> Result<LockAttempt, LeaseError> {
        for attempt in 0..ATTEMPTS {
            #[expect(clippy::disallowed_methods, reason = "on a thread that may block")]
            std::thread::sleep(PAUSE * attempt);
            let file = open(path).map_err(|error| problem::open(path, error))?;
            if let Some(attempt) = Self::lock_opened(file, path, holder)? {
                return Ok(attempt);
            }
        }
        Err(problem::replaced(path))
    }

    /// Returns who has the lock, without taking it.
    ///
    /// There is no call that tells it. A shared lock is refused while a holder has its exclusive one, and disturbs no other
    /// look. [`lock`](Self::lock) is refused for the moment that it lasts, and tries again.
    ///
    /// # Errors
    ///
    /// If the file can't be opened, locked or read.
    pub(super) fn owner(path: &Path) -> Result<LeaseRecord, LeaseError> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(OFlags::NOFOLLOW.bits() as i32);
        let file = match options.open(path) {
            Ok(file) => file,
            // The lease was never granted, unless there is no directory.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let directory = path.parent().unwrap_or(path);
                return match fs::metadata(directory) {
                    Ok(_) => Ok(LeaseRecord::free()),
                    Err(_) => Err(problem::open(path, error)),
                };
            }
            Err(error) => return Err(problem::open(path, error)),
        };
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => {
                // Not by closing alone, as in `drop` below.
                let _ = flock(&file, FlockOperation::Unlock);
                Ok(LeaseRecord::free())
            }
            Err(Errno::WOULDBLOCK) => {
                let held = LeaseRecord::held();
                Ok(match read(&file).ok().and_then(|it| record::last(&it)) {
                    Some(FileRecord { token, holder }) => {
                        held.with_holder(holder).with_token(FencingToken::new(token))
                    }
                    None => held,
                })
            }
            Err(error) => Err(problem::lock(path, error)),
        }
    }

    /// Locks an open file. Returns `None` if it was deleted or replaced since it was opened, or if it is being looked at.
    fn lock_opened(
        file: fs::File,
        path: &Path,
        holder: &str,
    ) -> Result<Option<LockAttempt>, LeaseError> {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                // A look has a shared lock for a moment, and isn't the holder.
                if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
                    let _ = flock(&file, FlockOperation::Unlock);
                    return Ok(None);
                }
                // Read while the holder may be writing, which is good enough for a name.
                let last = read(&file).ok().and_then(|it| record::last(&it));
                return Ok(Some(LockAttempt::Held { by: last.map(|it| it.holder.into()) }));
            }
            Err(error) => return Err(problem::lock(path, error)),
        }
        let mut locked = Self { file, path: path.to_owned(), token: FencingToken::new(0) };
        // The lock of a file that was deleted between the two calls excludes no other process.
        if !locked.is_in_place()? {
            return Ok(None);
        }
        locked.grant(holder)?;
        Ok(Some(LockAttempt::Locked(locked)))
    }

    /// Returns the token of the last grant.
    pub(super) fn token(&self) -> FencingToken {
        self.token
    }

    /// Returns whether the locked file still has its path. A deleted or replaced one excludes no other process.
    ///
    /// # Errors
    ///
    /// If the file system doesn't answer this.
    pub(super) fn is_in_place(&self) -> Result<bool, LeaseError> {
        let failed = |error| problem::failed("can't be checked", &self.path, error);
        let locked = self.file.metadata().map_err(failed)?;
        match fs::symlink_metadata(&self.path) {
            Ok(found) => Ok((found.dev(), found.ino()) == (locked.dev(), locked.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }

    /// Writes the next token and its holder, and returns the token.
    ///
    /// # Errors
    ///
    /// If the file can't be read or written, or if its content isn't that of a lease.
    pub(super) fn grant(&mut self, holder: &str) -> Result<FencingToken, LeaseError> {
        let content = read(&self.file)
            .map_err(|error| problem::failed("can't be read", &self.path, error))?;
        let token = record::next_token(&content).ok_or_else(|| problem::damaged(&self.path))?;
        let next = FileRecord { token, holder: holder.to_owned() };
        let written = if content.is_empty() { self.create(&next) } else { self.overwrite(&next) };
        written.map_err(|error| problem::failed("can't be written", &self.path, error))?;
        self.token = FencingToken::new(token);
        Ok(self.token)
    }

    fn create(&self, first: &FileRecord) -> io::Result<()> {
        self.file.write_all_at(&record::new_file(first), 0)?;
        self.file.sync_all()?;
        // The name of a new file is on the disk only after this.
        fs::File::open(self.path.parent().unwrap_or(&self.path))?.sync_all()
    }

    fn overwrite(&self, next: &FileRecord) -> io::Result<()> {
        let (offset, slot) = next.slot();
        self.file.write_all_at(&slot, offset)?;
        self.file.sync_data()
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Closing isn't enough: a process that is being spawned has a copy of the descriptor until its `exec`.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

fn open(path: &Path) -> io::Result<fs::File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    // In a directory that others can write to, a link could lead to any file.
    options.custom_flags(OFlags::NOFOLLOW.bits() as i32).open(path)
}

/// Reads the content, and one byte more than it may have.
fn read(file: &fs::File) -> io::Result<Vec<u8>> {
    let mut content = vec![0; record::FILE + 1];
    let mut length = 0;
    while length < content.len() {
        match file.read_at(&mut content[length..], length as u64) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    content.truncate(length);
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_deleted_before_it_is_locked_is_opened_again() {
        let name = format!("verger-lock-{}.lease", std::process::id());
        let path = std::env::temp_dir().join(name);
        let deleted = open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert!(LockedFile::lock_opened(deleted, &path, "a").unwrap().is_none());

        let replaced = open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let Ok(LockAttempt::Locked(first)) = LockedFile::lock(&path, "b") else {
            panic!("it is free")
        };
        assert!(LockedFile::lock_opened(replaced, &path, "a").unwrap().is_none());
        let held = LockedFile::lock(&path, "a").unwrap();
        assert!(matches!(held, LockAttempt::Held { by } if by.as_deref() == Some("b")));
        drop(first);
        fs::remove_file(&path).unwrap();
    }
}
