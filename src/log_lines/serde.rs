//! The serialised form of log lines.

use super::{ChildLines, LogLine};
use crate::serde::serialize;

serialize!(ChildLines { incarnation, current, previous });
serialize!(LogLine { at in ms, level, target, path, incarnation, message, fields });
