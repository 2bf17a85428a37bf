//! Errors of files, with what to do about them.

use std::io;
use std::path::Path;

use rustix::io::Errno;

use crate::lease::LeaseError;

pub(super) fn open(path: &Path, error: io::Error) -> LeaseError {
    let directory = path.parent().unwrap_or(path).display();
    match Errno::from_io_error(&error) {
        Some(Errno::NOENT) => {
            LeaseError::new(format!("the directory `{directory}` of the leases doesn't exist"))
                .with_hint("create it before the program starts")
        }
        Some(Errno::NOTDIR) => LeaseError::new(format!("`{directory}` isn't a directory"))
            .with_hint("give `lease::File` the directory of the files"),
        Some(Errno::LOOP) => LeaseError::new(format!("`{}` is a symbolic link", path.display()))
            .with_hint("delete it; only the directory may be reached through links"),
        _ => return failed("can't be opened", path, error),
    }
    .with_source(error)
}

pub(super) fn lock(path: &Path, error: Errno) -> LeaseError {
    let is_unsupported = [Errno::OPNOTSUPP, Errno::NOSYS, Errno::NOLCK, Errno::INVAL];
    if !is_unsupported.contains(&error) {
        return failed("can't be locked", path, error.into());
    }
    LeaseError::new(format!("the file system of `{}` has no locks", path.display()))
        .with_hint("use a directory on a local file system")
        .with_source(io::Error::from(error))
}

pub(super) fn replaced(path: &Path) -> LeaseError {
    let problem = format!("`{}` is deleted, replaced or looked at all the time", path.display());
    LeaseError::new(problem).with_hint("find what else uses this directory")
}

pub(super) fn damaged(path: &Path) -> LeaseError {
    let problem = format!("`{}` is damaged, or isn't the file of a lease", path.display());
    LeaseError::new(problem).with_hint(
        "stop all processes that use it, and delete it; tokens then begin with 1 again, so also reset the \
         highest token in each resource that compares them",
    )
}

pub(super) fn damaged_memo(path: &Path) -> LeaseError {
    let problem = format!("`{}` is damaged, or isn't the file of a memo", path.display());
    LeaseError::new(problem)
        .with_hint("delete it, so that the next holder of the lease finds no memo")
}

pub(super) fn failed(what: &str, path: &Path, error: io::Error) -> LeaseError {
    let problem = LeaseError::new(format!("`{}` {what} ({error})", path.display()));
    match Errno::from_io_error(&error) {
        Some(Errno::ACCESS | Errno::PERM) => problem
            .with_hint("let the user of this process read and write the directory and its files"),
        Some(Errno::ROFS) => problem.with_hint("use a directory that can be written"),
        Some(Errno::NOSPC | Errno::DQUOT) => problem.with_hint("free some space"),
        _ => problem,
    }
    .with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(error: LeaseError) -> String {
        assert!(std::error::Error::source(&error).is_some());
        error.to_string()
    }

    #[test]
    fn each_error_says_where_and_what_to_do() {
        let path = Path::new("/var/lib/app/billing.lease");
        let os = |error: Errno| io::Error::from(error);
        assert_eq!(
            text(open(path, os(Errno::NOENT))),
            "the directory `/var/lib/app` of the leases doesn't exist: create it before the program starts"
        );
        assert_eq!(
            text(open(path, os(Errno::ACCESS))),
            "`/var/lib/app/billing.lease` can't be opened (Permission denied (os error 13)): let the user of this \
             process read and write the directory and its files"
        );
        assert_eq!(
            text(lock(path, Errno::NOLCK)),
            "the file system of `/var/lib/app/billing.lease` has no locks: use a directory on a local file system"
        );
        assert_eq!(
            text(failed("can't be written", path, os(Errno::NOSPC))),
            "`/var/lib/app/billing.lease` can't be written (No space left on device (os error 28)): free some space"
        );
        assert_eq!(
            text(failed("can't be read", path, os(Errno::IO))),
            "`/var/lib/app/billing.lease` can't be read (Input/output error (os error 5))"
        );
    }
}
