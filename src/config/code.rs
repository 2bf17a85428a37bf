//! The difference between the code of a running tree and that of a new one.
//!
//! Pure: it compares two blueprints by the names of their children. Functions and closures can't be
//! compared, so the new ones replace the old ones at the next start of their child.
//!
//! # Invariants
//!
//! 1. A child that both trees have keeps its task, unless it is *replaced*: it is another kind of child, has
//!    a different mailbox, becomes ready in a different way, or its configuration has a different type.
//! 2. Children that only calls have added belong to no code, and are kept.

use std::collections::HashSet;
use std::sync::Arc;

use super::facts::below;
use super::plan::{Change, ChangeKind, Effect};
use crate::child::ChildSpec;
use crate::path::Path;
use crate::policy::option_table::{OPTIONS, OptionText};
use crate::policy::{ChildRules, Limits, Rules};
use crate::runtime::Blueprint;

/// The new code of one supervisor.
#[derive(Debug)]
pub(super) struct NewCode {
    /// Below the root.
    pub(super) path: String,
    pub(super) full: Path,
    pub(super) old: Arc<Blueprint>,
    pub(super) new: Arc<Blueprint>,
    /// Children that the new code lacks, or replaces, in start order.
    pub(super) stopped: Vec<String>,
    /// Children that the new code adds, or replaces, in start order.
    pub(super) started: Vec<String>,
    /// Children whose configuration comes from a different section.
    pub(super) moved: Vec<String>,
}

impl NewCode {
    /// Leaves out children to stop that don't exist, and children to start that a call has added already. Returns
    /// the paths of the latter.
    pub(super) fn keep_existing(&mut self, existing: &HashSet<String>) -> Vec<Path> {
        self.stopped.retain(|name| existing.contains(name));
        let (stopped, full) = (&self.stopped, &self.full);
        let is_kept = |name: &String| existing.contains(name) && !stopped.contains(name);
        let kept = self.started.iter().filter(|name| is_kept(name));
        let kept = kept.map(|name| full.join(name)).collect();
        self.started.retain(|name| !is_kept(name));
        kept
    }
}

/// Compares the code of two trees. `None`: the root itself is a different kind of supervisor.
pub(super) fn compare(
    root: &Path,
    old: Arc<Blueprint>,
    new: Arc<Blueprint>,
) -> Option<(Vec<NewCode>, Vec<Change>)> {
    if old.is_dynamic() != new.is_dynamic() {
        return None;
    }
    let (mut all, mut changes) = (Vec::new(), Vec::new());
    let mut open = vec![(String::new(), root.clone(), old, new)];
    while let Some((path, full, old, new)) = open.pop() {
        let (mut stopped, mut started, mut moved) = (Vec::new(), Vec::new(), Vec::new());
        list_rules(&full, &old.rules, &new.rules, &mut changes);
        for spec in old.children.iter() {
            let name = spec.name();
            let child = full.join(name);
            match new.child(name) {
                None => {
                    changes.push(Change::new(&child, ChangeKind::Removed, "", Effect::Live));
                    stopped.push(name.to_owned());
                }
                Some(new) if is_replaced(spec, new) => {
                    changes.push(Change::new(
                        &child,
                        ChangeKind::Changed,
                        "",
                        Effect::NeedsRestart,
                    ));
                    stopped.push(name.to_owned());
                }
                Some(child_now) => {
                    let was = (ChildRules::of(&spec.options, old.rules.code()), spec);
                    let is = (ChildRules::of(&child_now.options, new.rules.code()), child_now);
                    list_options(&child, &was, &is, &mut changes);
                    let section = |spec: &ChildSpec| spec.factory.config()?.section.clone();
                    if section(spec) != section(child_now) {
                        moved.push(name.to_owned());
                    }
                }
            }
        }
        for spec in new.children.iter() {
            let name = spec.name();
            match old.child(name) {
                None => {
                    let child = full.join(name);
                    changes.push(Change::new(&child, ChangeKind::Added, "", Effect::Live));
                    started.push(name.to_owned());
                }
                Some(old) if is_replaced(old, spec) => started.push(name.to_owned()),
                Some(old) => {
                    if let (Some(old), Some(new)) =
                        (old.factory.blueprint(), spec.factory.blueprint())
                    {
                        open.push((below(&path, name), full.join(name), old, new));
                    }
                }
            }
        }
        all.push(NewCode { path, full, old, new, stopped, started, moved });
    }
    Some((all, changes))
}

