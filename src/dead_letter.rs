//! Dead letters: what could not be delivered, and what was given up.
//!
//! Each supervisor has a channel of its own, made when somebody subscribes to it. A letter climbs:
//! it is also put into the channels of all supervisors above.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use serde::Serialize;

use crate::exit::ExitReason;
use crate::millis;
use crate::path::Path;

/// Something that did not arrive, or will not happen any more.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct DeadLetter {
    /// Why it is dead.
    pub reason: DeadLetterReason,
    /// Whom it was for.
    pub target: Path,
    /// The run of the target that was the last one then, from 1.
    pub incarnation: u32,
    /// What went wrong.
    pub error: Option<Arc<ExitReason>>,
    /// When it happened.
    #[serde(rename = "at_ms", serialize_with = "millis::since_epoch")]
    pub at: SystemTime,
}

/// Why a letter is dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DeadLetterReason {
    /// The supervisor gave up on the child, or fails with it.
    GaveUp,
}

impl fmt::Display for DeadLetterReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::GaveUp => "gave_up",
        })
    }
}
