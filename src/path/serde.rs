//! The serialised form of paths: their text.

use super::Path;
use crate::serde::serialize;

serialize!(|path: Path| path.as_str());
