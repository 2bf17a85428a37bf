//! Gathers the facts for a plan from a running tree.
//!
//! Only the supervisors of sections that have changed are asked, and only for the children that are named
//! there, unless a section for several children has a new configuration for them.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use super::Config;
use super::aside::aside;
use super::difference::Difference;
use super::facts::{Facts, Found, KnownChild, SupervisorFacts, all_declared, declared_at, split};
use crate::error::ControlError;
use crate::handle::SupervisorHandle;
use crate::path::Path;
use crate::runtime::request::{ChildFacts, Segment};
use crate::runtime::{Blueprint, SupervisorShared};

/// How many children are looked at to suggest the nearest names.
const SUGGESTED: usize = 1_000;

/// The supervisors to ask, by path, and about which of their children. `None`: about all.
type Wanted = BTreeMap<String, Option<Vec<Segment>>>;

/// What a plan asks about a tree.
#[derive(Debug, Default)]
struct Questions {
    wanted: Wanted,
    /// The sections that differ, which are those of supervisors or of workers.
    paths: Vec<String>,
    /// Those whose table `config` may be shared by children anywhere.
    shared: Vec<String>,
}

/// Gathers what a plan has to know.
pub(super) async fn gather(
    handle: &SupervisorHandle,
    root: &Arc<Blueprint>,
    config: &Arc<Config>,
    difference: &Arc<Difference>,
) -> Result<Facts, ControlError> {
    let facts = Facts { root: handle.root_path(), supervisors: BTreeMap::new() };
    if difference.all {
        return fill_all(handle, root, facts).await;
    }
    let (config, difference, name) =
        (Arc::clone(config), Arc::clone(difference), facts.root.clone());
    let questions =
        aside(handle, move || Questions::new(name.as_str(), &config, &difference)).await?;
    let Questions { wanted, paths, shared } = questions;
    let facts = fill(handle, root, facts, wanted).await?;
    let declared_root = Arc::clone(root);
    let (facts, supervisors, is_shared) = aside(handle, move || {
        let mut facts = facts;
        if paths.iter().any(|path| matches!(facts.find(path), Found::Unknown)) {
            facts.declare(&declared_root);
        }
        let of_child = |path: &str, is: fn(&KnownChild) -> bool| {
            matches!(facts.find(path), Found::Child(child, _) if is(child))
        };
        let is_shared = shared.iter().any(|path| !of_child(path, |child| child.config.is_some()));
        let is_supervisor = |path: &String| {
            !facts.supervisors.contains_key(path)
                && of_child(path, |child| child.rules.is_supervisor())
        };
        let supervisors = paths.into_iter().filter(is_supervisor);
        let supervisors: Wanted = supervisors.map(|path| (path, Some(Vec::new()))).collect();
        (facts, supervisors, is_shared)
    })
    .await?;
    if is_shared {
        return fill_all(handle, root, facts).await;
    }
    fill(handle, root, facts, supervisors).await
}

impl Questions {
    fn new(root: &str, config: &Config, difference: &Difference) -> Self {
        let Difference { before, changed, .. } = difference;
        let mut questions = Self::default();
        for path in changed {
            questions.ask(path);
            let new = config.section(root, path);
            let has_config = new.is_some_and(|it| it.node.get("config").is_some());
            if !path.ends_with('*') && (has_config || before.has_config(path)) {
                questions.shared.push(path.clone());
            }
        }
        for names in questions.wanted.values_mut().flatten() {
            names.sort_unstable();
            names.dedup();
        }
        questions
    }

    /// Asks what is at the path of a section, and whether what is above exists.
    fn ask(&mut self, path: &str) {
        let mut at = path;
        while let Some((above, name)) = split(at) {
            let wanted = self.wanted.entry(above.to_owned());
            let wanted = wanted.or_insert_with(|| Some(Vec::new()));
            match wanted {
                _ if name == "*" => *wanted = None,
                Some(names) => names.push(name.to_owned()),
                None => {}
            }
            at = above;
        }
        if path.is_empty() {
            self.wanted.entry(String::new()).or_insert_with(|| Some(Vec::new()));
        }
        self.paths.push(path.to_owned());
    }
}

