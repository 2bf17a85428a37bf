//! The sections that differ from what was applied last, and what a plan does about them once it is applied: values by
//! path, and the children that they stop or start.
//!
//! Pure: it knows what is written, and nothing of the tree. Everything that comes after a [`Difference`] looks only at
//! the sections in it, so a reload of a large file with one change costs little more than reading it. While a [`Draft`]
//! is applied, its values are exchanged for those of the tree, so that they can be taken back.
//!
//! # Invariant
//!
//! A section differs if it is written differently, or if one of those beneath it is: the common one, or
//! the one for all children of its supervisor.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::code::NewCode;
use super::facts::{below, split};
use super::mistake::Mistake;
use super::node::ValueNode;
use super::plan::Change;
use super::secret::SecretTexts;
use super::{Config, Written};
use crate::child::ConfigSpec;
use crate::path::Path;
use crate::runtime::settings::{ConfigState, ValueChanges};

/// What a plan does, once it is applied.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// For people. Sorted by path.
    pub(super) changes: Vec<Change>,
    pub(super) unchanged: usize,
    /// What the configuration says. A call has none.
    pub(super) record: Option<Arc<AppliedRecord>>,
    pub(super) values: ValueChanges,
    pub(super) configs: Vec<ConfigChange>,
    /// The new code of supervisors, the root first.
    pub(super) code: Vec<NewCode>,
    /// Children that stop or start because of their section, by path, with their last names.
    pub(super) toggled: Vec<Toggled>,
}

/// A child that is taken out or brought back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Toggled {
    pub(super) path: Path,
    pub(super) segments: Vec<String>,
    /// Whether it is to run.
    pub(super) runs: bool,
}

/// A new configuration for one child, or for all children of a dynamic supervisor with one name.
#[derive(Clone, Debug)]
pub(super) struct ConfigChange {
    pub(super) path: Path,
    pub(super) segments: Vec<String>,
    pub(super) spec: Arc<ConfigSpec>,
    pub(super) state: ConfigState,
    /// What no message about the value may show. Those of a value by call aren't known.
    pub(super) secrets: SecretTexts,
}

impl ConfigChange {
    /// Returns where the value is written. That of a call is written nowhere.
    pub(super) fn place(&self) -> Option<String> {
        let place = self.state.place.as_ref().filter(|_| !self.state.is_of_call);
        place.map(ToString::to_string)
    }

    /// Returns the same child, to be stopped or started.
    pub(super) fn toggled(&self, runs: bool) -> Toggled {
        Toggled { path: self.path.clone(), segments: self.segments.clone(), runs }
    }
}

/// What the configuration that was applied last says, to compare the next one with.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct AppliedRecord {
    pub(super) common: ValueNode,
    /// The sections by path below the root. The path of a section for all children of a supervisor ends with
    /// `*`. The next record shares those that didn't change.
    pub(super) sections: BTreeMap<Arc<str>, Arc<Recorded>>,
    /// The keys of secrets, below a table `config`.
    pub(super) secrets: BTreeSet<String>,
    /// The children whose table `config` was read, so that its secrets are known.
    pub(super) read: BTreeSet<String>,
}

/// One section.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Recorded {
    /// As it is written.
    pub(super) own: ValueNode,
    /// With what is written for several children.
    pub(super) merged: ValueNode,
    /// Whether it is that of a supervisor.
    pub(super) is_supervisor: bool,
}

impl AppliedRecord {
    /// Returns the configuration that is written for the child `name` of a supervisor, if there is one.
    pub(super) fn config(&self, spec: &ConfigSpec, above: &str, name: &str) -> Option<ValueNode> {
        self.section(spec, above, name).get("config").cloned()
    }

    /// Returns where that is.
    pub(super) fn place(&self, spec: &ConfigSpec, above: &str, name: &str) -> Option<Arc<str>> {
        self.section(spec, above, name).place("config")
    }

    /// Returns the section of which the table `config` is the child's.
    fn section(&self, spec: &ConfigSpec, above: &str, name: &str) -> ValueNode {
        match &spec.section {
            None => self.merged(above, name),
            Some(path) => match self.sections.get(&**path) {
                Some(section) => section.merged.clone(),
                None => self.common.clone(),
            },
        }
    }

