//! Dead letters that are kept, to be inspected and replayed.
//!
//! No lock is held while a message is sent again. Its entry is kept meanwhile, without the message.

mod entry;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

pub use self::entry::{DeadLetterCounts, DeadLetterEntry, EntryId, ReplayError};
use super::letter::{DeadLetter, Provenance, Redeliver};
use super::payload::Payload;
use crate::clock::now;
use crate::deferred_drop::drop_afterwards;
use crate::sync::Mutex;

/// Keeps dead letters, so that they can be counted, inspected and replayed.
///
/// A store is given to a supervisor with
/// [`dead_letter_store`](crate::SupervisorBuilder::dead_letter_store). It then receives every letter from
/// that supervisor and below, including [suppressed](crate::SupervisorBuilder::suppress_dead_letters)
/// ones. A store is cheap to clone, and all clones share its letters. Without a store, a message is
/// dropped with the last clone of its letter.
///
/// The store is a ring: when it is full, the oldest entry is removed. Entries that are too old are
/// removed whenever the store is used.
///
/// ```
/// use std::time::Duration;
/// use verger::dead_letter::{DeadLetterReason, DeadLetterStore};
/// use verger::{Context, Exit, Supervisor, worker};
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
/// [`replay`](Self::replay) sends the message of an entry again, to the mailbox that it was in, and
/// removes the entry. If the message becomes a dead letter again, it is the same entry with one more
/// [replay](DeadLetterEntry::replays). After three replays the entry is in quarantine and can't be
/// replayed again.
///
/// If two stores keep the same letter, its message can be replayed from one of them.
#[derive(Clone)]
pub struct DeadLetterStore {
    shared: Arc<StoreShared>,
}

struct StoreShared {
    /// The number of the store, which its entry ids contain.
    serial: u64,
    ring: Mutex<Ring>,
}

impl DeadLetterStore {
    const CAPACITY: usize = 1000;
    const RETENTION: Duration = Duration::from_secs(3600);
    const MAX_REPLAYS: u32 = 3;

    /// Creates a store that keeps at most `capacity` letters, each for an hour.
    ///
    /// The [`Default`] store keeps 1000.
    #[must_use]
    pub fn ring(capacity: usize) -> Self {
        static SERIAL: AtomicU64 = AtomicU64::new(0);

        let (retention, max_replays) = (Self::RETENTION, Self::MAX_REPLAYS);
        let ring = Mutex::new(Ring { capacity, retention, max_replays, ..Ring::default() });
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        Self { shared: Arc::new(StoreShared { serial, ring }) }
    }

    /// Creates a store that counts letters and keeps none.
    #[must_use]
    pub fn metrics_only() -> Self {
        Self::ring(0)
    }

    /// Sets how long a letter is kept. Default: 1 hour.
    ///
    /// With [`Duration::MAX`], letters are kept until the store is full.
    #[must_use]
    pub fn retention(self, retention: Duration) -> Self {
        self.with(|ring| ring.retention = retention);
        self
    }

    /// Sets how often a message may be replayed before it is in quarantine. Default: 3.
    #[must_use]
    pub fn max_replays(self, max: u32) -> Self {
        self.with(|ring| ring.max_replays = max);
        self
    }

    /// Returns all entries, the oldest first.
    ///
    /// The age of an entry counts from its last letter, so that a failed replay renews it.
    #[must_use]
    pub fn entries(&self) -> Vec<DeadLetterEntry> {
        self.with(|ring| {
            ring.expire(now());
            ring.numbers().filter_map(|number| self.entry_of(ring, number)).collect()
        })
    }

    /// Returns the entries for a path such as `app/ingest` and for all paths below it, the oldest first.
    #[must_use]
    pub fn under(&self, path: impl AsRef<str>) -> Vec<DeadLetterEntry> {
        let mut entries = self.entries();
        entries.retain(|entry| entry.letter.target.is_at_or_below(path.as_ref()));
        entries
    }

    /// Returns the entry with this [number](EntryId::number).
    #[must_use]
    pub fn entry(&self, number: u64) -> Option<DeadLetterEntry> {
        self.with(|ring| {
            ring.expire(now());
            self.entry_of(ring, number)
        })
    }

    /// Removes an entry from the store and returns it.
    pub fn remove(&self, id: EntryId) -> Option<DeadLetterEntry> {
        self.with(|ring| {
            ring.expire(now());
            let number = self.number(id)?;
            let entry = self.entry_of(ring, number)?;
            ring.remove(number);
            Some(entry)
        })
    }

    /// Returns how many letters the store has received.
    #[must_use]
    pub fn counts(&self) -> DeadLetterCounts {
        self.with(|ring| {
            ring.expire(now());
            ring.counts.clone()
        })
    }

    /// Sends the message of an entry again, to the end of the mailbox that it was in.
    ///
    /// # Errors
    ///
    /// Returns a [`ReplayError`] if there is no such entry, or if its message can't be sent. The entry is
    /// then kept, and no replay is counted.
    pub fn replay(&self, id: EntryId) -> Result<(), ReplayError> {
        self.send(id, None, now())
    }

    /// Sends the message of an entry to a different mailbox.
    pub(crate) fn replay_into(
        &self,
        id: EntryId,
        mailbox: Arc<dyn Redeliver>,
        now: Instant,
    ) -> Result<(), ReplayError> {
        self.send(id, Some(mailbox), now)
    }

