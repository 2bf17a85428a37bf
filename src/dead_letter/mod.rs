//! Dead letters: messages that were not delivered, and children that were given up.
//!
//! | file | contents |
//! | --- | --- |
//! | `letter`, `reason` | a letter |
//! | `payload` | the message of a letter, which all its clones share |
//! | `undelivered`, `entry_id` | what a mailbox reports, and how a message is sent again |
//! | `options` | what a supervisor configures |
//! | `log` | the log lines |
//! | `store` | letters that are kept, to be inspected and replayed |
//!
//! Each supervisor publishes the letters from itself and from all supervisors below.
//!
//! # Invariants
//!
//! 1. A message is taken out of its letter at most once, whichever clone it is taken from.
//! 2. A message is never dropped while a lock is held: its `Drop` may send messages that become letters.
//! 3. There is no letter about a letter.

mod entry_id;
mod letter;
pub(crate) mod log;
mod options;
mod payload;
mod reason;
mod store;
#[cfg(test)]
mod tests;
mod undelivered;

pub use self::entry_id::EntryId;
pub use self::letter::DeadLetter;
pub(crate) use self::letter::Provenance;
pub(crate) use self::options::DeadLetterOptions;
pub(crate) use self::payload::drop_afterwards;
pub use self::reason::DeadLetterReason;
pub use self::store::{DeadLetterCounts, DeadLetterEntry, DeadLetterStore, ReplayError};
pub use self::undelivered::Refused;
pub(crate) use self::undelivered::{Redeliver, Undelivered};
pub use crate::policy::dead_letter_log::DeadLetterLog;