/// Whether a child can't go on as the new one.
fn is_replaced(old: &ChildSpec, new: &ChildSpec) -> bool {
    let kind = |spec: &ChildSpec| {
        let options = &spec.options;
        (
            options.facts.kind.is_supervisor(),
            spec.factory.blueprint().map(|it| it.is_dynamic()),
            options.facts.signals,
            options.facts.signals_itself,
            options.on_message,
            options.delays_delivery,
            options.lease_grace,
            #[cfg(feature = "lease")]
            spec.lease.as_ref().map(|lease| Arc::clone(lease.name())),
            spec.factory.mailbox().map(|mailbox| Arc::as_ptr(mailbox).cast::<()>()),
            spec.factory.config().map(|config| config.type_id),
        )
    };
    kind(old) != kind(new)
}

/// Lists the options of a child that differ, as far as they can be compared. Those that its supervisor sets for all
/// children count as well.
fn list_options(
    path: &Path,
    old: &(Arc<ChildRules>, &ChildSpec),
    new: &(Arc<ChildRules>, &ChildSpec),
    changes: &mut Vec<Change>,
) {
    let (later, live) = (Effect::AtNextFailure, Effect::Live);
    list_table(path, changes, |text| match text {
        OptionText::OfChild(text) => (text(&old.0), text(&new.0)),
        OptionText::OfSupervisor(_) => (None, None),
    });
    // Those that files don't have.
    let texts = |(_, spec): &(Arc<ChildRules>, &ChildSpec)| {
        let options = &spec.options;
        let requires = (!spec.requires.is_empty()).then(|| spec.requires.join(", "));
        [
            ("significant", Some(options.significant.to_string()), live),
            ("essential", options.essential.map(|it| it.to_string()), live),
            ("stop_order", Some(options.stop_order.to_string()), live),
            ("requires", requires, later),
        ]
    };
    for ((key, old, effect), (_, new, _)) in texts(old).into_iter().zip(texts(new)) {
        list_text(path, key, (old, new), effect, changes);
    }
    let ((old, _), (new, _)) = (old, new);
    // Those that have no word.
    let differs = [
        ("backoff", old.backoff != new.backoff),
        ("limits", written(old) != written(new)),
        ("on_exhausted", old.on_exhausted != new.on_exhausted),
        ("failure_log", old.failure_log != new.failure_log),
    ];
    let differing = differs.into_iter().filter(|(_, differs)| *differs);
    let change = |(key, _)| Change::new(path, ChangeKind::Changed, key, later);
    changes.extend(differing.map(change));
}

/// The limits of a child that are written. The built-in one changes with other options, which are listed.
fn written(rules: &ChildRules) -> Option<Limits> {
    rules.limits(None).filter(|limits| !limits.is_default)
}

fn list_rules(path: &Path, old: &Arc<Rules>, new: &Arc<Rules>, changes: &mut Vec<Change>) {
    list_table(path, changes, |text| match text {
        OptionText::OfSupervisor(text) => (text(old.code()), text(new.code())),
        OptionText::OfChild(_) => (None, None),
    });
}

/// Lists the options of the table that differ, except those that `intensity` shows. `texts` returns the old value and
/// the new one, or none for an option of something else.
fn list_table(
    path: &Path,
    changes: &mut Vec<Change>,
    texts: impl Fn(OptionText) -> (Option<String>, Option<String>),
) {
    for option in OPTIONS.iter().filter(|it| !matches!(it.key, "max_restarts" | "period")) {
        let effect = Effect::of(option.takes_effect);
        list_text(path, option.key, texts(option.text), effect, changes);
    }
}

/// Lists a value if its text differs.
fn list_text(
    path: &Path,
    key: &str,
    (old, new): (Option<String>, Option<String>),
    effect: Effect,
    changes: &mut Vec<Change>,
) {
    if old != new {
        let text = |it: Option<String>| Some(it.unwrap_or_else(|| "none".to_owned()));
        let change = Change::new(path, ChangeKind::Changed, key, effect);
        changes.push(Change { old: text(old), new: text(new), ..change });
    }
}