    /// Sends the message of an entry to this mailbox, or to the one that it was in. If that fails, the message returns to
    /// its entry.
    fn send(
        &self,
        id: EntryId,
        mailbox: Option<Arc<dyn Redeliver>>,
        now: Instant,
    ) -> Result<(), ReplayError> {
        let (path, replays, message, payload, origin) = self.with(|ring| {
            ring.expire(now);
            let stored = self.number(id).and_then(|number| ring.get(number));
            let stored = stored.ok_or(ReplayError::UnknownEntry { id })?;
            let path = stored.letter.target.clone();
            let replays = stored.replays;
            if replays >= ring.max_replays {
                return Err(ReplayError::Quarantined { id, path, replays });
            }
            let payload = stored.letter.payload.clone();
            let message = payload.as_ref().and_then(|payload| payload.remove());
            let (Some(payload), Some(message)) = (payload, message) else {
                return Err(ReplayError::NoPayload { id, path });
            };
            Ok((path, replays, message, payload, stored.origin.clone()))
        })?;
        // The id that the message has in the mailbox, with this replay counted.
        let id = EntryId { replays: replays + 1, ..id };
        let Some(mailbox) = mailbox.or_else(|| origin?.upgrade()) else {
            payload.put_back(message);
            return Err(ReplayError::Unresolved { id, path });
        };
        if let Err((message, why)) = mailbox.redeliver(message, id, now) {
            payload.put_back(message);
            return Err(ReplayError::Refused { id, path, why });
        }
        self.with(|ring| ring.replayed(id.number, &payload));
        Ok(())
    }

    /// Adds a letter, or returns one to its entry after a replay.
    pub(crate) fn capture(&self, letter: &DeadLetter, from: &Provenance, now: Instant) {
        let replayed = from.entry.filter(|id| self.number(*id).is_some());
        self.with(|ring| {
            ring.expire(now);
            ring.counts.add(letter.reason);
            if ring.capacity == 0 {
                return;
            }
            let (number, replays) = match replayed {
                Some(id) => (id.number, id.replays),
                None => {
                    ring.last += 1;
                    (ring.last, 0)
                }
            };
            let (letter, origin) = (letter.clone(), from.origin.clone());
            ring.insert(number, StoredLetter { letter, origin, replays, since: now });
        });
    }

    /// Returns `true` if both are clones of the same store.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Returns the number of the entry, if it is one of this store.
    fn number(&self, id: EntryId) -> Option<u64> {
        (id.store == self.shared.serial).then_some(id.number)
    }

    fn entry_of(&self, ring: &Ring, number: u64) -> Option<DeadLetterEntry> {
        let stored = ring.get(number)?;
        let replays = stored.replays;
        Some(DeadLetterEntry {
            id: EntryId { store: self.shared.serial, number, replays },
            letter: stored.letter.clone(),
            replays,
            quarantined: replays >= ring.max_replays,
        })
    }

    fn with<R>(&self, f: impl FnOnce(&mut Ring) -> R) -> R {
        drop_afterwards(|| f(&mut self.shared.ring.lock()))
    }
}

/// Keeps 1000 letters.
impl Default for DeadLetterStore {
    fn default() -> Self {
        Self::ring(Self::CAPACITY)
    }
}

impl fmt::Debug for DeadLetterStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.with(|ring| ring.counts.total);
        f.debug_struct("DeadLetterStore").field("total", &total).finish_non_exhaustive()
    }
}

/// The letters of a store. When the ring is full, a new letter replaces the oldest one.
///
/// Every letter is counted, whether or not it is kept. An entry is in `entries` if and only if its age is in `ages`.
#[derive(Default)]
struct Ring {
    capacity: usize,
    retention: Duration,
    max_replays: u32,
    counts: DeadLetterCounts,
    /// The number of the last entry.
    last: u64,
    entries: HashMap<u64, StoredLetter>,
    /// When each entry last became a dead letter.
    ages: BTreeSet<(Instant, u64)>,
}

struct StoredLetter {
    letter: DeadLetter,
    /// The mailbox that the message was in.
    origin: Option<Weak<dyn Redeliver>>,
    replays: u32,
    since: Instant,
}

impl Ring {
    fn get(&self, number: u64) -> Option<&StoredLetter> {
        self.entries.get(&number)
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the numbers of all entries, the oldest first.
    fn numbers(&self) -> impl Iterator<Item = u64> {
        self.ages.iter().map(|&(_, number)| number)
    }

    /// Inserts an entry and removes the oldest ones that exceed the capacity.
    fn insert(&mut self, number: u64, stored: StoredLetter) {
        // A replayed message may come back before the replay has removed its old entry.
        self.remove(number);
        self.ages.insert((stored.since, number));
        self.entries.insert(number, stored);
        while self.entries.len() > self.capacity {
            self.forget_oldest();
        }
    }

    fn remove(&mut self, number: u64) {
        if let Some(stored) = self.entries.remove(&number) {
            self.ages.remove(&(stored.since, number));
        }
    }

    /// Removes the entries that are older than the retention.
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

    /// Counts a replay, and removes its entry unless the message has become a dead letter again.
    fn replayed(&mut self, number: u64, payload: &Arc<Payload>) {
        self.counts.replayed += 1;
        let is_same = |stored: &StoredLetter| {
            stored.letter.payload.as_ref().is_some_and(|it| Arc::ptr_eq(it, payload))
        };
        if self.entries.get(&number).is_some_and(is_same) {
            self.remove(number);
        }
    }
}
