//! The path of a child.

use std::cmp::Ordering;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;

use super::serial_name::SerialName;

/// The position of a child in its tree: the names from the root down to it, as in
/// `app/ingest/mqtt`.
///
/// A clone shares the text. Paths are ordered name by name, so a sorted list has the children of a
/// supervisor directly behind it.
///
/// ```
/// use verger::{Context, Supervisor, worker};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
/// let app = Supervisor::builder("app").child(db).build()?.start().await?;
///
/// let path = app.which_child("db").await?.path;
/// assert_eq!(path.as_str(), "app/db");
/// assert_eq!(path.name(), "db");
/// assert_eq!(path.parent(), Some(app.path()));
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Path(Arc<str>);

impl Path {
    /// Returns the path of a root.
    pub(crate) fn root(name: &str) -> Self {
        debug_assert!(is_segment(name), "invalid name: {name:?}");
        Self(name.into())
    }

    /// Returns the path of the child with this name.
    pub(crate) fn join(&self, name: &str) -> Self {
        debug_assert!(is_segment(name), "invalid name: {name:?}");
        Self([self.as_str(), "/", name].concat().into())
    }

    /// Returns the path of the child with this name and serial number.
    pub(crate) fn child(&self, name: &str, serial: Option<NonZeroU64>) -> Self {
        match serial {
            None => self.join(name),
            Some(serial) => Self(format!("{self}/{}", SerialName { name, serial }).into()),
        }
    }

    /// Returns the path with this text.
    pub(crate) fn from_text(text: String) -> Self {
        debug_assert!(text.split('/').all(is_segment), "invalid path: {text:?}");
        Self(text.into())
    }

    /// Returns the number of names.
    pub(crate) fn depth(&self) -> usize {
        self.as_str().split('/').count()
    }

    /// Returns the last name of the path, which is that of the child itself.
    #[must_use]
    pub fn name(&self) -> &str {
        let path = self.as_str();
        path.rsplit_once('/').map_or(path, |(_, name)| name)
    }

    /// Returns the path of the supervisor, or `None` for the root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        self.as_str().rsplit_once('/').map(|(parent, _)| Self(parent.into()))
    }

    /// Returns the paths above, the nearest first.
    pub(crate) fn ancestors(&self) -> impl Iterator<Item = Self> + use<> {
        std::iter::successors(self.parent(), Self::parent)
    }

    /// Returns whether this is the path of a child at any level below `above`.
    #[must_use]
    pub fn is_below(&self, above: &Self) -> bool {
        self != above && self.is_at_or_below(above.as_str())
    }

    /// Returns whether this is `path`, or the path of a child at any level below.
    pub(crate) fn is_at_or_below(&self, path: &str) -> bool {
        let rest = self.as_str().strip_prefix(path);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Returns the path without the serial numbers of dynamic children, which several children share then.
    pub(crate) fn without_serials(&self) -> Self {
        if !self.as_str().contains('#') {
            return self.clone();
        }
        let plain = |name| SerialName::parse(name).map_or(name, |it: SerialName<'_>| it.name);
        let names: Vec<_> = self.as_str().split('/').map(plain).collect();
        Self(names.join("/").into())
    }

    /// Returns the path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
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

fn is_segment(name: &str) -> bool {
    !name.is_empty() && !name.contains('/')
}