/// Asks all supervisors about all of their children: those that run, and those that are declared.
async fn fill_all(
    handle: &SupervisorHandle,
    root: &Arc<Blueprint>,
    facts: Facts,
) -> Result<Facts, ControlError> {
    let (tree, blueprint) = (handle.clone(), Arc::clone(root));
    let (facts, wanted) = aside(handle, move || {
        let running = tree.all_running().into_iter().filter(has_sections);
        let mut wanted: Wanted = running.map(|it| (facts.below_root(it.path()), None)).collect();
        wanted.extend(all_declared(blueprint).into_iter().map(|(path, _)| (path, None)));
        (facts, wanted)
    })
    .await?;
    fill(handle, root, facts, wanted).await
}

/// Whether a configuration can name the children of a supervisor. A supervisor below a worker comes and goes with the
/// worker, so whether a file is valid would depend on the moment.
fn has_sections(supervisor: &Arc<SupervisorShared>) -> bool {
    supervisor.below_worker.is_none()
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
    let names = vec![path.name().to_owned()];
    let known = ask(handle, &above, Some(names)).await?;
    let known = known.ok_or_else(|| handle.not_found(path.clone()))?;
    facts.supervisors.insert(facts.below_root(&above), known);
    Ok(facts)
}

async fn fill(
    handle: &SupervisorHandle,
    root: &Arc<Blueprint>,
    mut facts: Facts,
    wanted: Wanted,
) -> Result<Facts, ControlError> {
    for (path, names) in wanted {
        let known = match ask(handle, &facts.full(&path), names).await? {
            Some(known) => Some(known),
            None => declared_at(root, &path).map(|it| SupervisorFacts::declared(&it)),
        };
        facts.supervisors.extend(known.map(|known| (path, known)));
    }
    Ok(facts)
}

/// Asks the supervisors that run at a path about the children with these names, or about all. `None`: no
/// supervisor runs there.
pub(super) async fn ask(
    handle: &SupervisorHandle,
    path: &Path,
    names: Option<Vec<Segment>>,
) -> Result<Option<SupervisorFacts>, ControlError> {
    let (mut blueprint, mut children) = (None, Vec::new());
    for supervisor in handle.all_at(path).into_iter().filter(has_sections) {
        let answer = match &names {
            Some(names) => some(handle, &supervisor, names).await,
            None => handle.all_facts(&supervisor, usize::MAX).await,
        };
        match answer {
            Ok(some) => children.extend(some),
            Err(error @ ControlError::Ended { .. }) => return Err(error),
            // It stops meanwhile.
            Err(_) => continue,
        }
        blueprint = Some(supervisor.blueprint());
    }
    let Some(blueprint) = blueprint else { return Ok(None) };
    aside(handle, move || {
        drop(names);
        Some(SupervisorFacts::new(&blueprint, children))
    })
    .await
}

/// Returns the facts about these children. If one doesn't exist, also those about others, for suggestions.
async fn some(
    handle: &SupervisorHandle,
    supervisor: &Arc<SupervisorShared>,
    names: &[Segment],
) -> Result<Vec<ChildFacts>, ControlError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    if supervisor.blueprint().is_dynamic() {
        let mut children = handle.all_facts(supervisor, usize::MAX).await?;
        let names: HashSet<_> = names.iter().map(String::as_str).collect();
        children.retain(|child| names.contains(&*child.name));
        return Ok(children);
    }
    let mut children = handle.facts_of(supervisor, names).await?;
    if children.len() < names.len() {
        let others = handle.all_facts(supervisor, SUGGESTED).await?;
        let known: BTreeSet<_> = children.iter().map(|child| Arc::clone(&child.name)).collect();
        children.extend(others.into_iter().filter(|child| !known.contains(&child.name)));
    }
    Ok(children)
}
