//! The handlers of a tree, found by channel and type.
//!
//! # Invariants
//!
//! 1. A topic without handlers isn't kept.
//! 2. No guard into the map leaves this file, and no value of a user's is dropped while one is held: what is
//!    removed is returned, and dropped by the caller.

use std::any::{Any, TypeId};
use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use dashmap::DashMap;

use crate::runtime::SupervisorShared;

/// What all users of the bus of a tree share.
#[derive(Default)]
pub(crate) struct BusShared {
    topics: DashMap<TopicKey, Box<dyn Topic>, BuildHasherDefault<KeyHash>>,
    next: AtomicU64,
    /// How often a handler of dead letters has failed.
    pub(super) failed_letter_handlers: AtomicU64,
}

/// Identifies a handler in its tree. Handlers that were registered later have higher numbers.
pub(super) type HandlerId = u64;

/// The handlers of one type on one channel.
pub(super) trait Topic: Any + Send + Sync {
    /// Removes a handler. Returns what is to be dropped once no lock is held.
    fn remove(&mut self, id: HandlerId) -> Box<dyn Any + Send>;

    fn is_empty(&self) -> bool;
}

impl BusShared {
    /// Returns the bus of this supervisor's tree.
    pub(super) fn of(supervisor: &SupervisorShared) -> Arc<Self> {
        Arc::clone(supervisor.tree.bus.get_or_init(Arc::default))
    }

    pub(super) fn next_id(&self) -> HandlerId {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Calls `f` with the topic of type `T`, which is created if there is none. `f` must add a handler to an empty
    /// topic.
    pub(super) fn add<T: Topic + Default, R>(
        &self,
        key: &TopicKey,
        f: impl FnOnce(&mut T) -> R,
    ) -> R {
        let mut topic =
            self.topics.entry(key.clone()).or_insert_with(|| Box::new(T::default()) as _);
        let topic: &mut dyn Any = &mut **topic;
        f(topic.downcast_mut().expect("the key names the type"))
    }

    /// Calls `f` with the topic of type `T`, if it has handlers.
    pub(super) fn read<T: Topic, R>(&self, key: &TopicKey, f: impl FnOnce(&T) -> R) -> Option<R> {
        let topic = self.topics.get(key)?;
        let topic: &dyn Any = &**topic;
        topic.downcast_ref().map(f)
    }

    /// Calls `f` with the topic of type `T`, if it has handlers. `f` must not remove one.
    pub(super) fn change<T: Topic, R>(
        &self,
        key: &TopicKey,
        f: impl FnOnce(&mut T) -> R,
    ) -> Option<R> {
        let mut topic = self.topics.get_mut(key)?;
        let topic: &mut dyn Any = &mut **topic;
        topic.downcast_mut().map(f)
    }

    /// Removes a handler, if it is still there.
    pub(super) fn remove(&self, key: &TopicKey, id: HandlerId) {
        let mut removed = None;
        let topic = self.topics.remove_if_mut(key, |_, topic| {
            removed = Some(topic.remove(id));
            topic.is_empty()
        });
        drop((removed, topic));
    }
}

impl fmt::Debug for BusShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BusShared").field("topics", &self.topics.len()).finish_non_exhaustive()
    }
}

/// The channel of dead letters. It is reserved: [`Bus::on_dead_letter`](crate::bus::Bus::on_dead_letter) subscribes
/// to it, and no child can publish to it.
pub const DEAD_LETTER_CHANNEL: &str = "__dead_letter__";

/// The name of a channel. The default channel has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct EventChannel {
    name: Option<Arc<str>>,
    /// 0 for the default channel.
    hash: u64,
}

impl EventChannel {
    pub(super) fn named(name: &str) -> Self {
        static STATE: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        Self { name: Some(name.into()), hash: STATE.hash_one(name) }
    }

    pub(super) fn name(&self) -> Option<&Arc<str>> {
        self.name.as_ref()
    }
}

/// The type of a [`Topic`] and its channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TopicKey {
    topic: TypeId,
    channel: EventChannel,
}

impl TopicKey {
    pub(super) fn new<T: Topic>(channel: &EventChannel) -> Self {
        Self { topic: TypeId::of::<T>(), channel: channel.clone() }
    }
}

impl Hash for TopicKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.topic.hash(state);
        state.write_u64(self.channel.hash);
    }
}

/// The hash of a key: those of its parts are random already.
#[derive(Default)]
struct KeyHash(u64);

impl Hasher for KeyHash {
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut number = [0; 8];
            number[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_ne_bytes(number));
        }
    }

    fn write_u64(&mut self, part: u64) {
        self.0 ^= part;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
