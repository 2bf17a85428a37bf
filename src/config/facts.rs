//! What a plan knows of a tree: its supervisors, and those of their children that matter.
//!
//! Gathered from a running tree, or from one that isn't started. The planner sees no other part of a tree.
//!
//! Of a running tree, only the supervisors of sections that have changed answer, and only about the children that are
//! named there, unless a section for several children has a new configuration for them.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use super::Config;
use super::apply::aside;
use super::draft::Difference;
use crate::child::{ChildSpec, ConfigSpec};
use crate::error::ControlError;
use crate::handle::SupervisorHandle;
use crate::path::Path;
use crate::policy::{ChildRules, Rules};
use crate::runtime::request::{ChildFacts, Segment};
use crate::runtime::{Blueprint, SupervisorShared};

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) root: Path,
    /// By path below the root; the root's is empty.
    pub(super) supervisors: BTreeMap<String, SupervisorFacts>,
}

#[derive(Debug)]
pub(super) struct SupervisorFacts {
    pub(super) rules: Arc<Rules>,
    pub(super) is_dynamic: bool,
    pub(super) children: BTreeMap<Arc<str>, KnownChild>,
}

/// A child, or all children of a dynamic supervisor with one name.
#[derive(Clone, Debug)]
pub(super) struct KnownChild {
    pub(super) rules: Arc<ChildRules>,
    pub(super) config: Option<Arc<ConfigSpec>>,
    pub(super) has_mailbox: bool,
    /// The last names of the paths.
    pub(super) segments: Vec<String>,
    /// Whether it doesn't run yet, because a plan adds it.
    pub(super) is_new: bool,
}

/// What is at a path.
pub(super) enum Found<'a> {
    Root,
    Child(&'a KnownChild, &'a SupervisorFacts),
    /// Nothing yet. A child may come.
    Possible,
    Unknown,
}

impl Facts {
    /// Describes a tree that isn't started, with everything that is declared below.
    pub(super) fn of_blueprint(blueprint: &Blueprint) -> Self {
        let root = Path::root(&blueprint.name);
        let mut facts = Self { root, supervisors: BTreeMap::new() };
        let all = all_declared(Arc::new(blueprint.clone())).into_iter();
        facts.supervisors.extend(all.map(|(path, it)| (path, SupervisorFacts::declared(&it))));
        facts
    }

    /// Adds the declared supervisors that nothing is known of, so that their children are suggested.
    pub(super) fn declare(&mut self, root: &Arc<Blueprint>) {
        for (path, supervisor) in Self::of_blueprint(root).supervisors {
            self.supervisors.entry(path).or_insert(supervisor);
        }
    }

    /// Marks a child that doesn't run yet, and everything below it.
    pub(super) fn mark_new(&mut self, above: &str, name: &str) {
        let path = below(above, name);
        let supervisor = self.supervisors.get_mut(above);
        if let Some(child) = supervisor.and_then(|it| it.children.get_mut(name)) {
            child.is_new = true;
        }
        let prefix = format!("{path}/");
        for (at, supervisor) in &mut self.supervisors {
            if *at == path || at.starts_with(&prefix) {
                supervisor.children.values_mut().for_each(|child| child.is_new = true);
            }
        }
    }

    /// Removes children that new code doesn't have, or replaces.
    pub(super) fn remove(&mut self, above: &str, names: &[String]) {
        if let Some(supervisor) = self.supervisors.get_mut(above) {
            for name in names {
                supervisor.children.remove(&**name);
            }
        }
    }

    /// Adds what is known of the children that no code declares.
    pub(super) fn extend(&mut self, running: Self) {
        for (path, supervisor) in running.supervisors {
            let Some(known) = self.supervisors.get_mut(&path) else { continue };
            for (name, child) in supervisor.children {
                known.children.entry(name).or_insert(child);
            }
        }
    }

