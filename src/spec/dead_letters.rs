//! The dead-letter options of supervisor builders.

use std::any::TypeId;

use super::builder::{DynamicSupervisorBuilder, SupervisorBuilder};
use crate::dead_letter::DeadLetterStore;
use crate::policy::DeadLetterLog;

/// The methods that both builders have.
macro_rules! dead_letter_options {
    ($($builder:ty),+) => {$(
        impl $builder {
            /// Limits how many [dead letters](crate::dead_letter::DeadLetter) from here and below are logged.
            ///
            /// Default: the nearest supervisor above that sets it counts these letters with its own; for the
            /// root, [`DeadLetterLog::default`]. A supervisor that sets it starts the count at each start.
            ///
            /// Letters about a child itself are neither counted nor logged, because its supervisor already logs
            /// that it gave up.
            pub fn dead_letter_log(mut self, log: DeadLetterLog) -> Self {
                self.description.options.dead_letters.log = Some(log);
                self
            }

            /// Keeps the [dead letters](crate::dead_letter::DeadLetter) from here and below in this store.
            ///
            /// Call it once for each store. Default: no store.
            pub fn dead_letter_store(mut self, store: &DeadLetterStore) -> Self {
                self.description.options.dead_letters.stores.push(store.clone());
                self
            }

            /// Hides dead letters about messages of the type `M`, from here and below.
            ///
            /// They aren't logged, and subscribers to [`dead_letters`](crate::SupervisorHandle::dead_letters)
            /// don't receive them, here and above. Use it for messages that can be lost, such as heartbeats.
            /// Stores still keep and count them, and a subscriber can ask for them with
            /// [`with_suppressed`](crate::status::Subscription::with_suppressed).
            pub fn suppress_dead_letters<M: 'static>(mut self) -> Self {
                self.description.options.dead_letters.suppressed.push(TypeId::of::<M>());
                self
            }
        }
    )+};
}

dead_letter_options!(SupervisorBuilder, DynamicSupervisorBuilder);
