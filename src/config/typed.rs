//! The configurations of the children's own types: which have changed, and their values.
//!
//! Pure, as the planner whose part it is. It knows the tables `config` and the types behind them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Config;
use super::child_config::Reader;
use super::difference::Difference;
use super::draft::{ConfigChange, Draft, Record, Toggled};
use super::facts::{Facts, split};
use super::mistake::Mistake;
use super::node::join;
use crate::path::Path;
use crate::runtime::settings::ConfigState;

/// Reads the configuration of each child that has a new one, and notes which children have one at all. `record`
/// is the new one. Returns the mistakes.
pub(super) fn read(
    config: &Config,
    difference: &Difference,
    facts: &Facts,
    initial: bool,
    record: &mut Record,
    draft: &mut Draft,
) -> Vec<Mistake> {
    let before = &difference.before;
    let mut mistakes = Vec::new();
    // A child has a configuration if its own section has one, or the section that its code names.
    let mut configured: BTreeMap<Path, bool> = BTreeMap::new();
    for (path, child) in facts.children() {
        let (Some(spec), Some((above, name))) = (&child.config, split(&path)) else { continue };
        let (old, new) = (before.config(spec, above, name), record.config(spec, above, name));
        let full = facts.full(&path);
        let was_configured = before.is_configured(spec, above, name);
        let is_configured = record.is_configured(spec, above, name);
        if spec.section.is_some() && (is_configured || was_configured || difference.forced) {
            *configured.entry(full.clone()).or_default() |= is_configured;
        }
        let is_new = child.is_new || initial;
        if old == new && !difference.forced && !is_new {
            continue;
        }
        let awaits = child.rules.spec.awaits_config;
        if awaits && !is_configured {
            // A call may have configured it.
            if was_configured || difference.forced {
                *configured.entry(full.clone()).or_default() |= false;
                let segments = child.segments.clone();
                draft.toggled.push(Toggled { path: full, segments, runs: false });
            }
            continue;
        }
        let section = config.section(facts.root.as_str(), spec.section.as_ref().unwrap_or(&path));
        let key = join(&join("", section.map_or(full.as_str(), |it| it.key)), "config");
        match Reader::of(spec).read(&new.unwrap_or_default(), &key) {
            Ok(read) => {
                record.secrets.extend(read.secrets);
                record.read.insert(path.clone());
                record.read.extend(spec.section.clone());
                let (segments, spec) = (child.segments.clone(), Arc::clone(spec));
                let state = ConfigState {
                    value: Some(read.value),
                    is_of_call: false,
                    place: record.place(&spec, above, name),
                };
                let change = ConfigChange { path: full, segments, spec, state };
                if awaits && !was_configured && !is_new {
                    draft.toggled.push(change.toggled(true));
                }
                draft.configs.push(change);
            }
            Err(found) => mistakes.extend(found),
        }
    }
    for path in &difference.changed {
        let is_configured = record.has_config(path);
        if !is_configured && !before.has_config(path) {
            continue;
        }
        match split(path) {
            Some((above, "*")) => {
                draft.values.configured_below.push((facts.full(above), is_configured));
            }
            _ => *configured.entry(facts.full(path)).or_default() |= is_configured,
        }
    }
    draft.values.configured = configured.into_iter().collect();
    mistakes
}
