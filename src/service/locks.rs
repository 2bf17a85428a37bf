//! The locks by name that the children of one tree share.
//!
//! # Invariants
//!
//! 1. All holders and waiters of one name share one lock.
//! 2. A name without holders and waiters takes no memory.

use std::sync::{Arc, Weak};

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use tokio::sync::Mutex;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Locks(DashMap<Arc<str>, Weak<Mutex<()>>>);

impl Locks {
    /// Returns the lock with this name.
    pub(super) fn get(self: &Arc<Self>, name: &str) -> NamedLock {
        let name: Arc<str> = name.into();
        let mutex = match self.0.entry(Arc::clone(&name)) {
            Entry::Occupied(mut entry) => match entry.get().upgrade() {
                Some(mutex) => mutex,
                None => {
                    let mutex = Arc::default();
                    entry.insert(Arc::downgrade(&mutex));
                    mutex
                }
            },
            Entry::Vacant(entry) => {
                let mutex = Arc::default();
                entry.insert(Arc::downgrade(&mutex));
                mutex
            }
        };
        NamedLock { locks: Arc::clone(self), name, mutex: Some(mutex) }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// A holder or a waiter of a lock.
#[derive(Debug)]
pub(super) struct NamedLock {
    locks: Arc<Locks>,
    pub(super) name: Arc<str>,
    /// `None` while it is dropped.
    mutex: Option<Arc<Mutex<()>>>,
}

impl NamedLock {
    pub(super) fn mutex(&self) -> &Arc<Mutex<()>> {
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
