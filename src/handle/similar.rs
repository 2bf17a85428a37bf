//! The names that may be meant by one that doesn't exist.
//!
//! They are looked up in the caller's task, among the children that supervisors declare. No supervisor is
//! asked, so children that were added later are not among them.

use super::route::SupervisorHandle;
use crate::child::ChildSpec;
use crate::error::ControlError;
use crate::path::{Path, SerialName};
use crate::runtime::SupervisorShared;
use crate::suggest;

/// How many names, and how many supervisors, are looked at.
const LOOKED_AT: usize = 1000;
/// How many paths an error lists.
const LISTED: usize = 3;

impl SupervisorHandle {
    /// Returns the error about a child that doesn't exist.
    pub(crate) fn not_found(&self, path: Path) -> ControlError {
        let similar = self.similar(&path);
        ControlError::NotFound { path, similar }
    }

    /// Adds the paths that may be meant to an error about a child that doesn't exist.
    pub(super) fn with_similar(&self, error: ControlError) -> ControlError {
        match error {
            ControlError::NotFound { path, similar } if similar.is_empty() => self.not_found(path),
            error => error,
        }
    }

    fn similar(&self, path: &Path) -> Vec<Path> {
        let Some((above, supervisor)) = self.supervisor.tree.nearest(path) else {
            return Vec::new();
        };
        let rest = path.as_str().get(above.as_str().len() + 1..).unwrap_or_default();
        let (name, below) = match rest.split_once('/') {
            Some((name, below)) => (name, Some(below)),
            None => (rest, None),
        };
        // The children of a dynamic supervisor come and go.
        if SerialName::parse(name).is_some() {
            return Vec::new();
        }
        let blueprint = supervisor.blueprint();
        // A declared child that was deleted is not meant.
        let names = blueprint.children.iter().map(ChildSpec::name).filter(|it| *it != name);
        let similar = suggest::similar(name, names.take(LOOKED_AT), LISTED);
        let with_rest = |name: &str| {
            let child = above.join(name);
            let whole = below.map(|below| Path::from_text([child.as_str(), "/", below].concat()));
            whole.filter(|whole| self.declares(whole)).unwrap_or(child)
        };
        let similar: Vec<_> = similar.into_iter().map(with_rest).collect();
        if similar.is_empty() { self.namesakes(path) } else { similar }
    }

    /// Returns the declared children with the last name of this path, below any supervisor that runs.
    fn namesakes(&self, path: &Path) -> Vec<Path> {
        let running = self.supervisor.tree.some_supervisors(LOOKED_AT);
        let declaring = running.iter().filter(|it| has_child(it, path.name()));
        let paths = declaring.map(|it| it.path().join(path.name()));
        let mut paths: Vec<_> = paths.filter(|it| it != path).collect();
        paths.sort_unstable();
        paths.truncate(LISTED);
        paths
    }

    /// Whether a supervisor that runs declares a child at this path.
    fn declares(&self, path: &Path) -> bool {
        let above = path.parent().and_then(|above| self.supervisor.tree.supervisor(&above));
        above.is_some_and(|above| has_child(&above, path.name()))
    }
}

fn has_child(supervisor: &SupervisorShared, name: &str) -> bool {
    supervisor.blueprint().keys.contains_key(name)
}
