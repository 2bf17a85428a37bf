//! Letters that are kept, to be looked at and replayed.
//!
//! # Invariants
//!
//! 1. Every letter is counted, kept or not.
//! 2. An entry is in `entries` if and only if its age is in `ages`.
//! 3. While a message is being put into a queue, no lock is held; its entry stays, without it.

mod entry;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

pub use self::entry::{DeadLetterCounts, DeadLetterEntry, EntryId, ReplayError};

use super::owner::Redeliver;
use super::payload::{Payload, drop_afterwards};
use super::{DeadLetter, Provenance};
use crate::clock::now;
use crate::path::Path;
use crate::sync::Mutex;

/// Keeps dead letters, so that they can be counted, looked at, and replayed.
///
/// Cheap to clone; all clones are the same store. It is given to a supervisor, and then has every
/// letter from there and below, also those that are
/// [suppressed](crate::SupervisorBuilder::suppress_dead_letters), and lives on when that has ended.
/// By default there is no store, and a message whose letter nobody holds on to is gone.
///
/// It is a ring: the oldest entry makes room for a new one. What is too old is dropped whenever the
/// store is used.
///
/// ```
/// use std::time::Duration;
/// use verger::{Context, DeadLetterReason, DeadLetterStore, Exit, Supervisor, worker};
///
/// async fn broken(_: Context) -> Exit {
///     Err("out of order".into())
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = DeadLetterStore::ring(100).retention(Duration::from_secs(24 * 3600));
/// let app = Supervisor::builder("app")
///     .dead_letter_store(&store)
///     .child(Supervisor::builder("ingest").restarts(0, Duration::from_secs(1)).child(
///         worker("mqtt", broken),
///     ))
///     .build()?;
/// app.run().await.unwrap_err();
///
/// assert_eq!(store.counts().of(DeadLetterReason::GaveUp), store.counts().total);
/// assert_eq!(store.under("app/ingest/mqtt")[0].letter.target.name(), "mqtt");
/// # Ok(())
/// # }
/// ```
///
/// # Replay
///
/// [`replay`](Self::replay) sends the message of an entry again, to where it came from. With that
/// the entry is gone. If the message becomes a letter again, it is the same entry as before, with
/// one more [replay](DeadLetterEntry::replays); after three it is in quarantine, and only looked at.
///
/// A letter that two stores keep has its message only once: the store that replays it has it.
#[derive(Clone)]
pub struct DeadLetterStore {
    shared: Arc<Shared>,
}

struct Shared {
    /// No other store has had it.
    serial: u64,
    kept: Mutex<Kept>,
}

struct Kept {
    capacity: usize,
    retention: Duration,
    max_replays: u32,
    /// The number of the last entry.
    last: u64,
    entries: HashMap<u64, Item>,
    /// When each became a letter, the last time.
    ages: BTreeSet<(Instant, u64)>,
    counts: DeadLetterCounts,
}

struct Item {
    letter: DeadLetter,
    origin: Option<Weak<dyn Redeliver>>,
    replays: u32,
    since: Instant,
}

/// A message on its way out of the store.
struct Leaving {
    /// As the queue gets it, with this replay counted.
    id: EntryId,
    path: Path,
    message: Box<dyn Any + Send>,
    /// Where it goes back to if it is refused.
    payload: Arc<Payload>,
    origin: Option<Weak<dyn Redeliver>>,
}

impl DeadLetterStore {
    const CAPACITY: usize = 1000;
    const RETENTION: Duration = Duration::from_secs(3600);
    const MAX_REPLAYS: u32 = 3;

    /// A store of this many letters, each for an hour. [`Default`]: 1000.
    #[must_use]
    pub fn ring(capacity: usize) -> Self {
        static SERIAL: AtomicU64 = AtomicU64::new(0);

        let kept = Kept {
            capacity,
            retention: Self::RETENTION,
            max_replays: Self::MAX_REPLAYS,
            last: 0,
            entries: HashMap::new(),
            ages: BTreeSet::new(),
            counts: DeadLetterCounts::default(),
        };
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        Self { shared: Arc::new(Shared { serial, kept: Mutex::new(kept) }) }
    }

