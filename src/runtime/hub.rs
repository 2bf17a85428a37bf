//! What a running supervisor shares with its children, its handles and the supervisors above.
//!
//! The hub carries; it decides nothing. While nobody in the tree listens to events none is put
//! together.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime};

use foldhash::HashMap;
use tokio::runtime::{Handle, RuntimeFlavor};

use super::blueprint::Blueprint;
use super::channel::Channel;
use super::dead_letters::DeadLetters;
use super::end::End;
use super::inbox::Inbox;
use super::line::Line;
use super::orphaned_mailboxes::OrphanedMailboxes;
use super::phase::Progress;
use super::request::Request;
use super::subscription::Subscription;
use super::turns::BoxedDriver;
use crate::child::{NextRun, Parent, Run};
use crate::contain::contained;
use crate::core::{self, Incarnation, Key};
use crate::exit::ExitReason;
use crate::failure::FailureCallback;
use crate::name::Name;
use crate::path::Path;
use crate::registry::{Located, PlaceHash, Registry};
use crate::status::{Event, EventKind};
use crate::sync::Mutex;

/// What all supervisors of a tree share.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) registry: Registry<Hub>,
    /// Who was aborted and is still there, each with the number of the leak.
    leaked: Mutex<HashMap<Leak, (usize, Path)>>,
    leaks: AtomicUsize,
    /// The number of the last event.
    seq: AtomicU64,
    listeners: Arc<AtomicUsize>,
    began: (Instant, SystemTime),
    /// The runtime, if others than a supervisor's task may take its turns there; see `turns`.
    pub(super) visited: Option<Handle>,
}

impl Tree {
    pub(crate) fn new(now: Instant, wall: SystemTime) -> Self {
        Self {
            registry: Registry::new(),
            leaked: Mutex::default(),
            leaks: AtomicUsize::new(0),
            seq: AtomicU64::new(0),
            listeners: Arc::default(),
            began: (now, wall),
            visited: Handle::try_current().ok().filter(takes_visitors),
        }
    }

    /// The wall clock at `at`, as it goes if nobody sets it.
    pub(crate) fn wall(&self, at: Instant) -> SystemTime {
        self.began.1 + at.saturating_duration_since(self.began.0)
    }

    pub(crate) fn has_listeners(&self) -> bool {
        // Relaxed: who subscribes takes a snapshot through the supervisors' inboxes afterwards,
        // and that orders him after what he has missed.
        self.listeners.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn seq(&self) -> u64 {
        self.seq.load(Ordering::Relaxed)
    }
}

/// A thread that is alone wakes nobody for what it hands to another task, so there is little to be
/// won. And who comes first is certain there: a child that was started has run before its caller goes
/// on, and of children that fail together all are heard before the first runs again. Tests have a
/// right to that, and some are run once more without it: `--cfg verger_in_person`.
fn takes_visitors(runtime: &Handle) -> bool {
    cfg!(verger_in_person) || runtime.runtime_flavor() != RuntimeFlavor::CurrentThread
}

/// An incarnation that was aborted and is still there.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Leak {
    /// Where its hub is, which no other can be as long as the incarnation keeps it.
    hub: usize,
    key: Key,
    incarnation: Incarnation,
}

/// See the [module](self).
///
/// In this order, because what a lookup by path touches is then on one line of the cache with the
/// counter of those who keep the hub, which it touches as well.
#[repr(C)]
pub(crate) struct Hub {
    /// Its own part of its path.
    name: Name,
    pub(super) above: Option<Arc<Hub>>,
    place_hash: PlaceHash,
    /// Put together when somebody wants to read it: as text, the paths of a chain of supervisors
    /// would take memory, and time to make, that grows with the square of its length.
    path: OnceLock<Path>,
    pub(crate) tree: Arc<Tree>,
    pub(crate) inbox: Inbox<Request, BoxedDriver>,
    pub(crate) progress: Progress,
    pub(crate) blueprint: Arc<Blueprint>,
    pub(crate) began: Instant,
    /// Who decides on failures here: the supervisor's own callback, or the nearest one above.
    pub(super) callback: Option<FailureCallback>,
    events: Channel<Event>,
    pub(crate) dead_letters: Arc<DeadLetters>,
    pub(super) orphaned_mailboxes: OrphanedMailboxes,
    pub(super) line: Line,
}

impl Hub {
    pub(crate) fn new(
        name: Arc<str>,
        above: Option<Arc<Hub>>,
        tree: Arc<Tree>,
        blueprint: Arc<Blueprint>,
        began: Instant,
    ) -> Arc<Self> {
        let own = blueprint.on_child_failure.as_ref();
        let above_letters = above.as_ref().map(|above| Arc::clone(&above.dead_letters));
        let dead_letters = DeadLetters::new(&blueprint.dead_letters, above_letters);
        let callback = own.or(above.as_ref().and_then(|above| above.callback.as_ref())).cloned();
        let above_it = above.as_ref().map_or(PlaceHash::TOP, |above| above.place_hash);
        Arc::new(Self {
            place_hash: above_it.join(name.as_bytes()),
            name: name.into(),
            path: OnceLock::new(),
            blueprint,
            callback,
            began,
            tree,
            inbox: Inbox::new(),
            progress: Progress::new(),
            above,
            events: Channel::default(),
            dead_letters,
            orphaned_mailboxes: OrphanedMailboxes::default(),
            line: Line::default(),
        })
    }

