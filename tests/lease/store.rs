//! The store of the tests: a directory with locked files.

use std::fs;

use verger::lease::File;

use crate::register::file_writes;
use crate::shared::checker::faults::{Fault, Moment, outlive};
use crate::shared::checker::history::Write;
use crate::shared::checker::{LEASE, MEMBERS};
use crate::shared::folder::Folder;

/// Returns an engine of this store, for another process.
pub(crate) fn engine(store: &str) -> File {
    File::new(store)
}

/// What can go wrong with a file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StoreFault {
    /// The holder is paused, and meanwhile the file is replaced by a copy of it, which isn't locked.
    ReplaceFile,
}

/// The store of a check.
pub(crate) struct Store(Folder);

impl Store {
    /// The faults of a check.
    pub(crate) const FAULTS: &[Fault] = &[
        Fault::Stop,
        Fault::Kill,
        Fault::Pause,
        Fault::PauseAndKill,
        Fault::PauseStandby,
        Fault::KillStandby,
        Fault::OfStore(StoreFault::ReplaceFile),
    ];

    pub(crate) fn new() -> Self {
        Self(Folder::new())
    }

    pub(crate) fn name(&self) -> &'static str {
        "files"
    }

    /// Returns the way to the store of each member.
    pub(crate) fn addresses(&self) -> Vec<String> {
        vec![self.0.path().to_str().unwrap().to_owned(); MEMBERS]
    }

    /// Returns what the resource has accepted, in its order.
    pub(crate) async fn writes(&self) -> Vec<Write> {
        file_writes(&self.0.path().join("register"))
    }

    pub(crate) async fn apply(&mut self, fault: StoreFault, moment: Moment<'_>) {
        match fault {
            StoreFault::ReplaceFile => outlive(moment.crowd, self, moment.holder).await,
        }
    }

    /// Frees the lease of a holder that is paused. Replaces the file by a copy of it, as the restore of a backup does: the
    /// copy isn't locked.
    pub(crate) fn free_lease(&self) {
        let file = self.0.path().join(format!("{LEASE}.lease"));
        let copy = self.0.path().join("copy");
        fs::copy(&file, &copy).unwrap();
        fs::rename(&copy, &file).unwrap();
    }
}
