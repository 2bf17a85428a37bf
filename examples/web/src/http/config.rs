//! `["web/http/listener".config]` of the configuration file.

use serde::Deserialize;

/// A new value counts from the next request on.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ListenerConfig {
    /// How many bytes a note may have.
    pub(crate) max_note: usize,
    /// Whether `POST /panic` panics. Otherwise it is 404.
    pub(crate) break_it: bool,
}

impl Default for ListenerConfig {
    fn default() -> Self {
        Self { max_note: 4096, break_it: false }
    }
}
