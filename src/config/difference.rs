//! The sections that differ between a configuration and the one that was applied last.
//!
//! Pure: it knows what is written, and nothing of the tree. Everything that comes after it looks only at the
//! sections that differ, so a reload of a large file with one change costs little more than reading it.
//!
//! # Invariant
//!
//! A section differs if it is written differently, or if one of those beneath it is: the common one, or
//! the one for all children of its supervisor.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::draft::Record;
use super::facts::{below, split};
use super::mistake::Mistake;
use super::{Config, Written};

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Difference {
    pub(super) before: Arc<Record>,
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
    pub(super) fn new(root: &str, config: &Config, before: Arc<Record>, forced: bool) -> Self {
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
    pub(super) fn is_since(&self, before: &Arc<Record>) -> bool {
        Arc::ptr_eq(&self.before, before)
    }
}
