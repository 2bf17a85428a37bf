//! Makes a plan: what a configuration changes in a tree, and what is wrong with it.
//!
//! Pure: it knows the configuration, the facts about the tree and what was applied before. It finds all
//! mistakes at once, and changes nothing.
//!
//! # Invariants
//!
//! 1. A section that is the same as before, with all that is merged into it, is neither read nor sent,
//!    unless the plan is forced.
//! 2. What a plan is made of decides on it, and nothing else: two plans of the same are the same.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use super::checks::{check_child, check_general, check_keys};
use super::child_config::Reader;
use super::draft::{AppliedRecord, ConfigChange, Difference, Draft, Recorded, Toggled};
use super::facts::{Facts, Found, KnownChild, split};
use super::mistake::{KEPT, Mistake};
use super::node::{ValueNode, join};
use super::plan::Change;
use super::section::{Section, keys};
use super::{Config, Written, listing, rules};
use crate::path::Path;
use crate::policy::{ForWorkers, Rules};
use crate::runtime::settings::{ConfigState, GeneralLayer};
use crate::suggest::nearest;

/// Why there is no plan.
#[derive(Debug)]
pub(super) struct Mistaken {
    pub(super) mistakes: Vec<Mistake>,
    /// The values of children that were read nevertheless, as they are written.
    pub(super) readable: Vec<ConfigChange>,
}

/// Makes a plan. `initial`: the tree isn't started yet, so that each child needs a configuration.
pub(super) fn plan(
    config: &Config,
    difference: &Difference,
    facts: &Facts,
    initial: bool,
) -> Result<Draft, Mistaken> {
    let before = &*difference.before;
    let mut mistakes = config.mistakes_so_far();
    mistakes.extend(difference.twice.iter().cloned());
    let (record, unchanged) = (before.clone(), difference.unchanged);
    let draft = Draft { unchanged, ..Draft::default() };
    let (shared, rules) = (facts.shared(), BTreeMap::new());
    let mut planner =
        Planner { config, difference, before, facts, record, draft, mistakes, shared, rules };
    planner.common();
    // Sections for several children come first, because they are merged into the others.
    let (general, own): (Vec<_>, Vec<_>) =
        difference.changed.iter().partition(|path| path.ends_with('*'));
    for path in general {
        planner.general(path);
    }
    for path in own {
        planner.own(path);
    }
    planner.toggle_others();
    // Of two sections with one path, the values of one would be missing.
    if difference.twice.is_empty() {
        let Planner { record, draft, .. } = &mut planner;
        let found = read_configs(config, difference, facts, initial, record, draft);
        planner.mistakes.extend(found);
        if difference.forced {
            listing::note_sent(&mut planner.draft.changes, &planner.draft.configs);
        }
        listing::note_restarts(&mut planner.draft.changes, &planner.draft.configs, facts);
        listing::redact(&mut planner.draft.changes, &planner.record, facts);
    }
    let Planner { mut draft, mut mistakes, record, .. } = planner;
    if mistakes.is_empty() {
        draft.record = Some(Arc::new(record));
        Change::sort(&mut draft.changes);
        return Ok(draft);
    }
    // A mistake in a section for several children is found once for each.
    let mut found = HashSet::new();
    mistakes.retain(|mistake| found.insert(mistake.identity("")));
    let mut readable = draft.configs;
    // After an error in the syntax, sections may be missing, and values with them.
    readable.retain(|change| config.syntax.is_empty() && change.state.place.is_some());
    Err(Mistaken { mistakes, readable })
}

struct Planner<'a> {
    config: &'a Config,
    difference: &'a Difference,
    before: &'a AppliedRecord,
    facts: &'a Facts,
    /// That of before, until the section of a path is looked at.
    record: AppliedRecord,
    draft: Draft,
    mistakes: Vec<Mistake>,
    /// The sections that several children share.
    shared: BTreeSet<String>,
    /// The new rules of supervisors, by their paths.
    rules: BTreeMap<String, Arc<Rules>>,
}

