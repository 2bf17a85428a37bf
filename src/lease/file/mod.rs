//! The lease engine for one machine: a locked file for each lease.
//!
//! | file | what |
//! | --- | --- |
//! | `lock` | the lock of a file, and the token in it |
//! | `record` | the content of a file of a lease, and of a memo |
//! | `problem` | errors, with what to do about them |
//!
//! # Invariants
//!
//! 1. A token is granted only after it has been written to the file and synced, under the lock.
//! 2. An `acquire` that is dropped before its answer leaves no new lock behind, because this lock never expires.
//! 3. All calls of the file system run on a thread that may block.

mod lock;
mod problem;
mod record;

use std::collections::HashMap;
use std::fmt::{self, Write};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;

use self::lock::{LockAttempt, LockedFile};
use super::engine::{
    Acquired, Claim, FencingToken, LeaseEngine, LeaseError, MemoWrite, Released, Renewed,
};
use super::record::{LeaseRecord, Memo};
use crate::named_task;
use crate::sync::Mutex;

/// Leases for the processes of one machine: a locked file for each lease. Needs no server.
///
/// The processes give the same directory, which has to exist. It gets a file for each lease, `NAME.lease`, in
/// which the current token and its holder can be read, and `NAME.memo` for each lease that has a [`Memo`]. The lock is `flock`, so the operating system frees it the
/// moment that its process ends, also by `kill -9`. The next holder gets it at its next request.
///
/// Clones of an engine share the leases that they hold. Give each child a clone of one engine.
///
/// # No expiry
///
/// This engine ignores [`Claim::ttl`]. A process that is paused, stopped with SIGSTOP, or hangs keeps its leases
/// until it ends. Its child is the only one that runs, without any race, but no other process takes over. If a
/// process that hangs has to be replaced, let a watchdog kill it, such as the one of systemd, or use a store with
/// an expiry.
///
/// If a process is killed, the processes that it has forked without an `exec` keep its leases until they end, too.
///
/// # The directory
///
/// * It has to be on a local file system. Network file systems lock between machines unreliably or not at all.
/// * It has to survive a restart of the machine, such as a directory in `/var/lib`. The files hold the tokens:
///   after a file was deleted or emptied, the tokens of its lease begin with 1 again.
/// * Don't delete a file while processes use it. The holder loses the lease at its next renewal, which is up to
///   [`Lease::retry`](super::Lease::retry) later, and meanwhile another process can be granted the lease.
/// * All processes need to read and write the files: run them as the same user.
///
/// A name of any characters is accepted, up to 249 bytes. Each byte other than a lower-case letter, a digit, `-`,
/// `_` and `.` counts three times, because it is written as `%` and two digits.
///
/// # Cancel safety
///
/// A request that is dropped goes on, and has its effect. An [`acquire`](LeaseEngine::acquire) that is dropped
/// before it is answered frees the lease again.
///
/// # Panics
///
/// Each request panics outside of a tokio runtime.
///
/// # Example
///
/// ```
/// use std::time::Duration;
///
/// use verger::lease::{Acquired, Claim, File, LeaseEngine};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = std::env::temp_dir().join(format!("verger-file-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory)?;
/// // In a service: `File::new("/var/lib/app/leases")`.
/// let engine = File::new(&directory);
///
/// // What the guard of a child does.
/// let first = Claim::new("billing", "host-1/app", Duration::from_secs(15));
/// let second = Claim::new("billing", "host-1/copy", Duration::from_secs(15));
/// let Acquired::Granted(token) = engine.acquire(&first).await? else { panic!("the lease is free") };
/// let held = Acquired::Held { by: Some("host-1/app".into()) };
/// assert_eq!(engine.acquire(&second).await?, held);
///
/// engine.release(&first, token).await?;
/// let Acquired::Granted(next) = engine.acquire(&second).await? else { panic!("the lease is free") };
/// assert!(next > token);
/// # std::fs::remove_dir_all(&directory)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct File {
    shared: Arc<FileShared>,
}

struct FileShared {
    directory: PathBuf,
    /// The leases that this process holds through this engine, by name.
    held: Mutex<HashMap<Arc<str>, Arc<HeldFile>>>,
}

/// A lease that is held. Its lock is taken only on threads that may block.
struct HeldFile {
    holder: Arc<str>,
    /// `None` once it is released.
    file: Mutex<Option<LockedFile>>,
}

