//! The serialised form of exit reasons.

use super::{ExitKind, ExitReason};
use crate::serde::{serialize, words};

serialize!(|reason: ExitReason| { kind = reason.kind(), message = reason.to_string() });
words!(ExitKind);