    /// Returns what is at a path below the root.
    pub(super) fn find(&self, path: &str) -> Found<'_> {
        let Some((above, name)) = split(path) else {
            return self.supervisors.get("").map_or(Found::Unknown, |_| Found::Root);
        };
        let Some(supervisor) = self.supervisors.get(above) else {
            return if self.may_have_children(above) { Found::Possible } else { Found::Unknown };
        };
        match supervisor.children.get(name) {
            Some(child) => Found::Child(child, supervisor),
            None if supervisor.is_dynamic => Found::Possible,
            None => Found::Unknown,
        }
    }

    /// Whether something may be a supervisor that isn't known, since it is made by a factory or doesn't exist
    /// yet.
    fn may_have_children(&self, path: &str) -> bool {
        match self.find(path) {
            Found::Child(child, _) => child.rules.is_supervisor(),
            Found::Possible => true,
            Found::Root | Found::Unknown => false,
        }
    }

    /// Whether a path is that of a supervisor that is known.
    pub(super) fn is_supervisor(&self, path: &str) -> bool {
        self.supervisors.contains_key(path) || self.may_have_children(path)
    }

    /// Returns the full path of a path below the root, without serial numbers.
    pub(super) fn full(&self, path: &str) -> Path {
        if path.is_empty() {
            return self.root.clone();
        }
        path.split('/').fold(self.root.clone(), |above, name| above.join(name))
    }

    /// Returns the paths of sections that children take their values from, and that aren't their own.
    pub(super) fn shared(&self) -> BTreeSet<String> {
        let section = |child: &KnownChild| child.config.as_ref()?.section.clone();
        let children = self.supervisors.values().flat_map(|it| it.children.values());
        children.filter_map(section).collect()
    }

    /// Returns a full path below the root, without serial numbers.
    pub(super) fn below_root(&self, path: &Path) -> String {
        let path = path.without_serials();
        path.as_str().get(self.root.as_str().len() + 1..).unwrap_or_default().to_owned()
    }

    /// Returns all paths that are known.
    pub(super) fn paths(&self) -> impl Iterator<Item = String> {
        self.supervisors
            .iter()
            .flat_map(|(above, it)| it.children.keys().map(move |name| below(above, name)))
    }

    /// Returns all children that are known, with their paths.
    pub(super) fn children(&self) -> impl Iterator<Item = (String, &KnownChild)> {
        self.supervisors.iter().flat_map(|(above, it)| {
            it.children.iter().map(move |(name, child)| (below(above, name), child))
        })
    }
}

impl KnownChild {
    pub(super) fn of_spec(spec: &ChildSpec, supervisor: &Arc<Rules>) -> (Arc<str>, Self) {
        let name = Arc::clone(spec.factory.name());
        let segments = vec![spec.name().to_owned()];
        let (rules, config) =
            (ChildRules::of(&spec.options, supervisor), spec.factory.config().cloned());
        let has_mailbox = spec.factory.mailbox().is_some();
        (name, Self { rules, config, has_mailbox, segments, is_new: false })
    }
}

impl SupervisorFacts {
    /// Describes a supervisor that doesn't run.
    pub(super) fn declared(blueprint: &Blueprint) -> Self {
        let children = blueprint.children.iter();
        let children = children.map(|it| KnownChild::of_spec(it, &blueprint.rules)).collect();
        let (rules, is_dynamic) = (Arc::clone(&blueprint.rules), blueprint.is_dynamic());
        Self { rules, is_dynamic, children }
    }

    /// Describes the supervisors that run at a path.
    pub(super) fn new(blueprint: &Blueprint, facts: Vec<ChildFacts>) -> Self {
        let mut children: BTreeMap<Arc<str>, KnownChild> = BTreeMap::new();
        for ChildFacts { name, serial, rules, config, has_mailbox } in facts {
            let segment = match serial {
                Some(serial) => format!("{name}#{serial}"),
                None => name.to_string(),
            };
            let new =
                || KnownChild { rules, config, has_mailbox, segments: Vec::new(), is_new: false };
            children.entry(name).or_insert_with(new).segments.push(segment);
        }
        // Supervisors below a dynamic one may have children with one name.
        for child in children.values_mut() {
            child.segments.sort_unstable();
            child.segments.dedup();
        }
        Self { rules: Arc::clone(&blueprint.rules), is_dynamic: blueprint.is_dynamic(), children }
    }
}

/// Returns the root and all supervisors that are declared below it, by their paths.
fn all_declared(root: Arc<Blueprint>) -> Vec<(String, Arc<Blueprint>)> {
    let (mut all, mut open) = (Vec::new(), vec![(String::new(), root)]);
    while let Some((path, blueprint)) = open.pop() {
        for spec in blueprint.children.iter() {
            open.extend(spec.factory.blueprint().map(|it| (below(&path, spec.name()), it)));
        }
        all.push((path, blueprint));
    }
    all
}

/// Returns the declared supervisor at a path below `root`.
fn declared_at(root: &Arc<Blueprint>, path: &str) -> Option<Arc<Blueprint>> {
    let names = path.split('/').filter(|name| !name.is_empty());
    names
        .into_iter()
        .try_fold(Arc::clone(root), |above, name| above.child(name)?.factory.blueprint())
}

/// Returns the place of a child in the start order of the whole tree, as far as it is declared.
pub(super) fn start_order(root: &Arc<Blueprint>, path: &Path) -> Vec<usize> {
    let mut above = Some(Arc::clone(root));
    let mut places = Vec::new();
    for name in path.as_str().split('/').skip(1) {
        let place = above.as_ref().and_then(|above| above.place(name));
        above = above.and_then(|above| above.child(name)?.factory.blueprint());
        places.push(place.unwrap_or(usize::MAX));
    }
    places
}

/// Returns the path of the supervisor and the name of a child, or `None` for the root.
pub(super) fn split(path: &str) -> Option<(&str, &str)> {
    (!path.is_empty()).then(|| path.rsplit_once('/').unwrap_or(("", path)))
}

/// Returns the path of a child.
pub(super) fn below(above: &str, name: &str) -> String {
    if above.is_empty() { name.to_owned() } else { format!("{above}/{name}") }
}

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
