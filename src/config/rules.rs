//! Rules between the keys of a section: synonyms, keys that exclude each other, keys that need another.
//!
//! It knows which keys are written. The values are read by `section`.
//!
//! # Invariants
//!
//! 1. After [`unify`], each setting has one name: `restart`, and within it `when`, with one word for each value.
//! 2. A value of a section replaces the values beneath it that exclude it, so that a section can
//!    override common values that are written in a different form.

use super::mistake::{Location, Mistake};
use super::node::{Entry, NodeTable, Value, ValueNode, join};
use super::read_error::unknown;
use crate::suggest;

/// Replaces the synonyms of keys. `path` is the path of the section.
pub(super) fn unify(section: &mut ValueNode, path: &str) -> Vec<Mistake> {
    let key = || join("", path);
    let mut mistakes = Vec::new();
    let Some(table) = section.table_mut() else { return mistakes };
    if let Some(system) = table.remove("system") {
        let system_key = join(&key(), "system");
        match system.node.value {
            Value::Table(inner) => take_system(&inner, table, &system_key, &mut mistakes),
            _ => mistakes.push(Mistake::new(
                system.node.location.as_ref(),
                system_key,
                "`system` is a table with the key `restart_policy`; write restart = \"always\", for \
                 example, instead",
            )),
        }
    }
    let Some(restart) = table.get_mut("restart") else { return mistakes };
    take_word(&mut restart.node);
    let Some(inner) = restart.node.table_mut() else { return mistakes };
    if let Some(mut when) = inner.remove("restart") {
        if inner.contains_key("when") {
            let key = join(&join(&key(), "restart"), "restart");
            let message = "`when` and `restart` are the same setting; remove one of them";
            mistakes.push(Mistake::new(when.location.as_ref(), key, message));
        } else {
            when.alias = Some("restart");
            inner.insert("when".to_owned(), when);
        }
    }
    if let Some(when) = inner.get_mut("when") {
        take_word(&mut when.node);
    }
    mistakes
}

/// Replaces a restart type of elfo.
fn take_word(node: &mut ValueNode) {
    let Value::String(word) = &mut node.value else { return };
    match &**word {
        "Never" => "never".clone_into(word),
        "Always" => "always".clone_into(word),
        "OnFailure" => "on_failure".clone_into(word),
        _ => {}
    }
}

fn take_system(system: &NodeTable, table: &mut NodeTable, key: &str, mistakes: &mut Vec<Mistake>) {
    for (name, entry) in system {
        let location = entry.location.as_ref();
        if name != "restart_policy" {
            let message = unknown("key", name, &["restart_policy"]);
            mistakes.push(Mistake::new(location, join(key, name), message));
        } else if table.contains_key("restart") {
            let message =
                "`restart` and `system.restart_policy` are the same setting; remove one of them";
            mistakes.push(Mistake::new(location, join(key, name), message));
        } else {
            let alias = Some("system.restart_policy");
            let entry = Entry { alias, ..Entry::clone(entry) };
            table.insert("restart".to_owned(), Box::new(entry));
        }
    }
}

/// Removes tables with unknown names, which are meant as children. `known` are the keys of a section.
pub(super) fn take_nested(section: &mut ValueNode, path: &str, known: &[&str]) -> Vec<Mistake> {
    let Some(table) = section.table_mut() else { return Vec::new() };
    let mut nested = Vec::new();
    for (name, entry) in table.iter() {
        if entry.node.table().is_some() && !known.contains(&&**name) {
            nested.push(name.clone());
        }
    }
    let mistake = |(name, entry): (String, Box<Entry>)| {
        let mean = suggest::closest(&name, known);
        let mean = mean.map_or(String::new(), |mean| format!(" did you mean `{mean}`?"));
        let child = join("", &format!("{path}/{name}"));
        let message =
            format!("unknown key `{name}`;{mean} write a child as a path, such as [{child}]");
        Mistake::new(entry.location.as_ref(), join(&join("", path), &name), message)
    };
    nested.iter().filter_map(|name| table.remove_entry(name)).map(mistake).collect()
}

/// Removes the limit of all children of a supervisor from where the limit of one child is written.
pub(super) fn take_shared_limit(section: &mut ValueNode, path: &str) -> Vec<Mistake> {
    let restart = section.table_mut().and_then(|table| table.get_mut("restart"));
    let Some(table) = restart.and_then(|entry| entry.node.table_mut()) else { return Vec::new() };
    let keys = ["max_restarts", "period"];
    let taken = keys.map(|key| table.remove(key).map(|entry| (key, entry)));
    let Some((key, entry)) = taken.into_iter().flatten().next() else { return Vec::new() };
    let message = "`max_restarts` and `period` are the limit of all children of a supervisor together; for \
                   one child write own_restarts = { max = 12, period = \"5m\" }";
    vec![Mistake::new(
        entry.location.as_ref(),
        join(&join(&join("", path), "restart"), key),
        message.to_owned(),
    )]
}

