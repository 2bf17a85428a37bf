//! Positions of walks down a tree.

use std::sync::Arc;

use super::tree_path::Path;

/// The current position of a walk down a tree: a path, and the names below it.
///
/// The text of a path is made only on demand. For a deep chain of supervisors, the texts of all
/// paths together would grow with the square of its depth.
#[derive(Debug)]
pub(crate) struct Trail {
    from: Path,
    names: Vec<Arc<str>>,
}

impl Trail {
    pub(crate) fn push(&mut self, name: &Arc<str>) {
        self.names.push(Arc::clone(name));
    }

    pub(crate) fn pop(&mut self) {
        self.names.pop();
    }

    pub(crate) fn path(&self) -> Path {
        let mut path = String::from(self.from.as_str());
        for name in &self.names {
            path.extend(["/", name]);
        }
        Path::from_text(path)
    }

    pub(crate) fn join(&self, name: &str) -> Path {
        self.path().join(name)
    }

    /// Returns the last name.
    pub(crate) fn name(&self) -> &str {
        match self.names.last() {
            Some(name) => name,
            None => self.from.name(),
        }
    }
}

impl From<Path> for Trail {
    fn from(from: Path) -> Self {
        Self { from, names: Vec::new() }
    }
}
