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

use super::watch::shutdown;
use crate::child::Context;
use crate::exit::ExitError;
use crate::handle::supervisor_of;
use crate::panic::CatchWakerPanic;

impl Context {
    /// Waits until the lock with this name is free, and takes it.
    ///
    /// Use it for work that only one child of the tree may do at a time. The lock is released when the returned
    /// value is dropped, also if its child panics or is aborted. Children that wait get it in the order of their
    /// calls. A child that is cancelled while it waits is skipped. A child that holds the lock and calls this
    /// again waits for itself.
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
        let guard = self.run_until_cancelled(taken).await.ok_or_else(shutdown)?;
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
        // Before the lock itself may be forgotten.
        self.guard = None;
    }
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Locks(DashMap<Arc<str>, Weak<Mutex<()>>>);

impl Locks {
    /// Returns the lock with this name.
    fn get(self: &Arc<Self>, name: &str) -> NamedLock {
        let name: Arc<str> = name.into();
        let mut entry = self.0.entry(Arc::clone(&name)).or_default();
        let mutex = entry.upgrade().unwrap_or_default();
        *entry = Arc::downgrade(&mutex);
        drop(entry);
        NamedLock { locks: Arc::clone(self), name, mutex: Some(mutex) }
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
    mutex: Option<Arc<Mutex<()>>>,
}

impl NamedLock {
    fn mutex(&self) -> &Arc<Mutex<()>> {
        self.mutex.as_ref().expect("only `drop` takes it")
    }
}

impl Drop for NamedLock {
    fn drop(&mut self) {
        self.mutex = None;
        self.locks.0.remove_if(&self.name, |_, mutex| mutex.strong_count() == 0);
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
