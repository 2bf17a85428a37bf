//! Lists the values that a configuration and calls have set in a tree, for people.
//!
//! # Invariants
//!
//! 1. A value that is, or may be, a secret isn't in the list: see [`listing::may_be_secret`].

use std::collections::BTreeSet;

use serde::Serialize;

use super::apply::recorded;
use super::listing::may_be_secret;
use crate::handle::SupervisorHandle;

/// What is shown in place of a secret.
const SECRET: &str = "(secret)";

/// One value.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct SetValue {
    /// The path of the section, with the root's name; `app/ingest/*` for all children of a supervisor, `common`
    /// for all children.
    path: String,
    /// The key, such as `restart.max_backoff`.
    key: String,
    /// As it is written in a file.
    value: String,
    /// Where it is written, such as `feed.toml:12`, or `call`.
    source: String,
}

impl SupervisorHandle {
    /// Returns the values that the last configuration and calls have set, by path.
    pub(crate) fn set_values(&self) -> Vec<SetValue> {
        let (settings, root) = (self.settings(), self.root_path());
        let record = recorded(settings);
        let full = |path: &str| match path {
            "" => root.to_string(),
            _ => format!("{root}/{path}"),
        };
        let read: BTreeSet<_> = record.read.iter().map(|path| full(path)).collect();
        let common = [("common".to_owned(), &record.common)];
        let own = record.sections.iter().map(|(path, section)| (full(path), &section.own));
        let mut values = Vec::new();
        for (path, section) in common.into_iter().chain(own) {
            for (key, node) in section.flatten("").into_iter().filter(|(key, _)| !key.is_empty()) {
                let is_secret = may_be_secret(&record, read.contains(&path), &key);
                let value = if is_secret { SECRET.to_owned() } else { node.to_string() };
                let source = node.location.as_ref().map(ToString::to_string);
                let source = source.unwrap_or_else(|| "configuration".to_owned());
                values.push(SetValue { path: path.clone(), key, value, source });
            }
        }
        for path in settings.called() {
            let (path, key) = (path.to_string(), "restart".to_owned());
            let (value, source) = ("(call)".to_owned(), "call".to_owned());
            values.push(SetValue { path, key, value, source });
        }
        values
    }
}