impl<'a> Planner<'a> {
    fn common(&mut self) {
        let (before, common) = (&self.before.common, &self.config.common);
        self.record.common = common.clone();
        if !self.difference.all {
            return;
        }
        let written = Written { key: "common", location: common.location.as_ref(), node: common };
        let layer = self.general_layer(None, &written, common);
        let is_empty = *common == ValueNode::default();
        self.draft.values.common = layer.map(|layer| Some(layer).filter(|_| !is_empty));
        self.draft.changes.extend(listing::list("common", before, common, &|_| None, false));
    }

    /// A section for all children of one supervisor.
    fn general(&mut self, path: &str) {
        let above = split(path).map_or("", |(above, _)| above);
        let shown = self.facts.full(above).as_str().to_owned() + "/*";
        let Some(written) = &self.written(path) else {
            self.record.sections.remove(path);
            let old = self.before.sections.get(path).cloned().unwrap_or_default();
            self.draft.values.below.push((self.facts.full(above), None));
            return self.draft.changes.extend(listing::list(
                &shown,
                &old.merged,
                &self.config.common,
                &|_| None,
                false,
            ));
        };
        let (own, merged) =
            (written.node.clone(), rules::over(written.node.clone(), &self.config.common));
        let recorded = Recorded { own, merged: merged.clone(), ..Recorded::default() };
        if self.is_same(path, &recorded) {
            return self.draft.unchanged += 1;
        }
        if !self.facts.is_supervisor(above) {
            let message = match self.facts.find(above) {
                Found::Unknown => return self.no_such_path(written, above),
                _ => format!("`{above}` is a worker, which has no children; remove the section"),
            };
            return self.mistake(written, message);
        }
        if let Some(layer) = self.general_layer(Some(above), written, &merged) {
            let old = self.before.sections.get(path).map(|it| it.merged.clone());
            let old = old.unwrap_or_else(|| self.before.common.clone());
            self.draft.values.below.push((self.facts.full(above), Some(layer)));
            self.draft.changes.extend(listing::list(&shown, &old, &merged, &|_| None, false));
        }
        self.record.sections.insert(path.into(), Arc::new(recorded));
    }

    /// The section of one child, or of the root.
    fn own(&mut self, path: &str) {
        let found = self.facts.find(path);
        let is_supervisor = match found {
            Found::Root => true,
            Found::Child(child, _) => child.rules.is_supervisor(),
            // Nothing was asked about a section that hasn't changed.
            Found::Possible | Found::Unknown => {
                let before = self.before.sections.get(path);
                self.facts.supervisors.contains_key(path)
                    || before.is_some_and(|it| it.is_supervisor)
            }
        };
        let general = self.merged_above(path, is_supervisor);
        let Some(written) = &self.written(path) else {
            return self.removed(path, &general, is_supervisor);
        };
        let merged = rules::over(written.node.clone(), &general);
        let own = written.node.clone();
        let recorded = Recorded { own, merged: merged.clone(), is_supervisor };
        if self.is_same(path, &recorded) {
            return self.draft.unchanged += 1;
        }
        let is_shared = self.shared.contains(path);
        if matches!(found, Found::Unknown) && !is_shared {
            return self.no_such_path(written, path);
        }
        // Also if it has mistakes, so that those of the child's configuration are found, too.
        self.record.sections.insert(path.into(), Arc::new(recorded));
        self.mistakes.extend(check_keys(
            self.facts,
            path,
            written,
            &found,
            is_supervisor,
            is_shared,
        ));
        // The keys of a supervisor were mistakes already.
        let of_worker = !is_supervisor && matches!(found, Found::Child(..));
        let readable = if of_worker { merged.without(keys().0) } else { merged.clone() };
        let mut section = match Section::read(&readable, written.key) {
            Ok(section) => section,
            Err(mistakes) => return self.mistakes.extend(mistakes),
        };
        let is_beneath = |key| written.node.get(key).is_none();
        section.child.for_workers = ForWorkers {
            shutdown: is_beneath("shutdown") && is_beneath("drain"),
            watchdog: is_beneath("watchdog"),
            run_time_limit: is_beneath("run_time_limit"),
        };
        if let Found::Child(child, supervisor) = found {
            let rules = split(path).and_then(|(above, _)| self.rules.get(above));
            let rules = rules.unwrap_or(&supervisor.rules);
            let problem = check_child(self.facts, path, written, child, rules, &section.child);
            self.mistakes.extend(problem);
            self.toggle(path, child, &merged);
        }
        let full = self.facts.full(path);
        if !path.is_empty() {
            self.draft.values.files.push((full.clone(), Some(Arc::new(section.child))));
        }
        if is_supervisor || matches!(found, Found::Possible) {
            let layer = Arc::new(section.supervisor);
            if let Some(known) = self.facts.supervisors.get(path) {
                let rules = Rules::layered(&known.rules, Some(Arc::clone(&layer)));
                self.rules.insert(path.to_owned(), rules);
            }
            self.draft.values.supervisors.push((full.clone(), Some(layer)));
        }
        let code = |key: &str| listing::code_value(&found, self.facts.supervisors.get(path), key);
        let old = self.before_of(path, is_supervisor);
        self.draft.changes.extend(listing::list(
            full.as_str(),
            &old,
            &merged,
            &code,
            restarts(&found),
        ));
    }