    /// Where the supervisor is.
    pub(crate) fn path(&self) -> &Path {
        self.path.get_or_init(|| {
            // A list and not a recursion, because a tree may be thousands of levels deep.
            let mut names: Vec<_> = self.upward().map(|hub| hub.name.as_str()).collect();
            names.reverse();
            Path::of(&names)
        })
    }

    pub(crate) fn subscribe_events(&self) -> Subscription<Event> {
        Subscription::new(self.events.subscribe(), Some(Arc::clone(&self.tree.listeners)))
    }

    /// Tells everybody who listens here or above, if anybody in the tree does.
    pub(crate) fn publish(
        &self,
        now: Instant,
        path: Path,
        incarnation: u32,
        kind: impl FnOnce() -> EventKind,
    ) {
        if self.tree.has_listeners() {
            self.tell(now, path, incarnation, kind());
        }
    }

    /// Apart from the check, so that there is one of it and not one for each kind of event.
    fn tell(&self, now: Instant, path: Path, incarnation: u32, kind: EventKind) {
        let seq = self.tree.seq.fetch_add(1, Ordering::Relaxed) + 1;
        let event = Event { seq, at: self.tree.wall(now), path, incarnation, kind };
        for hub in self.upward() {
            hub.events.send(&event);
        }
    }

    /// Takes the supervisor out of the tree: nobody can reach it any more, and who waits for
    /// something from it is told so.
    pub(super) fn close(self: &Arc<Self>, end: End) {
        self.tree.registry.remove(self);
        let mut left = self.inbox.close();
        while let Some(event) = left.next_event() {
            self.hear_late(event);
        }
        // Requests that are left are dropped, and that is their answer.
        contained(|| drop(left));
        self.events.close();
        self.dead_letters.close();
        self.progress.ended(end);
    }

    /// Tells that a child was aborted and is still there.
    pub(super) fn leaked(&self, now: Instant, path: Path, key: Key, incarnation: Incarnation) {
        super::trace::leaked(&path, incarnation);
        let leak = self.leak(key, incarnation);
        let number = self.tree.leaks.fetch_add(1, Ordering::Relaxed);
        self.tree.leaked.lock().insert(leak, (number, path.clone()));
        self.publish(now, path, incarnation, || EventKind::Leaked);
    }

    fn leak(&self, key: Key, incarnation: Incarnation) -> Leak {
        Leak { hub: std::ptr::from_ref(self).addr(), key, incarnation }
    }

    /// Hears what the supervisor could not, because it was gone: that a child has ended which it
    /// had to leave behind.
    pub(super) fn hear_late(&self, event: core::Event) {
        if let core::Event::Exited { key, incarnation, .. }
        | core::Event::Ignored { key, incarnation } = event
        {
            self.leak_ended(key, incarnation);
        }
        // Properties that go with it may panic, and others are still to be told.
        contained(|| drop(event));
    }

    pub(super) fn leak_ended(&self, key: Key, incarnation: Incarnation) {
        let leak = self.leak(key, incarnation);
        let Some((_, path)) = self.tree.leaked.lock().remove(&leak) else { return };
        super::trace::leak_ended(&path, incarnation);
        self.publish(crate::clock::now(), path, incarnation, || EventKind::LeakEnded);
    }

    /// The children below that were aborted and are still there.
    pub(crate) fn left_behind(&self) -> Vec<Path> {
        let mut left: Vec<_> = {
            let leaked = self.tree.leaked.lock();
            if leaked.is_empty() {
                return Vec::new();
            }
            let below = format!("{}/", self.path());
            let left = leaked.values().filter(|(_, path)| path.as_str().starts_with(&below));
            left.cloned().collect()
        };
        left.sort_unstable_by_key(|&(number, _)| number);
        left.into_iter().map(|(_, path)| path).collect()
    }

    /// Hears of something that has happened to a child.
    pub(super) fn hear(&self, event: core::Event) {
        let ended = run_of(&event);
        match self.inbox.event(event) {
            Ok(()) => self.ended_in_line(ended),
            Err(event) => self.hear_late(event),
        }
    }

    #[inline]
    pub(super) fn ended_in_line(&self, ended: Option<(Key, Incarnation)>) {
        if let Some(run) = ended {
            self.line.ended(run);
        }
    }

    pub(super) fn upward(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |hub| hub.above.as_deref())
    }
}

/// Whose end that is.
pub(super) fn run_of(event: &core::Event) -> Option<(Key, Incarnation)> {
    match *event {
        core::Event::Exited { key, incarnation, .. } => Some((key, incarnation)),
        _ => None,
    }
}

impl Located for Hub {
    fn above(&self) -> Option<&Self> {
        self.above.as_deref()
    }

    fn name(&self) -> &[u8] {
        self.name.as_bytes()
    }

    fn place_hash(&self) -> PlaceHash {
        self.place_hash
    }
}

impl Parent for Hub {
    fn path(&self) -> Path {
        self.path().clone()
    }

    fn tell(&self, event: core::Event) {
        self.hear(event);
    }

    fn tell_in_person(&self, event: core::Event, next: &mut Option<NextRun>) -> bool {
        self.hear_in_person(event, next)
    }

    fn deactivate_failed(&self, run: &Run, reason: ExitReason) {
        let path = run.path();
        tracing::warn!(
            target: "verger::lifecycle",
            child = %path,
            incarnation = run.incarnation(),
            cause = %reason,
            "deactivate failed"
        );
        let kind = || EventKind::DeactivateFailed { reason: Arc::new(reason) };
        self.publish(crate::clock::now(), path, run.incarnation(), kind);
    }

    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("path", self.path()).finish_non_exhaustive()
    }
}
