//! Paths whose text is made when it is first needed.

use std::fmt;
use std::iter;
use std::sync::{Arc, OnceLock};

use super::tree_path::Path;

/// A path as its last name and the path above.
///
/// The texts of all paths in a deep chain of supervisors grow with the square of its depth, and few of
/// them are ever read. perf: budgets row "deep-build"
#[derive(Clone)]
pub(crate) struct LazyPath(Arc<PathNode>);

struct PathNode {
    parent: Option<LazyPath>,
    name: Arc<str>,
    path: OnceLock<Path>,
}

impl LazyPath {
    /// Returns the path of a root.
    pub(crate) fn root(name: &str) -> Self {
        Self::new(None, name.into())
    }

    /// Returns the path of the child with this name.
    pub(crate) fn child(&self, name: &Arc<str>) -> Self {
        Self::new(Some(self.clone()), Arc::clone(name))
    }

    fn new(parent: Option<Self>, name: Arc<str>) -> Self {
        Self(Arc::new(PathNode { parent, name, path: OnceLock::new() }))
    }

    /// Whether this is the path of a root.
    pub(crate) fn is_root(&self) -> bool {
        self.0.parent.is_none()
    }

    /// Returns the last name.
    pub(crate) fn name(&self) -> &str {
        &self.0.name
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path.get_or_init(|| {
            let mut names: Vec<_> = self.upward().map(Self::name).collect();
            names.reverse();
            Path::from_text(names.join("/"))
        })
    }

    /// Returns the path of the child with this name.
    pub(crate) fn join(&self, name: &str) -> Path {
        self.path().join(name)
    }

    /// Returns the number of names.
    pub(crate) fn len(&self) -> usize {
        self.upward().count()
    }

    /// Returns this path and all above it, the root last.
    fn upward(&self) -> impl Iterator<Item = &Self> {
        iter::successors(Some(self), |path| path.0.parent.as_ref())
    }
}

/// Without recursion, since a tree can be thousands of levels deep.
impl Drop for PathNode {
    fn drop(&mut self) {
        let mut above = self.parent.take();
        while let Some(path) = above {
            above = Arc::into_inner(path.0).and_then(|mut node| node.parent.take());
        }
    }
}

/// Makes the text, so that a log line that isn't enabled needs none.
impl fmt::Display for LazyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.path(), f)
    }
}

/// Writes the text, as [`Path`] does.
impl fmt::Debug for LazyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl PartialEq for LazyPath {
    fn eq(&self, other: &Self) -> bool {
        let (mut this, mut that) = (self.upward(), other.upward());
        loop {
            match (this.next(), that.next()) {
                (Some(this), Some(that)) if Arc::ptr_eq(&this.0, &that.0) => return true,
                (Some(this), Some(that)) if this.name() == that.name() => {}
                (None, None) => return true,
                _ => return false,
            }
        }
    }
}

impl Eq for LazyPath {}
