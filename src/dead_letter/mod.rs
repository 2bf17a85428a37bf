//! Dead letters: messages that were not delivered, and children that were given up.
//!
//! A message becomes a [`DeadLetter`] if its mailbox (feature `mailbox`) can't deliver it, and an
//! event if no handler on the event bus (feature `bus`) handles it. A child becomes one if its supervisor gives up on
//! it. The [`DeadLetterReason`] says why.
//!
//! Each supervisor publishes its own letters and those from all supervisors below it:
//!
//! * in the log, throttled by a [`DeadLetterLog`];
//! * to the subscribers of [`SupervisorHandle::dead_letters`](crate::SupervisorHandle::dead_letters),
//!   which can take the message out of the letter;
//! * to the children that have subscribed with `Bus::on_dead_letter` (feature `bus`);
//! * to each [`DeadLetterStore`], which keeps letters, counts them, and replays their messages.
//!
//! ```
//! use std::time::Duration;
//!
//! use verger::dead_letter::DeadLetterReason;
//! use verger::policy::{OnExhausted, RestartPolicy};
//! use verger::{Context, Exit, Supervisor, worker};
//!
//! async fn clerk(_ctx: Context) -> Exit {
//!     Err("no pencil".into())
//! }
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let once = RestartPolicy::new().own_restarts(1, Duration::from_secs(60));
//! let clerk = worker("clerk", clerk).policy(once.on_exhausted(OnExhausted::Park));
//! let shop = Supervisor::builder("shop").child(clerk).build()?.start().await?;
//! let mut letters = shop.dead_letters();
//!
//! let letter = letters.next().await.expect("the shop is open");
//! assert_eq!(letter.reason, DeadLetterReason::GaveUp);
//! assert_eq!(letter.target.as_str(), "shop/clerk");
//! # shop.stop("the example is over").await?;
//! # Ok(())
//! # }
//! ```

// | file | contents |
// | --- | --- |
// | `letter` | a letter, and what a mailbox or the bus reports |
// | `payload` | the message of a letter, which all its clones share |
// | `log` | the log lines |
// | `store` | letters that are kept, to be inspected and replayed |
// | `serde` | the serialised form of letters and entries |
//
// Invariants:
//
// 1. A message is taken out of its letter at most once, whichever clone it is taken from.
// 2. A message is never dropped while a lock is held: its `Drop` may send messages that become letters.
// 3. There is no letter about a letter.

mod letter;
pub(crate) mod log;
mod payload;
#[cfg(feature = "serde")]
mod serde;
mod store;
#[cfg(test)]
mod tests;

use std::any::TypeId;

pub use self::letter::{DeadLetter, DeadLetterReason, Refused};
pub(crate) use self::letter::{Provenance, Redeliver, Undelivered};
pub(crate) use self::payload::KeptMessages;
pub use self::store::{DeadLetterCounts, DeadLetterEntry, DeadLetterStore, EntryId, ReplayError};
pub use crate::policy::dead_letter_log::DeadLetterLog;

/// What a supervisor configures for the dead letters from itself and below.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeadLetterOptions {
    pub(crate) log: Option<DeadLetterLog>,
    pub(crate) stores: Vec<DeadLetterStore>,
    /// The types of messages whose letters are suppressed.
    pub(crate) suppressed: Vec<TypeId>,
}
