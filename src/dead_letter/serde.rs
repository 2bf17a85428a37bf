//! The serialised form of dead letters, without their messages.

use super::{DeadLetter, DeadLetterCounts, DeadLetterEntry, DeadLetterReason, EntryId};
use crate::serde::{serialize, words};

serialize!(DeadLetter {
    reason, target, incarnation, event_type, error, at in ms, suppressed;
    payload
});
serialize!(DeadLetterCounts { total, by_reason, replayed, forgotten });
serialize!(DeadLetterEntry { id, letter, replays, quarantined });
serialize!(|id: EntryId| id.number());
words!(DeadLetterReason);