impl File {
    /// Creates an engine that keeps its files in this directory. Nothing is read or written before the first request.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        // With a `.` in front, the parent of a file's path can be opened, also if the path is relative.
        let directory = Path::new(".").join(directory.into());
        let shared = FileShared { directory, held: Mutex::default() };
        Self { shared: Arc::new(shared) }
    }

    /// Returns what this engine holds for the holder of the claim.
    fn held(&self, claim: &Claim) -> Option<Arc<HeldFile>> {
        let held = self.shared.held.lock();
        held.get(claim.name()).filter(|it| it.holder == *claim.holder()).cloned()
    }

    fn keep(&self, claim: &Claim, file: LockedFile) {
        let held = HeldFile { holder: Arc::clone(claim.holder()), file: Mutex::new(Some(file)) };
        let replaced = self.shared.held.lock().insert(Arc::clone(claim.name()), Arc::new(held));
        // Only a file that has been deleted meanwhile. Dropped here, after the lock.
        drop(replaced);
    }

    fn forget(&self, claim: &Claim, lost: &Arc<HeldFile>) {
        let mut held = self.shared.held.lock();
        // It may have been acquired again meanwhile.
        if held.get(claim.name()).is_some_and(|it| Arc::ptr_eq(it, lost)) {
            held.remove(claim.name());
        }
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File").field("directory", &self.shared.directory).finish_non_exhaustive()
    }
}

#[async_trait]
impl LeaseEngine for File {
    async fn acquire(&self, claim: &Claim) -> Result<Acquired, LeaseError> {
        let path = self.shared.directory.join(file_names(claim.name())?.lease);
        let (held, holder) = (self.held(claim), Arc::clone(claim.holder()));
        let attempt = blocking(claim.name(), move || {
            // Rule 5 of the trait: a second lock would be refused.
            if let Some(held) = held
                && let Some(file) = &mut *held.file.lock()
                && file.is_in_place()?
            {
                return file.grant(&holder).map(LockAttempt::Again);
            }
            LockedFile::lock(&path, &holder)
        });
        // If this future is dropped meanwhile, what the thread returns is dropped as well, and with it the lock.
        Ok(match attempt.await? {
            LockAttempt::Locked(file) => {
                let token = file.token();
                self.keep(claim, file);
                Acquired::Granted(token)
            }
            LockAttempt::Again(token) => Acquired::Granted(token),
            LockAttempt::Held { by } => Acquired::Held { by },
        })
    }

    async fn renew(&self, claim: &Claim, token: FencingToken) -> Result<Renewed, LeaseError> {
        let Some(held) = self.held(claim) else { return Ok(Renewed::Lost) };
        let current = Arc::clone(&held);
        let still = blocking(claim.name(), move || match &*current.file.lock() {
            Some(file) if file.is_in_place()? => Ok(Some(file.token())),
            _ => Ok(None),
        });
        let still = still.await?;
        if still.is_none() {
            self.forget(claim, &held);
        }
        Ok(if still == Some(token) { Renewed::Extended } else { Renewed::Lost })
    }

    async fn release(&self, claim: &Claim, token: FencingToken) -> Result<Released, LeaseError> {
        let Some(held) = self.held(claim) else { return Ok(Released::NotHeld) };
        let current = Arc::clone(&held);
        let released = blocking(claim.name(), move || {
            let mut current = current.file.lock();
            // Dropping the file unlocks it, also if its place can't be checked.
            let Some(file) = current.take_if(|it| it.token() == token) else { return Ok(false) };
            file.is_in_place()
        });
        let released = released.await?;
        if held.file.lock().is_none() {
            self.forget(claim, &held);
        }
        Ok(if released { Released::Released } else { Released::NotHeld })
    }

    async fn holder(&self, name: &str) -> Result<LeaseRecord, LeaseError> {
        let names = file_names(name)?;
        let directory = self.shared.directory.clone();
        let look = move || {
            let record = LockedFile::owner(&directory.join(names.lease))?;
            // Afterwards, so that it isn't older than the grant.
            Ok(record.with_memo(record::load_memo(&directory.join(names.memo))?))
        };
        blocking(name, look).await
    }

    fn stores_memos(&self) -> bool {
        true
    }

    async fn write_memo(
        &self,
        claim: &Claim,
        token: FencingToken,
        memo: &Memo,
    ) -> Result<MemoWrite, LeaseError> {
        let names = file_names(claim.name())?;
        let Some(held) = self.held(claim) else { return Ok(MemoWrite::NotHeld) };
        let (directory, memo) = (self.shared.directory.clone(), *memo);
        // The lock of the file stays with this call until the memo is on the disk.
        let store = move || match &*held.file.lock() {
            Some(file) if file.token() == token && file.is_in_place()? => {
                let (path, new) = (directory.join(names.memo), directory.join(names.new_memo));
                record::store_memo(&path, &new, token, &memo).map(|()| MemoWrite::Stored)
            }
            _ => Ok(MemoWrite::NotHeld),
        };
        blocking(claim.name(), store).await
    }
}

/// Runs such work on a thread that may block.
async fn blocking<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> Result<T, LeaseError> + Send + 'static,
) -> Result<T, LeaseError> {
    let name = name.to_owned();
    let task = named_task::spawn_blocking(move || format!("lease {name}"), work);
    task.await.unwrap_or_else(|error| match error.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        Err(_) => Err(LeaseError::new("the runtime shuts down")),
    })
}