    /// Counts letters and keeps none, where messages must not be kept.
    #[must_use]
    pub fn metrics_only() -> Self {
        Self::ring(0)
    }

    /// How long a letter is kept. Default: 1 h. With [`Duration::MAX`], until it has to make room.
    #[must_use]
    pub fn retention(self, retention: Duration) -> Self {
        self.with(|kept| kept.retention = retention);
        self
    }

    /// How often a message may be replayed before it is in quarantine. Default: 3.
    #[must_use]
    pub fn max_replays(self, max: u32) -> Self {
        self.with(|kept| kept.max_replays = max);
        self
    }

    /// All letters that are kept, the oldest first. One that was replayed in vain is as old as its
    /// last return.
    #[must_use]
    pub fn entries(&self) -> Vec<DeadLetterEntry> {
        self.with(|kept| {
            kept.expire(now());
            let numbers = kept.ages.iter().map(|&(_, number)| number);
            numbers.filter_map(|number| self.entry_of(kept, number)).collect()
        })
    }

    /// Those for this path, as in `app/ingest`, and for all below it, the oldest first.
    #[must_use]
    pub fn under(&self, path: impl AsRef<str>) -> Vec<DeadLetterEntry> {
        let path = path.as_ref();
        let within = |target: &str| {
            let below = target.strip_prefix(path);
            below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
        };
        let mut entries = self.entries();
        entries.retain(|entry| within(entry.letter.target.as_str()));
        entries
    }

    /// The entry with this [number](EntryId::number), if it is kept.
    #[must_use]
    pub fn entry(&self, number: u64) -> Option<DeadLetterEntry> {
        self.with(|kept| {
            kept.expire(now());
            self.entry_of(kept, number)
        })
    }

    /// Takes an entry out of the store, for example after somebody has seen to it.
    pub fn remove(&self, id: EntryId) -> Option<DeadLetterEntry> {
        self.with(|kept| {
            kept.expire(now());
            let number = self.number(id)?;
            let entry = self.entry_of(kept, number)?;
            kept.remove(number);
            Some(entry)
        })
    }

    /// How many letters there were.
    #[must_use]
    pub fn counts(&self) -> DeadLetterCounts {
        self.with(|kept| {
            kept.expire(now());
            kept.counts.clone()
        })
    }

    /// Sends the message of an entry again, to the mailbox that it was for; whoever reads that now
    /// has it. It is put at the end of the queue.
    ///
    /// # Errors
    ///
    /// If there is no such entry, or its message can't be sent: see [`ReplayError`]. The entry stays
    /// as it was then, and no replay is counted.
    pub fn replay(&self, id: EntryId) -> Result<(), ReplayError> {
        let leaving = self.leave(id)?;
        let origin = leaving.origin.as_ref().and_then(Weak::upgrade);
        match origin {
            Some(queue) => self.put_into(leaving, queue),
            None => {
                let (id, path) = (leaving.id, leaving.path);
                leaving.payload.put_back(leaving.message);
                Err(ReplayError::Unresolved { id, path })
            }
        }
    }

    /// The same to another queue than the one it came from.
    pub(crate) fn replay_into(
        &self,
        id: EntryId,
        queue: Arc<dyn Redeliver>,
    ) -> Result<(), ReplayError> {
        let leaving = self.leave(id)?;
        self.put_into(leaving, queue)
    }

