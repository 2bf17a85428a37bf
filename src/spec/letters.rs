//! The builders: what becomes of letters that can't be delivered.

use std::any::TypeId;

use super::builder::{DynamicSupervisorBuilder, SupervisorBuilder};
use crate::dead_letter::DeadLetterStore;
use crate::policy::DeadLetterLog;

/// What both builders have in common, written once.
macro_rules! letter_options {
    ($($builder:ty),+) => {$(
        impl $builder {
            /// How many [dead letters](crate::DeadLetter) from here and below are logged. Default:
            /// as the nearest supervisor above that says so, which counts them with its own; the
            /// root as [`DeadLetterLog::default`] says.
            ///
            /// A supervisor that says it itself counts anew each time it is started. Letters that
            /// are about a child itself are neither counted nor logged here: that their supervisor
            /// gave up on it already is.
            pub fn dead_letter_log(mut self, log: DeadLetterLog) -> Self {
                self.options.dead_letters.log = Some(log);
                self
            }

            /// Keeps the [dead letters](crate::DeadLetter) from here and below in this store, and in
            /// those that were given here before. Default: none are kept.
            pub fn dead_letter_store(mut self, store: &DeadLetterStore) -> Self {
                self.options.dead_letters.stores.push(store.clone());
                self
            }

            /// Keeps letters about messages of the type `M`, from here and below, from being logged
            /// and from being seen by whoever listens to
            /// [`dead_letters`](crate::SupervisorHandle::dead_letters), also above.
            ///
            /// For messages that nobody misses, such as heartbeats. Stores have and count them all
            /// the same, and who wants to see them can: see
            /// [`with_suppressed`](crate::Subscription::with_suppressed).
            pub fn suppress_dead_letters<M: 'static>(mut self) -> Self {
                self.options.dead_letters.suppressed.push(TypeId::of::<M>());
                self
            }
        }
    )+};
}

letter_options!(SupervisorBuilder, DynamicSupervisorBuilder);
