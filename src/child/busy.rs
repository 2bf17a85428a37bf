//! Which incarnations have a closure that occupies a thread.
//!
//! Known only while a [`BusyWatch`] exists: without one, a closure costs one load more.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Weak};

use super::clock_hold::ClockHold;
use super::incarnation::Incarnation;
use crate::sync::Mutex;

/// How many [`BusyWatch`]es exist.
static WATCHES: AtomicUsize = AtomicUsize::new(0);

/// The closures that have begun while they were watched.
static CLOSURES: LazyLock<Mutex<Vec<Weak<BusyClosure>>>> = LazyLock::new(Mutex::default);

/// A closure that has begun, and has not returned as long as this exists.
pub(crate) struct BusyClosure {
    pub(crate) incarnation: Arc<Incarnation>,
    /// How a closure on a thread of its own keeps the paused clock. tokio itself keeps it for its own pool.
    hold: Option<ClockHold>,
}

impl BusyClosure {
    /// Notes a closure that begins, if that is watched.
    pub(super) fn new(
        incarnation: &Arc<Incarnation>,
        hold: Option<&ClockHold>,
    ) -> Option<Arc<Self>> {
        (WATCHES.load(Ordering::Relaxed) > 0).then(|| Self::watched(incarnation, hold))
    }

    #[cold]
    fn watched(incarnation: &Arc<Incarnation>, hold: Option<&ClockHold>) -> Arc<Self> {
        let closure = Arc::new(Self { incarnation: Arc::clone(incarnation), hold: hold.cloned() });
        let mut closures = CLOSURES.lock();
        closures.retain(|closure| closure.strong_count() > 0);
        closures.push(Arc::downgrade(&closure));
        closure
    }
}

/// While it exists, it is known which closures occupy a thread.
#[derive(Debug)]
pub(crate) struct BusyWatch(());

impl BusyWatch {
    pub(crate) fn new() -> Self {
        WATCHES.fetch_add(1, Ordering::Relaxed);
        Self(())
    }

    /// Returns the closures that keep a paused clock from advancing, the one that began first first.
    pub(crate) fn closures(&self) -> Vec<Arc<BusyClosure>> {
        let closures: Vec<_> = CLOSURES.lock().iter().filter_map(Weak::upgrade).collect();
        let keeps_clock =
            |closure: &Arc<BusyClosure>| closure.hold.as_ref().is_none_or(ClockHold::is_held);
        closures.into_iter().filter(keeps_clock).collect()
    }
}

impl Drop for BusyWatch {
    fn drop(&mut self) {
        WATCHES.fetch_sub(1, Ordering::Relaxed);
    }
}
