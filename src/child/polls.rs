//! Which child is being polled on which thread.
//!
//! Known only while a [`PollWatch`] exists: without one, a poll costs one load more. Each thread has a slot
//! with the incarnation that it polls, and since when.
//!
//! # Invariants
//!
//! 1. Without a [`PollWatch`], no thread writes to its slot, takes a lock or reads the clock for it.
//! 2. When a poll returns or panics, the slot is what it was before.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Weak};
use std::time::Instant;

use super::incarnation::Incarnation;
use crate::clock;
use crate::path::Path;
use crate::sync::Mutex;

/// How many [`PollWatch`]es exist.
static WATCHES: AtomicUsize = AtomicUsize::new(0);

/// The slots of all threads that have polled a child while they were watched.
static SLOTS: LazyLock<Mutex<Vec<Weak<Slot>>>> = LazyLock::new(Mutex::default);

thread_local! {
    static SLOT: Arc<Slot> = {
        let slot = Arc::new(Slot::default());
        let mut slots = SLOTS.lock();
        slots.retain(|slot| slot.strong_count() > 0);
        slots.push(Arc::downgrade(&slot));
        slot
    };
}

type Slot = Mutex<Option<(Arc<Incarnation>, Instant)>>;

/// Calls `poll`, which polls this incarnation.
pub(super) fn watched<T>(incarnation: &Arc<Incarnation>, poll: impl FnOnce() -> T) -> T {
    if WATCHES.load(Ordering::Relaxed) == 0 {
        return poll();
    }
    let _polled = Polled::new(incarnation);
    poll()
}

/// Restores the thread's slot when it is dropped.
struct Polled {
    slot: Option<Arc<Slot>>,
    before: Option<(Arc<Incarnation>, Instant)>,
}

impl Polled {
    #[cold]
    fn new(incarnation: &Arc<Incarnation>) -> Self {
        // A thread that ends has no slot any more.
        let slot = SLOT.try_with(Arc::clone).ok();
        let polled = (Arc::clone(incarnation), clock::real());
        let before = slot.as_ref().and_then(|slot| slot.lock().replace(polled));
        Self { slot, before }
    }
}

impl Drop for Polled {
    fn drop(&mut self) {
        if let Some(slot) = &self.slot {
            let polled = std::mem::replace(&mut *slot.lock(), self.before.take());
            // Outside of the lock: it may be the last one.
            drop(polled);
        }
    }
}

/// While it exists, it is known which children are being polled.
pub(crate) struct PollWatch(());

/// A poll that has not returned.
#[derive(Debug)]
pub(crate) struct RunningPoll {
    pub(crate) child: Path,
    pub(crate) since: Instant,
}

impl PollWatch {
    pub(crate) fn new() -> Self {
        WATCHES.fetch_add(1, Ordering::Relaxed);
        Self(())
    }

    /// Returns the polls of all threads, the longest first. A poll that began before the watch is not known.
    pub(crate) fn running(&self) -> Vec<RunningPoll> {
        let slots: Vec<_> = SLOTS.lock().iter().filter_map(Weak::upgrade).collect();
        let polls = slots.iter().filter_map(|slot| slot.lock().clone());
        let mut polls: Vec<_> = polls
            .map(|(incarnation, since)| RunningPoll { child: incarnation.path(), since })
            .collect();
        polls.sort_by_key(|poll| poll.since);
        polls
    }
}

impl Drop for PollWatch {
    fn drop(&mut self) {
        WATCHES.fetch_sub(1, Ordering::Relaxed);
    }
}
