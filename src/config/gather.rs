//! Gathers the facts for a plan from a running tree.
//!
//! Only the supervisors of sections that have changed are asked, and only for the children that are named
//! there, unless a section for several children has a new configuration for them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Config;
use super::draft::Record;
use super::facts::{Facts, Found, SupervisorFacts, below, declared_at, split};
use super::node::Node;
use crate::error::ControlError;
use crate::handle::SupervisorHandle;
use crate::path::Path;
use crate::runtime::SupervisorShared;
use crate::runtime::request::ChildFacts;

/// How many children are looked at to suggest the nearest names.
const SUGGESTED: usize = 1_000;

/// Gathers what a plan has to know.
pub(super) async fn gather(
    handle: &SupervisorHandle,
    config: &Config,
    before: &Record,
    forced: bool,
) -> Result<Facts, ControlError> {
    let root = handle.root_path();
    // Paths that are written twice are found by the planner.
    let (sections, _) = config.sections(root.as_str());
    let mut facts = Facts { root, supervisors: BTreeMap::new() };
    let everything = |facts: &Facts| -> BTreeSet<String> {
        handle.all_running().iter().map(|it| facts.below_root(it.path())).collect()
    };
    let common = config.common().cloned().unwrap_or_default();
    let all = forced || common.get("config") != before.common.get("config");
    let mut wanted: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut whole: BTreeSet<String> = BTreeSet::new();
    let mut changed = Vec::new();
    if all {
        whole = everything(&facts);
    }
    let paths: BTreeSet<_> = before.sections.keys().chain(sections.keys()).collect();
    let same = |path: &str| {
        let old = before.sections.get(path).map(|it| &it.own);
        old == sections.get(path).map(|it| it.node)
    };
    let all_changed = forced || common != before.common;
    for path in paths {
        let general = split(path).map(|(above, _)| below(above, "*"));
        if !all_changed && same(path) && general.is_none_or(|general| same(&general)) {
            continue;
        }
        changed.push(path.clone());
        // It, and whether what is above exists.
        let mut at = path.as_str();
        while let Some((above, name)) = split(at) {
            if name != "*" {
                wanted.entry(above.to_owned()).or_default().insert(name.to_owned());
            }
            at = above;
        }
        let Some((above, name)) = split(path) else {
            wanted.entry(String::new()).or_default();
            continue;
        };
        if name == "*" {
            whole.insert(above.to_owned());
        } else {
            // Whether it is a supervisor itself.
            wanted.entry(path.clone()).or_default();
        }
    }
    fill(handle, &mut facts, &wanted, &whole).await?;
    // A table `config` that isn't the one of a child may be shared by children anywhere.
    let shared = changed.iter().any(|path| {
        let has = |node: Option<&Node>| node.is_some_and(|node| node.get("config").is_some());
        let old = before.sections.get(path).map(|it| &it.own);
        let is_own = matches!(facts.find(path), Found::Child(child, _) if child.config.is_some());
        !path.ends_with('*') && !is_own && (has(old) || has(sections.get(path).map(|it| it.node)))
    });
    if shared && !all {
        let whole = everything(&facts);
        fill(handle, &mut facts, &BTreeMap::new(), &whole).await?;
    }
    Ok(facts)
}

/// Gathers what is known of one child.
pub(super) async fn gather_child(
    handle: &SupervisorHandle,
    path: &Path,
) -> Result<Facts, ControlError> {
    let mut facts = Facts { root: handle.root_path(), supervisors: BTreeMap::new() };
    let Some(above) = path.parent() else {
        return Err(ControlError::NotAChild { path: path.to_string() });
    };
    let Some(supervisor) = handle.running_at(&above) else {
        return Err(ControlError::NotFound { path: path.clone() });
    };
    let names = BTreeSet::from([path.name().to_owned()]);
    let children = some(handle, &supervisor, &names).await?;
    let supervisor = SupervisorFacts::new(&supervisor.blueprint(), children);
    facts.supervisors.insert(facts.below_root(&above), supervisor);
    Ok(facts)
}

/// Asks supervisors for some of their children, or for all.
async fn fill(
    handle: &SupervisorHandle,
    facts: &mut Facts,
    wanted: &BTreeMap<String, BTreeSet<String>>,
    whole: &BTreeSet<String>,
) -> Result<(), ControlError> {
    for path in wanted.keys().chain(whole).cloned().collect::<BTreeSet<_>>() {
        let Some(supervisor) = handle.running_at(&facts.full(&path)) else {
            let root = handle.running_at(&facts.root).map(|root| root.blueprint());
            if let Some(declared) = root.and_then(|root| declared_at(&root, &path)) {
                facts.supervisors.insert(path, SupervisorFacts::declared(&declared));
            }
            continue;
        };
        let children = match wanted.get(&path) {
            Some(names) if !whole.contains(&path) => some(handle, &supervisor, names).await?,
            _ => handle.all_facts(&supervisor, usize::MAX).await?,
        };
        let blueprint = supervisor.blueprint();
        facts.supervisors.insert(path, SupervisorFacts::new(&blueprint, children));
    }
    Ok(())
}

/// Returns the facts about these children. If one doesn't exist, also those about others, for suggestions.
async fn some(
    handle: &SupervisorHandle,
    supervisor: &Arc<SupervisorShared>,
    names: &BTreeSet<String>,
) -> Result<Vec<ChildFacts>, ControlError> {
    if supervisor.blueprint().is_dynamic() {
        let mut children = handle.all_facts(supervisor, usize::MAX).await?;
        children.retain(|child| names.contains(&*child.name));
        return Ok(children);
    }
    let wanted: Vec<_> = names.iter().cloned().collect();
    let mut children = handle.facts_of(supervisor, &wanted).await?;
    if children.len() < wanted.len() {
        let others = handle.all_facts(supervisor, SUGGESTED).await?;
        let known: BTreeSet<_> = children.iter().map(|child| Arc::clone(&child.name)).collect();
        children.extend(others.into_iter().filter(|child| !known.contains(&child.name)));
    }
    Ok(children)
}