    /// A section that was there before.
    fn removed(&mut self, path: &str, general: &ValueNode, is_supervisor: bool) {
        self.record.sections.remove(path);
        let full = self.facts.full(path);
        let found = self.facts.find(path);
        self.draft.values.files.push((full.clone(), None));
        // Also if nothing was known of it when they were set.
        let is_worker = matches!(found, Found::Child(child, _) if !child.rules.is_supervisor());
        if !is_worker {
            self.draft.values.supervisors.push((full.clone(), None));
        }
        if let Found::Child(child, _) = found {
            self.toggle(path, child, general);
        }
        let old = self.before_of(path, is_supervisor);
        let code = |key: &str| listing::code_value(&found, self.facts.supervisors.get(path), key);
        self.draft.changes.extend(listing::list(
            full.as_str(),
            &old,
            general,
            &code,
            restarts(&found),
        ));
    }

    /// Notes a child that the values of its path take out or bring back.
    fn toggle(&mut self, path: &str, child: &KnownChild, values: &ValueNode) {
        let was = is_enabled(&self.before_of(path, child.rules.is_supervisor()));
        let runs = is_enabled(values);
        if was != runs {
            let (path, segments) = (self.facts.full(path), child.segments.clone());
            self.draft.toggled.push(Toggled { path, segments, runs });
        }
    }

    /// Notes the children without a section of their own that sections for several children take out or bring
    /// back.
    fn toggle_others(&mut self) {
        let facts = self.facts;
        for (path, child) in facts.children() {
            let is_own = self.difference.changed.contains(&path) || self.written(&path).is_some();
            if !is_own {
                let values = self.merged_above(&path, child.rules.is_supervisor());
                self.toggle(&path, child, &values);
            }
        }
    }

    /// Returns what sections for several children say about one child.
    fn merged_above(&self, path: &str, is_supervisor: bool) -> ValueNode {
        let Some((above, _)) = split(path) else { return ValueNode::default() };
        general_for(self.record.general(above), is_supervisor)
    }

    fn before_of(&self, path: &str, is_supervisor: bool) -> ValueNode {
        if let Some(section) = self.before.sections.get(path) {
            return section.merged.clone();
        }
        match split(path) {
            Some((above, name)) => general_for(&self.before.merged(above, name), is_supervisor),
            None => ValueNode::default(),
        }
    }

    fn is_same(&self, path: &str, recorded: &Recorded) -> bool {
        let before = self.before.sections.get(path);
        !self.difference.forced
            && !self.difference.gone.contains(path)
            && before.is_some_and(|it| it.own == recorded.own && it.merged == recorded.merged)
    }