    /// Returns whether a configuration is written for the child, or for all children of its supervisor.
    pub(super) fn is_configured(&self, spec: &ConfigSpec, above: &str, name: &str) -> bool {
        match &spec.section {
            None => self.has_config(&below(above, name)) || self.has_config(&below(above, "*")),
            Some(path) => self.has_config(path),
        }
    }

    /// Returns whether the section has a table `config` of its own.
    pub(super) fn has_config(&self, path: &str) -> bool {
        self.sections.get(path).is_some_and(|it| it.own.get("config").is_some())
    }

    /// Returns what is written for the child `name` of a supervisor, from all sections that concern it.
    pub(super) fn merged(&self, above: &str, name: &str) -> ValueNode {
        match self.sections.get(&*below(above, name)) {
            Some(section) => section.merged.clone(),
            None => self.general(above).clone(),
        }
    }

    /// Returns what is written for all children of a supervisor.
    pub(super) fn general(&self, above: &str) -> &ValueNode {
        let section = self.sections.get(&*below(above, "*"));
        section.map_or(&self.common, |section| &section.merged)
    }
}

/// The sections that differ between a configuration and the one that was applied last.
#[derive(Debug)]
pub(super) struct Difference {
    pub(super) before: Arc<AppliedRecord>,
    /// Whether every section counts as different.
    pub(super) forced: bool,
    /// Whether it concerns the whole tree: it is forced, or what is written for all children differs.
    pub(super) all: bool,
    /// The paths below the root, also of sections that are gone.
    pub(super) changed: BTreeSet<String>,
    pub(super) unchanged: usize,
    /// Sections of children that new code doesn't have.
    pub(super) gone: BTreeSet<String>,
    /// Paths that are written twice, with the root's name and without it.
    pub(super) twice: Vec<Mistake>,
}

impl Difference {
    pub(super) fn new(
        root: &str,
        config: &Config,
        before: Arc<AppliedRecord>,
        forced: bool,
    ) -> Self {
        let (sections, twice) = config.sections(root);
        let is_same = |path: &str, written: &Written<'_>| {
            before.sections.get(path).is_some_and(|it| it.own == *written.node)
        };
        let written = sections.iter().filter(|(path, written)| !is_same(path, written));
        let gone = before.sections.keys().map(|path| &**path);
        let gone = gone.filter(|path| !sections.contains_key(path));
        let changed = written.map(|(path, _)| *path).chain(gone);
        let mut changed: BTreeSet<_> = changed.map(str::to_owned).collect();
        let all = forced || config.common != before.common;
        if all || changed.iter().any(|path| path.ends_with('*')) {
            let is_above = |(above, _)| changed.contains(&below(above, "*"));
            let paths = before.sections.keys().map(|path| &**path).chain(sections.keys().copied());
            let above_changed = paths.filter(|path| all || split(path).is_some_and(is_above));
            let above_changed: Vec<_> = above_changed.map(str::to_owned).collect();
            changed.extend(above_changed);
        }
        let unchanged = sections.keys().filter(|path| !changed.contains(**path)).count();
        let gone = BTreeSet::new();
        Self { before, forced, all, changed, unchanged, gone, twice }
    }

    /// Returns the same difference for code without the children with these paths.
    pub(super) fn with(&self, paths: &[String]) -> Self {
        let is_meant = |section: &str| {
            let at = |path: &String| section.strip_prefix(path.as_str());
            paths.iter().filter_map(at).any(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let same = self.before.sections.keys().filter(|path| is_meant(path));
        let gone: BTreeSet<_> = same.map(|path| path.to_string()).collect();
        let (before, twice) = (Arc::clone(&self.before), self.twice.clone());
        let changed = &self.changed | &gone;
        let unchanged = self.unchanged.saturating_sub(changed.len() - self.changed.len());
        Self { before, twice, changed, unchanged, gone, ..*self }
    }

    /// Whether it is the difference from what was applied last, which is `before`.
    pub(super) fn is_since(&self, before: &Arc<AppliedRecord>) -> bool {
        Arc::ptr_eq(&self.before, before)
    }
}