const SUFFIX: &str = ".lease";
/// Not longer than the one of the lease.
const MEMO: &str = ".memo";
/// A memo that is being written.
const NEW_MEMO: &str = ".memo~";
/// The longest file name that common file systems accept, in bytes.
const LONGEST: usize = 255;

/// The names of the files that belong to a lease.
#[derive(Debug)]
struct FileNames {
    lease: String,
    memo: String,
    new_memo: String,
}

/// Returns the file names of a lease, as [`file_name`] does for each of them.
///
/// # Errors
///
/// If the name is too long.
fn file_names(name: &str) -> Result<FileNames, LeaseError> {
    let lease = file_name(name)?;
    let begin = lease.strip_suffix(SUFFIX).unwrap_or_default();
    let (memo, new_memo) = (format!("{begin}{MEMO}"), format!("{begin}{NEW_MEMO}"));
    Ok(FileNames { lease, memo, new_memo })
}

/// Returns the file name of a lease, which is different for each name, also where upper and lower case are the same.
///
/// It has no `/`, and doesn't begin with a dot unless the name is empty.
///
/// # Errors
///
/// If the name is too long.
fn file_name(name: &str) -> Result<String, LeaseError> {
    let mut file = String::with_capacity(name.len() + SUFFIX.len());
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => file.push(char::from(byte)),
            b'.' if at > 0 => file.push('.'),
            _ => write!(file, "%{byte:02x}").expect("a string accepts everything"),
        }
    }
    file.push_str(SUFFIX);
    if file.len() <= LONGEST {
        return Ok(file);
    }
    let (long, start) = (file.len(), name.chars().take(32).collect::<String>());
    let problem = format!("the lease `{start}…` needs a file name of {long} bytes");
    Err(LeaseError::new(problem).with_hint(format!("choose a name for which {LONGEST} are enough")))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_plain_name_is_its_file_name() {
        assert_eq!(file_name("billing").unwrap(), "billing.lease");
        assert_eq!(file_name("app-2_b.old").unwrap(), "app-2_b.old.lease");
    }

    #[test]
    fn no_name_leaves_the_directory() {
        assert_eq!(file_name("app/billing").unwrap(), "app%2fbilling.lease");
        assert_eq!(file_name("../../etc/passwd").unwrap(), "%2e.%2f..%2fetc%2fpasswd.lease");
        assert_eq!(file_name("/etc/passwd").unwrap(), "%2fetc%2fpasswd.lease");
        assert_eq!(file_name("a\0b\n").unwrap(), "a%00b%0a.lease");
        assert_eq!(file_name("..").unwrap(), "%2e..lease");
        assert_eq!(file_name("").unwrap(), ".lease");
    }

    #[test]
    fn different_names_are_different_files() {
        let names = ["", ".", "..", "a", "A", "%41", "%61", "a.lease", "a/b", "a%2fb", "ä", "a "];
        let files: HashSet<_> = names.iter().map(|it| file_name(it).unwrap()).collect();
        assert_eq!(files.len(), names.len());
        assert!(files.iter().all(|it| !it.bytes().any(|it| it.is_ascii_uppercase())));
    }

    #[test]
    fn the_files_of_all_leases_and_memos_have_different_names() {
        let names =
            ["a", "a.memo", "a.lease", "a.memo~", "a.memo.lease", "a.lease.memo", ".memo", ""];
        let all = names.map(|it| file_names(it).unwrap());
        let all = all.iter().flat_map(|it| [&it.lease, &it.memo, &it.new_memo]);
        let all: HashSet<_> = all.collect();
        assert_eq!(all.len(), 3 * names.len());
        let longest = all.iter().map(|it| it.len()).max();
        assert_eq!(longest, Some("a.memo.lease.lease".len()));
    }

    #[test]
    fn a_name_that_is_too_long_is_refused() {
        assert_eq!(file_name(&"a".repeat(249)).unwrap().len(), 255);
        let error = file_name(&"ü".repeat(125)).unwrap_err().to_string();
        let start = "ü".repeat(32);
        assert_eq!(
            error,
            format!(
                "the lease `{start}…` needs a file name of 756 bytes: choose a name for which 255 are enough"
            )
        );
    }

    proptest! {
        #![proptest_config(crate::random_cases::cases(64))]

        #[test]
        fn the_name_can_be_read_from_the_file_name(name in "\\PC{0,20}|[a-zA-Z./%\\x00-\\x20]{0,40}") {
            let file = file_name(&name).unwrap();
            let (mut bytes, mut decoded) = (file.strip_suffix(SUFFIX).unwrap().bytes(), Vec::new());
            while let Some(byte) = bytes.next() {
                decoded.push(match byte {
                    b'%' => {
                        let digits = [bytes.next().unwrap(), bytes.next().unwrap()];
                        u8::from_str_radix(str::from_utf8(&digits).unwrap(), 16).unwrap()
                    }
                    byte => byte,
                });
            }
            prop_assert_eq!(decoded, name.as_bytes());
            prop_assert!(!file.contains('/') && !file.contains('\0'));
        }
    }
}
