//! The lock under everything that is shared, and the one place that exchanges it for loom's.
//!
//! A lock here is held for a few instructions and never while foreign code runs, so that a poisoned
//! one can only mean a bug of ours; the value in it is still whole, and is used.

#[cfg(loom)]
use loom::sync as imp;
#[cfg(not(loom))]
use std::sync as imp;
use std::sync::PoisonError;

#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(imp::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(imp::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> imp::MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
