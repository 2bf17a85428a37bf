//! Locks by name, which the children of a tree share.
//!
//! # Invariants
//!
//! 1. All holders and waiters of one name share one lock.
//! 2. A name without holders and waiters takes no memory.

use std::fmt;
use std::sync::{Arc, Weak};

use dashmap::DashMap;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tracing::field;

use super::watch::shutdown;
use crate::child::Context;
use crate::child::awaiting::reported;
use crate::exit::ExitError;
use crate::handle::supervisor_of;
use crate::invisible::Visible;
use crate::panic::CatchWakerPanic;
use crate::path::Path;
use crate::subscriber::warn;
use crate::sync;

impl Context {
    /// Waits until the lock with this name is free, and takes it.
    ///
    /// Use it for work that only one child of the tree may do at a time. The lock is released when the returned
    /// value is dropped, also if its child panics or is aborted. Children that wait get it in the order of their
    /// calls. A child that is cancelled while it waits is skipped. A child that holds the lock and calls this
    /// again waits for itself.
    ///
    /// The status of a child that waits shows the lock. A wait of 10 s is logged, with the child that holds the lock, and
    /// then every 30 s.
    ///
    /// The lock is local to this tree and process.
    ///
    /// ```
    /// # use verger::{Context, Exit};
    /// async fn job(ctx: Context) -> Exit {
    ///     let _one_at_a_time = ctx.lock("reindex").await?;
    ///     // Work.
    ///     Ok(())
    /// }
    /// # drop(job);
    /// ```
    ///
    /// # Errors
    ///
    /// A shutdown, if the child is cancelled. Return it with `?`.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe. A call that is made again waits behind all others.
    pub async fn lock(&self, name: &str) -> Result<Lock, ExitError> {
        let waiting = supervisor_of(self).tree.service.locks.get(name);
        let taken = CatchWakerPanic::new(Box::pin(Arc::clone(waiting.mutex()).lock_owned()));
        let taken = self.run_until_cancelled(taken);
        let what = || format!("the lock `{}`", Visible(name));
        let log = |waited| {
            let (child, lock, holder) = (self.path(), name, waiting.holder().map(field::display));
            warn!(target: "verger::lifecycle", %child, lock, holder, ?waited, "waiting for a lock");
        };
        let taken = reported(Some(&self.incarnation), what, log, taken).await;
        let guard = taken.ok_or_else(shutdown)?;
        waiting.set_holder(Some(self.path()));
        Ok(Lock { guard: Some(guard), lock: waiting })
    }
}

/// A lock that a child has taken; see [`Context::lock`]. Dropping it releases the lock.
///
/// The example of [`Context::lock`] holds one.
#[must_use = "the lock is released when this is dropped"]
pub struct Lock {
    guard: Option<OwnedMutexGuard<()>>,
    lock: NamedLock,
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock").field("name", &self.lock.name).finish_non_exhaustive()
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.lock.set_holder(None);
        // Before the lock itself may be forgotten.
        self.guard = None;
    }
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Locks(DashMap<Arc<str>, Weak<OneLock>>);

/// A lock, and the child that has it.
#[derive(Debug, Default)]
struct OneLock {
    mutex: Arc<Mutex<()>>,
    holder: sync::Mutex<Option<Path>>,
}

impl Locks {
    /// Returns the lock with this name.
    fn get(self: &Arc<Self>, name: &str) -> NamedLock {
        let name: Arc<str> = name.into();
        let mut entry = self.0.entry(Arc::clone(&name)).or_default();
        let lock = entry.upgrade().unwrap_or_default();
        *entry = Arc::downgrade(&lock);
        drop(entry);
        NamedLock { locks: Arc::clone(self), name, lock: Some(lock) }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.0.len()
    }
}

/// A holder or a waiter of a lock.
struct NamedLock {
    locks: Arc<Locks>,
    name: Arc<str>,
    /// `None` while it is dropped.
    lock: Option<Arc<OneLock>>,
}

impl NamedLock {
    fn lock(&self) -> &OneLock {
        self.lock.as_ref().expect("only `drop` takes it")
    }

    fn mutex(&self) -> &Arc<Mutex<()>> {
        &self.lock().mutex
    }

    fn holder(&self) -> Option<Path> {
        self.lock().holder.lock().clone()
    }

    fn set_holder(&self, holder: Option<Path>) {
        *self.lock().holder.lock() = holder;
    }
}

impl Drop for NamedLock {
    fn drop(&mut self) {
        self.lock = None;
        self.locks.0.remove_if(&self.name, |_, lock| lock.strong_count() == 0);
    }
}

#[cfg(all(test, not(verger_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_forgotten_with_its_last_holder() {
        let locks = Arc::new(Locks::default());
        let (first, second) = (locks.get("a"), locks.get("a"));
        assert!(Arc::ptr_eq(first.mutex(), second.mutex()));
        let guard = first.mutex().try_lock().unwrap();
        assert!(second.mutex().try_lock().is_err() && locks.get("b").mutex().try_lock().is_ok());
        drop(guard);
        drop(first);
        assert_eq!(locks.len(), 1);
        drop(second);
        assert_eq!(locks.len(), 0);
    }
}
