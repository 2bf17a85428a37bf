//! Lists what differs between two sections, and what is set in a tree, in the words of a file.
//!
//! Knows the values as they are written, and which of them are secrets. It decides nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::draft::{AppliedRecord, ConfigChange};
use super::facts::{Facts, Found, SupervisorFacts};
use super::node::ValueNode;
use super::plan::{Change, ChangeKind, Effect};
use super::secret::REDACTED;
use crate::policy::ChildRules;
use crate::policy::option_table::{OptionText, option};

/// Lists the values that differ. `code` returns the value of the code; `restarts`: whether a change of its table
/// `config` restarts the child.
pub(super) fn list(
    path: &str,
    old: &ValueNode,
    new: &ValueNode,
    code: &dyn Fn(&str) -> Option<String>,
    restarts: bool,
) -> Vec<Change> {
    let mut changes = Vec::new();
    let flat = |node| -> BTreeMap<String, &ValueNode> {
        ValueNode::flatten(node, "").into_iter().collect()
    };
    let (old, new) = (flat(old), flat(new));
    let keys: BTreeSet<_> = old.keys().chain(new.keys()).collect();
    for key in keys {
        // An empty table is one value.
        if key.is_empty() {
            continue;
        }
        let (before, after) = (old.get(key).copied(), new.get(key).copied());
        if before == after {
            continue;
        }
        let kind = match (key.as_str(), after.and_then(ValueNode::as_bool)) {
            ("enabled", Some(false)) => ChangeKind::Removed,
            ("enabled", _) => ChangeKind::Added,
            _ => ChangeKind::Changed,
        };
        let value =
            |it: Option<&ValueNode>| it.map_or_else(|| code(key), |it| Some(it.to_string()));
        let (old, new) = (value(before), value(after));
        // What a file writes may be the value of the code.
        if old == new && old.is_some() {
            continue;
        }
        changes.push(Change {
            path: path.to_owned(),
            kind,
            key: key.clone(),
            old,
            new,
            effect: effect(key, restarts),
            place: after.and_then(|it| it.location.as_ref()).map(ToString::to_string),
        });
    }
    changes
}

/// Hides the values of secrets, and those that may be secrets: what no child has read yet, and what is written
/// for several children, of which some may be unknown.
pub(super) fn redact(changes: &mut [Change], record: &AppliedRecord, facts: &Facts) {
    let read: BTreeSet<_> = record.read.iter().map(|path| facts.full(path).to_string()).collect();
    for change in changes {
        if may_be_secret(record, read.contains(&change.path), &change.key) {
            for value in [&mut change.old, &mut change.new].into_iter().flatten() {
                *value = REDACTED.to_owned();
            }
        }
    }
}

/// Whether the value of a key is a secret, or may be one.
///
/// `is_read`: whether the child has read its table `config`, so that its secrets are known.
pub(super) fn may_be_secret(record: &AppliedRecord, is_read: bool, key: &str) -> bool {
    // A secret in a list hides the list, and one that holds several values hides each.
    let is_part = |whole: &str, part: &str| {
        let rest = part.strip_prefix(whole);
        rest.is_some_and(|rest| whole.is_empty() || rest.is_empty() || rest.starts_with(['.', '[']))
    };
    let Some(key) = key.strip_prefix("config.") else { return key == "config" };
    let is_secret = |secret: &String| is_part(secret, key) || is_part(key, secret);
    !is_read || record.secrets.iter().any(is_secret)
}

/// Lists the configurations that are sent although they are the same.
pub(super) fn note_sent(changes: &mut Vec<Change>, configs: &[ConfigChange]) {
    let is_config = |change: &&Change| change.key.starts_with("config");
    let listed = changes.iter().filter(is_config).map(|change| change.path.clone());
    let listed: BTreeSet<_> = listed.collect();
    for config in configs.iter().filter(|config| !listed.contains(config.path.as_str())) {
        let effect = if config.spec.restarts { Effect::NeedsRestart } else { Effect::Live };
        let change = Change::new(&config.path, ChangeKind::Changed, "config", effect);
        changes.push(Change { place: config.place(), ..change });
    }
}

/// A table `config` for several children restarts those that restart on a change.
pub(super) fn note_restarts(changes: &mut [Change], configs: &[ConfigChange], facts: &Facts) {
    let restarts = configs.iter().filter(|change| change.spec.restarts);
    let restarts: Vec<_> = restarts.map(|change| (change.path.to_string(), &change.spec)).collect();
    let shared = restarts.iter().filter_map(|(_, spec)| spec.section.as_ref());
    let shared: BTreeSet<_> = shared.map(|path| facts.full(path).to_string()).collect();
    for change in changes {
        let is_above = match change.path.strip_suffix('*') {
            Some(above) => restarts.iter().any(|(path, _)| path.starts_with(above)),
            None if change.path == "common" => !restarts.is_empty(),
            None => shared.contains(&change.path),
        };
        if change.key.starts_with("config.") && is_above {
            change.effect = Effect::NeedsRestart;
        }
    }
}

/// When a changed value counts.
fn effect(key: &str, restarts: bool) -> Effect {
    let section_key = key.split('.').next().unwrap_or_default();
    match option(section_key) {
        _ if section_key == "config" && restarts => Effect::NeedsRestart,
        Some(option) => Effect::of(option.takes_effect),
        // A restart policy by its name in SignalPy.
        None if section_key == "system" => Effect::AtNextFailure,
        None => Effect::Live,
    }
}

/// Returns the value of the code, in the words of a file, for the keys that have one word.
pub(super) fn code_value(
    found: &Found<'_>,
    itself: Option<&SupervisorFacts>,
    key: &str,
) -> Option<String> {
    let key = match key {
        "restart.when" | "restart.restart" | "system.restart_policy.when" => "restart",
        key => key,
    };
    match (option(key)?.text, found) {
        (OptionText::OfSupervisor(text), _) => text(itself?.rules.code()),
        (OptionText::OfChild(text), Found::Child(child, supervisor)) => {
            text(&ChildRules::of(&child.rules.spec, &supervisor.rules))
        }
        (OptionText::OfChild(_), _) => None,
    }
}

/// A value that a configuration or a call has set in a tree, for people.
#[cfg(feature = "console")]
#[derive(Debug, PartialEq, Eq, serde::Serialize)]
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

#[cfg(feature = "console")]
impl crate::handle::SupervisorHandle {
    /// Returns the values that the last configuration and calls have set, by path, without those that
    /// [may be secrets](may_be_secret).
    pub(crate) fn set_values(&self) -> Vec<SetValue> {
        let (settings, root) = (self.settings(), self.root_path());
        let record = super::apply::recorded(settings);
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
                let value = if is_secret { "(secret)".to_owned() } else { node.to_string() };
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