/// Keys that set the same thing in different forms. Only one row of a group can be written.
type Group = &'static [&'static [&'static str]];

const SECTION_GROUPS: [Group; 2] = [
    &[&["max_restarts", "period"], &["intensity"], &["unlimited_restarts"]],
    &[&["shutdown"], &["drain"]],
];

const RESTART_GROUPS: [Group; 3] = [
    &[&["min_backoff", "max_backoff", "factor", "auto_reset"], &["backoff"]],
    &[&["own_restarts"], &["intensity"], &["unlimited_restarts"]],
    &[&["max_retries"], &["consecutive_restarts"]],
];

/// The other limits of a child, which `unlimited_restarts` at a higher precedence also clears.
const IN_A_ROW: [&str; 3] = ["consecutive_restarts", "max_retries", "failing_for"];

/// Merges a section over values beneath it.
pub(super) fn over(section: ValueNode, beneath: &ValueNode) -> ValueNode {
    let mut beneath = beneath.clone();
    yield_to(&section, &mut beneath, &SECTION_GROUPS);
    if let (Some(own), Some(below)) =
        (section.get("restart"), beneath.table_mut().and_then(|table| table.get_mut("restart")))
    {
        yield_to(own, &mut below.node, &RESTART_GROUPS);
    }
    section.merge(&beneath)
}

fn yield_to(own: &ValueNode, beneath: &mut ValueNode, groups: &[Group]) {
    let (Some(own), Some(beneath)) = (own.table(), beneath.table_mut()) else { return };
    // `unlimited_restarts = false` replaces nothing but itself.
    let replaces = |key: &str| {
        let value = own.get(key).map(|entry| &entry.node);
        value.is_some_and(|value| key != "unlimited_restarts" || value.as_bool() != Some(false))
    };
    if replaces("unlimited_restarts") {
        IN_A_ROW.iter().for_each(|key| {
            beneath.remove(*key);
        });
    }
    for group in groups {
        let is_set = |keys: &&&[&str]| keys.iter().any(|key| replaces(key));
        if let Some(set) = group.iter().find(is_set) {
            let others = group.iter().filter(|keys| *keys != set);
            others.flat_map(|keys| *keys).for_each(|key| {
                beneath.remove(*key);
            });
        }
    }
}

/// Checks which keys are written together.
pub(super) fn check(section: &ValueNode, path: &str) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    let key = join("", path);
    let own = Written { table: section, key: &key };
    let limit = [
        ("max_restarts", "`max_restarts`; add max_restarts = 5"),
        ("period", "a `period`; add period = \"60s\""),
    ];
    own.pair(limit, "intensity", "set the same limit", &mut mistakes);
    own.unlimited("max_restarts", &mut mistakes);
    own.twice("drain", "shutdown", "grace", &mut mistakes);
    if let Some(entry) = section.entry("restart") {
        let key = entry.key(&key, "restart");
        let restart = Written { table: &entry.node, key: &key };
        restart.twice("own_restarts", "intensity", "limit", &mut mistakes);
        restart.unlimited("own_restarts", &mut mistakes);
        let delays = [
            ("min_backoff", "`min_backoff`; add min_backoff = \"5s\""),
            ("max_backoff", "`max_backoff`; add max_backoff = \"30s\""),
        ];
        restart.pair(delays, "backoff", "exclude each other", &mut mistakes);
        restart.backoff(&mut mistakes);
        restart.twice("max_retries", "consecutive_restarts", "limit", &mut mistakes);
    }
    mistakes
}

/// A table, and the key that leads to it.
struct Written<'a> {
    table: &'a ValueNode,
    key: &'a str,
}

impl Written<'_> {
    fn has(&self, key: &str) -> bool {
        self.table.get(key).is_some()
    }

    fn mistake(&self, key: &str, message: impl std::fmt::Display) -> Mistake {
        let location: Option<&Location> =
            self.table.entry(key).and_then(|entry| entry.location.as_ref());
        Mistake::new(location, join(self.key, key), message)
    }

    /// Two keys that need each other, each with what to add for it, and one that replaces them both.
    fn pair(
        &self,
        [first, second]: [(&str, &str); 2],
        whole: &str,
        why: &str,
        mistakes: &mut Vec<Mistake>,
    ) {
        let (key, message) = match (self.has(first.0), self.has(second.0)) {
            (false, false) => return,
            (has_first, _) if self.has(whole) => {
                let key = if has_first { first.0 } else { second.0 };
                (key, format!("`{key}` and `{whole}` {why}; remove one of them"))
            }
            (true, true) => return,
            (true, false) => (first.0, format!("`{}` needs {}, for example", first.0, second.1)),
            (false, true) => (second.0, format!("`{}` needs {}, for example", second.0, first.1)),
        };
        mistakes.push(self.mistake(key, message));
    }

    /// Two keys of one setting.
    fn twice(&self, key: &str, other: &str, what: &str, mistakes: &mut Vec<Mistake>) {
        if self.has(key) && self.has(other) {
            let message = format!("`{key}` and `{other}` set the same {what}; remove one of them");
            mistakes.push(self.mistake(key, message));
        }
    }

    /// `sliding`: the key of a sliding limit here.
    fn unlimited(&self, sliding: &str, mistakes: &mut Vec<Mistake>) {
        let is_unlimited =
            self.table.get("unlimited_restarts").and_then(ValueNode::as_bool) == Some(true);
        for limit in [sliding, "intensity"] {
            if is_unlimited && self.has(limit) {
                let message = format!(
                    "`unlimited_restarts` and `{limit}` exclude each other; remove one of them"
                );
                mistakes.push(self.mistake("unlimited_restarts", message));
            }
        }
    }

    fn backoff(&self, mistakes: &mut Vec<Mistake>) {
        let (min, max) = (self.has("min_backoff"), self.has("max_backoff"));
        for (key, instead) in [("factor", "factor = 2.0"), ("auto_reset", "reset_after = \"5s\"")] {
            if !self.has(key) || min || max {
                continue;
            }
            let message = if self.has("backoff") {
                format!(
                    "`{key}` belongs to `min_backoff` and `max_backoff`; write {instead} in the \
                         table `backoff` instead"
                )
            } else {
                format!(
                    "`{key}` needs `min_backoff` and `max_backoff`; add min_backoff = \"5s\" and \
                         max_backoff = \"30s\", for example"
                )
            };
            mistakes.push(self.mistake(key, message));
        }
    }
}