    /// Returns a section as it is written now.
    fn written(&self, path: &str) -> Option<Written<'a>> {
        self.config.section(self.facts.root.as_str(), path)
    }

    /// Reads a section for several children, and checks it with the code of those that have no section.
    fn general_layer(
        &mut self,
        above: Option<&str>,
        written: &Written<'_>,
        merged: &ValueNode,
    ) -> Option<GeneralLayer> {
        match Section::read(merged, written.key) {
            Ok(Section { mut child, supervisor }) => {
                child.for_workers = ForWorkers::ALL;
                let mistake = check_general(self.facts, self.config, above, written, &child);
                self.mistakes.extend(mistake);
                Some(GeneralLayer { child: Arc::new(child), supervisor: Arc::new(supervisor) })
            }
            Err(mistakes) => {
                self.mistakes.extend(mistakes);
                None
            }
        }
    }

    fn mistake(&mut self, written: &Written<'_>, message: String) {
        self.mistakes.push(Mistake::new(written.location, join("", written.key), message));
    }

    /// Notes that there is nothing at a path. After an error in a header, keys belong to other sections.
    fn no_such_path(&mut self, written: &Written<'_>, path: &str) {
        if self.config.syntax.is_empty() {
            // A message that isn't shown needs no suggestion.
            let is_shown = self.mistakes.len() < KEPT;
            let message =
                if is_shown { self.unknown(path) } else { "there is no such path".to_owned() };
            self.mistake(written, message);
        }
    }

    /// Returns the message for a path with nothing behind it.
    fn unknown(&self, path: &str) -> String {
        let full = self.facts.full(path);
        let paths: Vec<_> = self.facts.paths().collect();
        let paths: Vec<_> = paths.iter().map(String::as_str).collect();
        // The supervisor is forgotten, more often than a name is misspelt.
        let (above, name) = split(path).unwrap_or_default();
        let same = paths.iter().filter(|known| split(known).is_some_and(|it| it.1 == name));
        let mut near: Vec<_> = same.copied().take(3).collect();
        if near.is_empty() && self.facts.supervisors.contains_key(above) {
            near = nearest(path, &paths, 3);
        } else if near.is_empty() {
            // Without its supervisor, a path is compared with the supervisors only.
            let supervisors = self.facts.supervisors.keys().map(String::as_str);
            let supervisors: Vec<_> = supervisors.filter(|path| !path.is_empty()).collect();
            near = nearest(above, &supervisors, 3);
        }
        let near: Vec<_> = near.iter().map(|path| format!("`{}`", self.facts.full(path))).collect();
        match &near[..] {
            [] => format!("there is no `{full}`"),
            near => format!("there is no `{full}`; the nearest paths are {}", near.join(", ")),
        }
    }
}

/// Whether a change of its table `config` restarts a child.
fn restarts(found: &Found<'_>) -> bool {
    matches!(found, Found::Child(child, _) if child.config.as_ref().is_some_and(|it| it.restarts))
}

/// Whether a section doesn't take its child out.
fn is_enabled(section: &ValueNode) -> bool {
    section.get("enabled").and_then(ValueNode::as_bool) != Some(false)
}

/// Removes what isn't meant for supervisors from a section for several children.
fn general_for(node: &ValueNode, is_supervisor: bool) -> ValueNode {
    if is_supervisor {
        node.without(&["shutdown", "drain", "watchdog", "run_time_limit"])
    } else {
        node.clone()
    }
}

/// Reads the configuration of each child that has a new one, and notes which children have one at all. `record`
/// is the new one. Returns the mistakes.
fn read_configs(
    config: &Config,
    difference: &Difference,
    facts: &Facts,
    initial: bool,
    record: &mut AppliedRecord,
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
                let change =
                    ConfigChange { path: full, segments, spec, state, secrets: read.texts };
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
