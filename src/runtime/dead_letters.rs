//! The dead letters of a supervisor: its own and those from all supervisors below.
//!
//! A letter is first captured by the stores, then sent to the subscribers, and then logged.

#[cfg(test)]
mod tests;

use std::any::TypeId;
use std::iter;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use super::blueprint::DeclaredNames;
use super::channel::Channel;
use super::tree::Counter;
use crate::dead_letter::{
    DeadLetter, DeadLetterOptions, DeadLetterStore, KeptMessages, Provenance, Undelivered, log,
};
use crate::deferred_drop::drop_afterwards;
use crate::path::Path;
use crate::policy::Throttle;
use crate::status::Subscription;
use crate::sync::Mutex;

/// See the [module](self).
pub(crate) struct DeadLetters {
    channel: Channel<DeadLetter>,
    above: Option<Arc<Self>>,
    /// How many letters there were in the tree.
    count: Arc<Counter>,
    /// The messages of the tree's letters that are in no store.
    kept: Arc<KeptMessages>,
    handling: Arc<LetterHandling>,
    /// Under which path letters are counted, and failed runs and all else that a recorder gets.
    #[cfg(feature = "metrics")]
    pub(crate) scope: crate::metrics::Scope,
}

/// How letters are handled: the options of a supervisor and of those above. Supervisors without options
/// share the value of the one above.
struct LetterHandling {
    /// The supervisor's own throttle, or the nearest one above, which then counts for both.
    throttle: Arc<Mutex<Throttle>>,
    /// The supervisor's own stores and those above, each once.
    stores: Vec<DeadLetterStore>,
    suppressed: Vec<TypeId>,
}

impl DeadLetters {
    pub(crate) fn new(
        options: &DeadLetterOptions,
        above: Option<Arc<Self>>,
        _path: &Path,
        _names: Option<&DeclaredNames>,
    ) -> Arc<Self> {
        let is_default =
            options.log.is_none() && options.stores.is_empty() && options.suppressed.is_empty();
        let handling = match above.as_ref().map(|above| &above.handling) {
            Some(above) if is_default => Arc::clone(above),
            above => Arc::new(LetterHandling::new(options, above.map(|above| &**above))),
        };
        let count = above.as_ref().map(|above| Arc::clone(&above.count)).unwrap_or_default();
        let kept = above.as_ref().map(|above| Arc::clone(&above.kept)).unwrap_or_default();
        Arc::new(Self {
            #[cfg(feature = "metrics")]
            scope: {
                let above = above.as_ref().map(|above| &above.scope);
                crate::metrics::Scope::new(_path, above, _names)
            },
            channel: Channel::default(),
            above,
            count,
            kept,
            handling,
        })
    }

    /// The children that the code declares are `names` from now on.
    pub(super) fn declare(&self, _names: Option<&DeclaredNames>) {
        #[cfg(feature = "metrics")]
        self.scope.declare(_names);
    }

    /// Returns how many letters there were in the tree so far.
    pub(crate) fn count(&self) -> u64 {
        self.count.get()
    }

    /// Subscribes to the letters from now on, except suppressed ones.
    pub(crate) fn subscribe(&self) -> Subscription<DeadLetter> {
        Subscription::new(self.channel.subscribe(), None).only(|letter| !letter.suppressed)
    }

    /// Publishes a message that could not be delivered. `at` is `now` as wall clock time.
    pub(crate) fn undelivered(&self, undelivered: Undelivered, now: Instant, at: SystemTime) {
        // A subscriber that forwards letters to a mailbox which is dead itself would loop forever.
        if undelivered.type_id == TypeId::of::<DeadLetter>() {
            log::dropped_letter(&undelivered);
            return;
        }
        let quiet = undelivered.quiet;
        let suppressed = self.handling.suppressed.contains(&undelivered.type_id);
        let (letter, from) = DeadLetter::about_message(undelivered, at, suppressed);
        self.publish(&letter, &from, now);
        if suppressed {
            return;
        }
        if quiet {
            log::quiet_letter(&letter);
            return;
        }
        let line = self.handling.throttle.lock().letter(now);
        if let Some(line) = line {
            log::letter(&letter, line);
        }
    }

    /// Publishes a letter about a child itself. It is not logged here, since the decision about the
    /// child is.
    pub(crate) fn child(&self, letter: &DeadLetter, now: Instant) {
        self.publish(letter, &Provenance::default(), now);
    }

    fn publish(&self, letter: &DeadLetter, from: &Provenance, now: Instant) {
        self.count.count();
        #[cfg(feature = "metrics")]
        if !letter.suppressed {
            self.scope.dead_letter(&letter.target, letter.reason);
        }
        drop_afterwards(|| {
            for store in &self.handling.stores {
                store.capture(letter, from, now);
            }
            if self.handling.stores.is_empty() {
                self.kept.keep(letter);
            }
            for level in iter::successors(Some(self), |level| level.above.as_deref()) {
                level.channel.send(letter);
            }
        });
    }

    /// Ends all subscriptions, since the supervisor has ended.
    pub(super) fn close(&self) {
        self.channel.close();
    }
}

impl LetterHandling {
    fn new(options: &DeadLetterOptions, above: Option<&Self>) -> Self {
        let throttle = match (options.log, above) {
            (None, Some(above)) => Arc::clone(&above.throttle),
            (log, _) => Arc::new(Mutex::new(Throttle::new(log.unwrap_or_default()))),
        };
        let mut stores = Vec::<DeadLetterStore>::new();
        let stores_above = above.map_or(&[][..], |above| &above.stores);
        for store in options.stores.iter().chain(stores_above) {
            if !stores.iter().any(|it| it.is(store)) {
                stores.push(store.clone());
            }
        }
        let mut suppressed = above.map(|above| above.suppressed.clone()).unwrap_or_default();
        for kind in &options.suppressed {
            if !suppressed.contains(kind) {
                suppressed.push(*kind);
            }
        }
        Self { throttle, stores, suppressed }
    }
}
