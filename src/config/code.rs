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

use super::change::{Change, ChangeKind, Effect};
use super::facts::{below, declared};
use crate::child::ChildSpec;
use crate::path::Path;
use crate::policy::{ChildOptions, Rules};
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
}

impl NewCode {
    /// Leaves out children to stop that don't exist, and children to start that a call has added already.
    pub(super) fn keep_existing(&mut self, existing: &HashSet<String>) {
        self.stopped.retain(|name| existing.contains(name));
        let stopped = &self.stopped;
        self.started.retain(|name| !existing.contains(name) || stopped.contains(name));
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
        let (mut stopped, mut started) = (Vec::new(), Vec::new());
        list_rules(&full, &old.rules, &new.rules, &mut changes);
        for spec in old.children.iter() {
            let name = spec.name();
            let child = full.join(name);
            match new.child(name) {
                None => {
                    changes.push(change(&child, ChangeKind::Removed, "", Effect::Live));
                    stopped.push(name.to_owned());
                }
                Some(new) if is_replaced(spec, new) => {
                    changes.push(change(&child, ChangeKind::Changed, "", Effect::NeedsRestart));
                    stopped.push(name.to_owned());
                }
                Some(new) => list_options(&child, &spec.options, &new.options, &mut changes),
            }
        }
        for spec in new.children.iter() {
            let name = spec.name();
            match old.child(name) {
                None => {
                    let child = full.join(name);
                    changes.push(change(&child, ChangeKind::Added, "", Effect::Live));
                    started.push(name.to_owned());
                }
                Some(old) if is_replaced(old, spec) => started.push(name.to_owned()),
                Some(old) => {
                    if let (Some(old), Some(new)) = (declared(old), declared(spec)) {
                        open.push((below(&path, name), full.join(name), old, new));
                    }
                }
            }
        }
        all.push(NewCode { path, full, old, new, stopped, started });
    }
    Some((all, changes))
}

fn change(path: &Path, kind: ChangeKind, key: &str, effect: Effect) -> Change {
    let (path, key) = (path.to_string(), key.to_owned());
    Change { path, kind, key, old: None, new: None, effect, place: None }
}

/// Whether a child can't go on as the new one.
fn is_replaced(old: &ChildSpec, new: &ChildSpec) -> bool {
    let kind = |spec: &ChildSpec| {
        let options = &spec.options;
        (
            options.supervisor.is_some(),
            declared(spec).map(|it| it.is_dynamic()),
            options.signals,
            options.signals_itself,
            options.on_message,
            options.delays_delivery,
            spec.factory.mailbox().map(|mailbox| Arc::as_ptr(mailbox).cast::<()>()),
            spec.factory.config().map(|config| config.type_id),
        )
    };
    kind(old) != kind(new)
}

/// Lists the options of a child that differ, as far as they can be compared.
fn list_options(path: &Path, old: &ChildOptions, new: &ChildOptions, changes: &mut Vec<Change>) {
    let (later, live) = (Effect::AtNextFailure, Effect::Live);
    let differs = [
        ("restart", old.restart != new.restart, later),
        ("backoff", old.backoff != new.backoff, later),
        ("limits", old.limits != new.limits, later),
        ("on_exhausted", old.on_exhausted != new.on_exhausted, later),
        ("failure_log", old.failure_log != new.failure_log, later),
        ("activation_timeout", old.activation_timeout != new.activation_timeout, later),
        ("on_leak", old.on_leak != new.on_leak, later),
        ("shutdown", old.shutdown != new.shutdown, live),
        ("watchdog", old.watchdog != new.watchdog, live),
        ("significant", old.significant != new.significant, live),
        ("essential", old.essential != new.essential, live),
        ("stop_order", old.stop_order != new.stop_order, live),
    ];
    let differing = differs.into_iter().filter(|(_, differs, _)| *differs);
    changes
        .extend(differing.map(|(key, _, effect)| change(path, ChangeKind::Changed, key, effect)));
}

fn list_rules(path: &Path, old: &Arc<Rules>, new: &Arc<Rules>, changes: &mut Vec<Change>) {
    let texts = |rules: &Rules| {
        [
            ("strategy", Some(rules.strategy.to_string())),
            ("auto_shutdown", Some(rules.auto_shutdown.to_string())),
            ("start", Some(rules.start.to_string())),
            ("restarts", rules.intensity.map(|intensity| intensity.to_string())),
            ("on_exhausted", Some(rules.on_exhausted.to_string())),
            ("leak_timeout", Some(format!("{:?}", rules.leak_timeout))),
            ("stop_deadline", rules.stop_deadline.map(|deadline| format!("{deadline:?}"))),
            ("max_children", rules.max_children.map(|max| max.to_string())),
        ]
    };
    for ((key, old), (_, new)) in texts(old.code()).into_iter().zip(texts(new.code())) {
        if old != new {
            let change = change(path, ChangeKind::Changed, key, Effect::Live);
            changes.push(Change { old, new, ..change });
        }
    }
}