    /// Takes a letter, the first time or back from a replay.
    pub(crate) fn capture(&self, letter: &DeadLetter, from: &Provenance, now: Instant) {
        let back = from.entry.filter(|id| self.number(*id).is_some());
        self.with(|kept| {
            kept.expire(now);
            kept.counts.add(letter.reason);
            if kept.capacity == 0 {
                return;
            }
            let (number, replays) = match back {
                Some(id) => (id.number, id.replays),
                None => {
                    kept.last += 1;
                    (kept.last, 0)
                }
            };
            // If it comes back faster than whoever replays it notices that it has left.
            kept.remove(number);
            let (letter, origin) = (letter.clone(), from.origin.clone());
            kept.entries.insert(number, Item { letter, origin, replays, since: now });
            kept.ages.insert((now, number));
            while kept.entries.len() > kept.capacity {
                kept.forget_oldest();
            }
        });
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Takes the message out of its entry, if it may be replayed.
    fn leave(&self, id: EntryId) -> Result<Leaving, ReplayError> {
        self.with(|kept| {
            kept.expire(now());
            let entry = self.number(id).and_then(|number| kept.entries.get(&number));
            let entry = entry.ok_or(ReplayError::UnknownEntry { id })?;
            let path = entry.letter.target.clone();
            let replays = entry.replays;
            if replays >= kept.max_replays {
                return Err(ReplayError::Quarantined { id, path, replays });
            }
            let payload = entry.letter.payload.clone();
            let message = payload.as_ref().and_then(|payload| payload.remove());
            let (Some(payload), Some(message)) = (payload, message) else {
                return Err(ReplayError::NoPayload { id, path });
            };
            let id = EntryId { replays: replays + 1, ..id };
            Ok(Leaving { id, path, message, payload, origin: entry.origin.clone() })
        })
    }

    fn put_into(&self, leaving: Leaving, queue: Arc<dyn Redeliver>) -> Result<(), ReplayError> {
        let Leaving { id, path, message, payload, origin: _ } = leaving;
        match queue.redeliver(message, id) {
            Ok(()) => {
                self.with(|kept| kept.left(id.number, &payload));
                Ok(())
            }
            Err((message, why)) => {
                payload.put_back(message);
                Err(ReplayError::Refused { id, path, why })
            }
        }
    }

    /// Under which number the entry is here, if it is one of this store.
    fn number(&self, id: EntryId) -> Option<u64> {
        (id.store == self.shared.serial).then_some(id.number)
    }

    fn entry_of(&self, kept: &Kept, number: u64) -> Option<DeadLetterEntry> {
        let entry = kept.entries.get(&number)?;
        let replays = entry.replays;
        Some(DeadLetterEntry {
            id: EntryId { store: self.shared.serial, number, replays },
            letter: entry.letter.clone(),
            replays,
            quarantined: replays >= kept.max_replays,
        })
    }

    fn with<R>(&self, f: impl FnOnce(&mut Kept) -> R) -> R {
        drop_afterwards(|| f(&mut self.shared.kept.lock()))
    }
}

impl Kept {
    fn expire(&mut self, now: Instant) {
        while let Some(&(since, _)) = self.ages.first() {
            if now.saturating_duration_since(since) < self.retention {
                break;
            }
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((_, number)) = self.ages.pop_first() {
            self.entries.remove(&number);
            self.counts.forgotten += 1;
        }
    }

    fn remove(&mut self, number: u64) {
        if let Some(entry) = self.entries.remove(&number) {
            self.ages.remove(&(entry.since, number));
        }
    }

    /// The message of this entry was put into a queue. It may be back already, as another letter.
    fn left(&mut self, number: u64, payload: &Arc<Payload>) {
        self.counts.replayed += 1;
        let same =
            |entry: &Item| entry.letter.payload.as_ref().is_some_and(|it| Arc::ptr_eq(it, payload));
        if self.entries.get(&number).is_some_and(same) {
            self.remove(number);
        }
    }
}

/// A ring of 1000.
impl Default for DeadLetterStore {
    fn default() -> Self {
        Self::ring(Self::CAPACITY)
    }
}

impl fmt::Debug for DeadLetterStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.with(|kept| kept.counts.total);
        f.debug_struct("DeadLetterStore").field("total", &total).finish_non_exhaustive()
    }
}
