//! The path of a child.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::iter;
use std::num::NonZeroU64;
use std::sync::{Arc, OnceLock};

use serde::{Serialize, Serializer};

/// The position of a child in its tree: the names from the root down to it, as in
/// `app/ingest/mqtt`.
///
/// A clone shares the names. Paths are ordered name by name, so a sorted list has the children of a
/// supervisor directly behind it.
#[derive(Clone)]
pub struct Path(Arc<PathNode>);

/// The last name of a path, and the path above it.
///
/// The text is made when it is first needed: the texts of all paths in a deep chain of supervisors grow
/// with the square of its depth.
struct PathNode {
    parent: Option<Path>,
    name: Arc<str>,
    text: OnceLock<Box<str>>,
}

impl Path {
    /// Returns the path of a root.
    pub(crate) fn root(name: &str) -> Self {
        Self::new(None, name.into())
    }

    /// Returns the path of the child with this name.
    pub(crate) fn join(&self, name: &str) -> Self {
        Self::new(Some(self.clone()), name.into())
    }

    /// Returns the path of the child with this name and serial number.
    pub(crate) fn child(&self, name: &Arc<str>, serial: Option<NonZeroU64>) -> Self {
        let name = match serial {
            None => Arc::clone(name),
            Some(serial) => format!("{name}#{serial}").into(),
        };
        Self::new(Some(self.clone()), name)
    }

    fn new(parent: Option<Self>, name: Arc<str>) -> Self {
        debug_assert!(!name.is_empty() && !name.contains('/'), "invalid name: {name:?}");
        Self(Arc::new(PathNode { parent, name, text: OnceLock::new() }))
    }

    /// Returns the last name of the path, which is that of the child itself.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the path of the supervisor, or `None` for the root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        self.0.parent.clone()
    }

    /// Returns this path and all above it, the root last.
    fn upward(&self) -> impl Iterator<Item = &Self> {
        iter::successors(Some(self), |path| path.0.parent.as_ref())
    }

    /// Returns the path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        if self.0.parent.is_none() {
            return self.name();
        }
        self.0.text.get_or_init(|| {
            let mut names: Vec<_> = self.upward().map(Self::name).collect();
            names.reverse();
            names.join("/").into()
        })
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

impl PartialEq for Path {
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

impl Eq for Path {}

/// Hashes the text.
impl Hash for Path {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl Serialize for Path {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl Ord for Path {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().split('/').cmp(other.as_str().split('/'))
    }
}

impl PartialOrd for Path {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl AsRef<str> for Path {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Writes the text without quotes.
impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
