//! Which entries of a history are kept.
//!
//! It knows paths, kinds and times, and no meaning of an event.
//!
//! # Invariants
//!
//! 1. Entries are ordered by their last event. Two entries never have the same child and the same kind of event,
//!    unless there was a quiet time of [`QUIET`] between them, or they are lives in different times of [`LIVES_FOR`].
//! 2. An entry is in reserve, common, or a life. Each child that has a reserve has at most [`RESERVE`] entries in it, its last ones.
//!    There are at most [`CHILDREN`] reserves, `capacity` common entries, and [`LIVES`] lives.
//! 3. All entries together take at most [`BYTES`].
//! 4. An entry that is dropped, except a life, is older than what [`KeptEntries::dropped_before`] returns for its child, or as old.
//! 5. Adding an entry costs O(log n).

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use rustc_hash::FxHashMap;

use super::{EventLevel, Folded, LoggedEvent, declared_part};
use crate::path::Path;

/// After this time, an event of the same kind begins a new entry.
const QUIET: Duration = Duration::from_secs(600);
/// The entries of a child that the events of others don't push out.
const RESERVE: usize = 20;
/// The children that have a reserve.
const CHILDREN: usize = 2_000;
/// The time whose lives are one entry.
const LIVES_FOR: Duration = Duration::from_secs(10);
/// For how long lives are kept, and how many entries.
const LIVES_SHOWN: Duration = Duration::from_secs(300);
const LIVES: usize = 1_000;
/// The most bytes of all entries.
const BYTES: usize = 4 * 1024 * 1024;
/// What the indices take for one entry, about.
const INDEXED: usize = 300;

/// The number of an entry, which grows with each event.
type Place = u64;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct KeptEntries {
    capacity: usize,
    entries: BTreeMap<Place, (Folded, LoggedEvent)>,
    latest: FxHashMap<(Path, Folded), Place>,
    children: FxHashMap<Path, ChildEntries>,
    /// The children with a reserve by their last entry: first those that never failed.
    reserves: BTreeSet<(bool, Place, Path)>,
    common: BTreeSet<Place>,
    lives: BTreeSet<Place>,
    /// The children by their number of entries.
    by_count: BTreeSet<(usize, Path)>,
    bytes: usize,
    next: Place,
    /// When the latest entry was dropped of a child that isn't dynamic, or of the dynamic children of a supervisor.
    dropped: BTreeMap<Path, SystemTime>,
}

/// The entries of one child.
#[derive(Clone, Debug, Default)]
struct ChildEntries {
    reserve: BTreeSet<Place>,
    common: BTreeSet<Place>,
    /// Its place among the reserves, if it has one.
    rank: Option<(bool, Place)>,
    has_failed: bool,
}

impl ChildEntries {
    fn len(&self) -> usize {
        self.reserve.len() + self.common.len()
    }

    fn oldest(&self) -> Option<Place> {
        self.common.first().or(self.reserve.first()).copied()
    }
}

