//! What a plan knows of a tree: its supervisors, and those of their children that matter.
//!
//! Gathered from a running tree, or from one that isn't started. The planner sees no other part of a tree.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::child::{ChildSpec, ConfigSpec};
use crate::path::Path;
use crate::policy::{ChildRules, Rules};
use crate::runtime::Blueprint;
use crate::runtime::request::ChildFacts;

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
    /// The last names of the paths.
    pub(super) segments: Vec<String>,
    /// Whether it doesn't run yet, because a plan adds it.
    pub(super) is_new: bool,
}

/// What is at a path.
pub(super) enum Found<'a> {
    Root(&'a SupervisorFacts),
    Child(&'a KnownChild, &'a SupervisorFacts),
    /// Nothing yet. A child may come.
    Possible,
    Unknown,
}

impl Facts {
    /// Describes a tree that isn't started, with everything that is declared below.
    pub(super) fn of_blueprint(blueprint: &Blueprint) -> Self {
        let root = crate::path::Path::root(&blueprint.name);
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
            return self.supervisors.get("").map_or(Found::Unknown, Found::Root);
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
            Found::Root(_) | Found::Unknown => false,
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
        (name, Self { rules, config, segments, is_new: false })
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
        for ChildFacts { name, serial, rules, config } in facts {
            let segment = match serial {
                Some(serial) => format!("{name}#{serial}"),
                None => name.to_string(),
            };
            let new = || KnownChild { rules, config, segments: Vec::new(), is_new: false };
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

/// Returns the blueprint of a child that is a supervisor with declared children.
pub(super) fn declared(spec: &ChildSpec) -> Option<Arc<Blueprint>> {
    spec.factory.blueprint()
}

/// Returns the root and all supervisors that are declared below it, by their paths.
pub(super) fn all_declared(root: Arc<Blueprint>) -> Vec<(String, Arc<Blueprint>)> {
    let (mut all, mut open) = (Vec::new(), vec![(String::new(), root)]);
    while let Some((path, blueprint)) = open.pop() {
        for spec in blueprint.children.iter() {
            open.extend(declared(spec).map(|it| (below(&path, spec.name()), it)));
        }
        all.push((path, blueprint));
    }
    all
}

/// Returns the declared supervisor at a path below `root`.
pub(super) fn declared_at(root: &Arc<Blueprint>, path: &str) -> Option<Arc<Blueprint>> {
    let names = path.split('/').filter(|name| !name.is_empty());
    names.into_iter().try_fold(Arc::clone(root), |above, name| declared(above.child(name)?))
}

/// Returns the place of a child in the start order of the whole tree, as far as it is declared.
pub(super) fn start_order(root: &Arc<Blueprint>, path: &Path) -> Vec<usize> {
    let mut above = Some(Arc::clone(root));
    let mut places = Vec::new();
    for name in path.as_str().split('/').skip(1) {
        let place = above.as_ref().and_then(|above| above.place(name));
        above = above.and_then(|above| declared(above.child(name)?));
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