impl KeptEntries {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            entries: BTreeMap::new(),
            latest: FxHashMap::default(),
            children: FxHashMap::default(),
            reserves: BTreeSet::new(),
            common: BTreeSet::new(),
            lives: BTreeSet::new(),
            by_count: BTreeSet::new(),
            bytes: 0,
            next: 0,
            dropped: BTreeMap::new(),
        }
    }

    /// Adds an entry, or counts it with the one that it repeats.
    pub(super) fn add(&mut self, kind: Folded, mut entry: LoggedEvent) {
        let key = (entry.path.clone(), kind);
        let count = self.count(&key.0);
        if let Some(&place) = self.latest.get(&key)
            && let Some((kind, before)) = self.entries.get(&place)
            && repeats(kind, before, entry.last_at)
        {
            entry.count = before.count.saturating_add(1);
            entry.first_at = before.first_at;
            self.remove(place);
        }
        let (place, now) = (self.next, entry.last_at);
        self.next += 1;
        self.bytes += bytes(&key.1, &entry);
        match key.1 {
            Folded::Lives { .. } => _ = self.lives.insert(place),
            _ => self.assign(place, &entry),
        }
        self.entries.insert(place, (key.1.clone(), entry));
        let path = key.0.clone();
        self.latest.insert(key, place);
        self.recount(&path, count);
        self.shrink(now);
    }

    fn count(&self, path: &Path) -> usize {
        self.children.get(path).map_or(0, ChildEntries::len)
    }

    /// Finds a child by its number of entries, after it had `before`. Mostly an entry has replaced another one.
    fn recount(&mut self, path: &Path, before: usize) {
        let count = self.count(path);
        if count == before {
            return;
        }
        self.by_count.remove(&(before, path.clone()));
        if count > 0 {
            self.by_count.insert((count, path.clone()));
        }
    }

    /// Puts a new entry into the reserve of its child, whose oldest one there becomes common.
    fn assign(&mut self, place: Place, entry: &LoggedEvent) {
        let path = &entry.path;
        let child = self.children.entry(path.clone()).or_default();
        child.has_failed |= entry.level > EventLevel::Info;
        if declared_part(path).is_some() {
            child.common.insert(place);
            self.common.insert(place);
        } else {
            child.reserve.insert(place);
            if child.reserve.len() > RESERVE
                && let Some(oldest) = child.reserve.pop_first()
            {
                child.common.insert(oldest);
                self.common.insert(oldest);
            }
            if let Some((failed, last)) = child.rank.replace((child.has_failed, place)) {
                self.reserves.remove(&(failed, last, path.clone()));
            }
            self.reserves.insert((child.has_failed, place, path.clone()));
        }
    }

    fn shrink(&mut self, now: SystemTime) {
        if self.reserves.len() > CHILDREN
            && let Some((.., path)) = self.reserves.pop_first()
            && let Some(child) = self.children.get_mut(&path)
        {
            child.rank = None;
            self.common.extend(&child.reserve);
            child.common.append(&mut child.reserve);
        }
        while self.common.len() > self.capacity
            && let Some(&oldest) = self.common.first()
        {
            self.drop_entry(oldest);
        }
        while let Some(&oldest) = self.lives.first()
            && (self.lives.len() > LIVES || self.is_past(oldest, now))
        {
            self.remove(oldest);
        }
        while self.bytes > BYTES
            && let Some((_, path)) = self.by_count.last()
            && let Some(oldest) = self.children.get(path).and_then(ChildEntries::oldest)
        {
            self.drop_entry(oldest);
        }
    }

    fn is_past(&self, place: Place, now: SystemTime) -> bool {
        let last = self.entries.get(&place).map_or(now, |(_, entry)| entry.last_at);
        now.duration_since(last).is_ok_and(|age| age > LIVES_SHOWN)
    }

    /// Removes an entry for lack of room.
    fn drop_entry(&mut self, place: Place) {
        let Some((_, entry)) = self.entries.get(&place) else { return };
        let (path, count) = (entry.path.clone(), self.count(&entry.path));
        let Some(entry) = self.remove(place) else { return };
        self.recount(&path, count);
        let of = declared_part(&entry.path).unwrap_or(entry.path);
        let dropped = self.dropped.entry(of).or_insert(entry.last_at);
        *dropped = entry.last_at.max(*dropped);
        // The times of a few children become times of their supervisors.
        if self.dropped.len() > 2 * CHILDREN
            && let Some((path, at)) = self.dropped.pop_last()
        {
            let above = path.parent().unwrap_or(path);
            let dropped = self.dropped.entry(above).or_insert(at);
            *dropped = at.max(*dropped);
        }
    }

    fn remove(&mut self, place: Place) -> Option<LoggedEvent> {
        let (kind, entry) = self.entries.remove(&place)?;
        self.bytes -= bytes(&kind, &entry);
        let key = (entry.path.clone(), kind);
        if self.latest.get(&key) == Some(&place) {
            self.latest.remove(&key);
        }
        if self.lives.remove(&place) {
            return Some(entry);
        }
        self.common.remove(&place);
        let path = &entry.path;
        let Some(child) = self.children.get_mut(path) else { return Some(entry) };
        child.reserve.remove(&place);
        child.common.remove(&place);
        if child.len() == 0 {
            if let Some((failed, last)) = child.rank {
                self.reserves.remove(&(failed, last, path.clone()));
            }
            self.children.remove(path);
        }
        Some(entry)
    }

    /// Returns the time of the latest entry that was dropped of this child, or of one below.
    pub(super) fn dropped_before(&self, path: &Path) -> Option<SystemTime> {
        let below = self.dropped.iter().filter(|(of, _)| of.is_at_or_below(path.as_str()));
        let below = below.map(|(_, at)| *at).max();
        // Of a dynamic child, only its supervisor remembers it.
        let of = declared_part(path);
        let above = of.and_then(|of| self.dropped.get(&of).copied());
        below.max(above)
    }

    pub(super) fn entries(&self) -> impl DoubleEndedIterator<Item = &LoggedEvent> {
        self.entries.values().map(|(_, entry)| entry)
    }

    #[cfg(test)]
    pub(super) fn check(&self) {
        let of_children: usize = self.children.values().map(ChildEntries::len).sum();
        assert_eq!(of_children + self.lives.len(), self.entries.len());
        let reserved: usize = self.children.values().map(|it| it.reserve.len()).sum();
        assert_eq!(reserved + self.common.len(), of_children);
        assert_eq!(self.by_count.len(), self.children.len());
        assert!(self.latest.len() <= self.entries.len(), "nothing is kept of what is gone");
        let ranked = self.children.values().filter(|it| it.rank.is_some()).count();
        assert_eq!(ranked, self.reserves.len());
        let total: usize = self.entries.values().map(|(kind, entry)| bytes(kind, entry)).sum();
        assert_eq!(total, self.bytes);
        assert!(self.bytes <= BYTES && self.common.len() <= self.capacity);
        assert!(self.reserves.len() <= CHILDREN && self.lives.len() <= LIVES);
    }
}

/// Whether an event is counted in an entry.
fn repeats(kind: &Folded, before: &LoggedEvent, at: SystemTime) -> bool {
    let (since, most) = match kind {
        Folded::Lives { .. } => (before.first_at, LIVES_FOR),
        _ => (before.last_at, QUIET),
    };
    at.duration_since(since).map_or(true, |past| past <= most)
}

fn bytes(kind: &Folded, entry: &LoggedEvent) -> usize {
    let kept = match kind {
        Folded::Called { by, reason, .. } => by.len() + reason.as_ref().map_or(0, |it| it.len()),
        #[cfg(feature = "console")]
        Folded::Noted(text) => 2 * text.len(),
        _ => 0,
    };
    // The path is shared with the tree while the child is there.
    let texts = entry.text.len() + entry.path.as_str().len() + kept;
    size_of::<LoggedEvent>() + INDEXED + texts
}
