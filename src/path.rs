//! Paths: where a child is in the tree, and what it may be called.
//!
//! A [`Path`] is text. It doesn't know whether there is a child at it.
//!
//! # Invariants
//!
//! 1. A path has at least one name, and no name in it is empty or contains `/`.
//! 2. The name of a declared child has passed [`check_name`]. Only the children of a dynamic
//!    supervisor have a `#`, before their serial number, so the two can't be confused.

use std::cmp::Ordering;
use std::fmt::{self, Write as _};
use std::num::NonZeroU64;
use std::sync::Arc;

use serde::Serialize;

/// The longest name, in bytes.
const MAX_NAME: usize = 255;

/// Room for the `/` before a segment and for the serial number behind it, which is rarely longer.
const SERIAL: usize = 10;

/// The place of a child in its tree: the names from the root down to it, as in `app/ingest/mqtt`.
///
/// Cheap to clone. Paths are ordered name by name, so that in a sorted list each is followed by
/// everything below it.
#[derive(Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct Path(Arc<str>);

impl Path {
    /// The path of a root.
    pub(crate) fn root(name: &str) -> Self {
        debug_assert!(is_segment(name), "not a name: {name:?}");
        Self(name.into())
    }

    /// The path with these names, from the root down.
    pub(crate) fn of(names: &[&str]) -> Self {
        debug_assert!(names.iter().all(|name| is_segment(name)), "not names: {names:?}");
        Self(names.join("/").into())
    }

    /// The path of the child called `name` under this one.
    pub(crate) fn join(&self, name: &str) -> Self {
        debug_assert!(is_segment(name), "not a name: {name:?}");
        Self([self.as_str(), "/", name].concat().into())
    }

    /// The path of a child under this one, by its [`segment`].
    ///
    /// Written at once: the segment and the two put together would be a string each, and a snapshot
    /// of many children is mostly their paths.
    pub(crate) fn child(&self, name: &str, serial: Option<NonZeroU64>) -> Self {
        let Some(serial) = serial else { return self.join(name) };
        debug_assert!(is_segment(name), "not a name: {name:?}");
        let mut path = String::with_capacity(self.0.len() + name.len() + SERIAL);
        path.extend([self.as_str(), "/", name]);
        // A string takes everything.
        let _ = write!(path, "#{serial}");
        Self(path.into())
    }

    /// The last name of the path, the child's own.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.rsplit_once('/').map_or(self.as_str(), |(_, name)| name)
    }

    /// The path of the supervisor, or `None` if this is the root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        self.0.rsplit_once('/').map(|(parent, _)| Self(parent.into()))
    }

    /// The path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Ord for Path {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.split('/').cmp(other.0.split('/'))
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

/// The text, without quotes.
impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn is_segment(name: &str) -> bool {
    !name.is_empty() && !name.contains('/')
}

/// A child's own part of its path: children of one name under a dynamic supervisor are told apart by
/// a number.
pub(crate) fn segment(name: &str, serial: Option<NonZeroU64>) -> String {
    match serial {
        None => name.to_owned(),
        Some(serial) => format!("{name}#{serial}"),
    }
}

/// Whether a child or a supervisor may be declared under this name.
///
/// # Errors
///
/// Says what is wrong with the name and gives one that can be used.
pub(crate) fn check_name(name: &str) -> Result<(), NameProblem> {
    // Nearly all are like that, and each child that is added at run time is checked.
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'#');
    if (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(plain) {
        return Ok(());
    }
    let problem = if name.is_empty() {
        "is empty"
    } else if name.len() > MAX_NAME {
        "is longer than 255 bytes"
    } else if name.contains('/') {
        "contains `/`, which separates the names in a path"
    } else if name.contains('#') {
        "contains `#`, which comes before the serial number of a dynamic child"
    } else if name.trim() != name {
        "begins or ends with white space"
    } else if name.contains(char::is_control) {
        "contains a control character"
    } else {
        return Ok(());
    };
    let name =
        if name.len() > MAX_NAME { cut(name, 40).to_owned() + "…" } else { name.to_owned() };
    Err(NameProblem { instead: repaired(&name), name, problem })
}

/// The nearest name that passes, for a name that isn't too long.
fn repaired(name: &str) -> String {
    let barred = |c: char| matches!(c, '/' | '#') || c.is_control();
    match name.trim() {
        "" => "worker".to_owned(),
        name => name.replace(barred, "-"),
    }
}

/// The beginning of `text`, in whole characters and at most `max` bytes.
fn cut(text: &str, max: usize) -> &str {
    let end = (0..=max.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

/// Why a name can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the name {name:?} {problem}; write {instead:?}, for example")]
pub struct NameProblem {
    name: String,
    problem: &'static str,
    instead: String,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(text: &str) -> Path {
        let mut names = text.split('/');
        let root = Path::root(names.next().unwrap());
        names.fold(root, |path, name| path.join(name))
    }

    #[test]
    fn a_path_is_taken_apart_as_it_was_put_together() {
        let table = [
            ("app", "app", None),
            ("app/db", "db", Some("app")),
            ("app/ingest/mqtt", "mqtt", Some("app/ingest")),
            ("app/conn#17", "conn#17", Some("app")),
        ];
        for (text, name, parent) in table {
            assert_eq!(path(text).as_str(), text);
            assert_eq!(path(text).name(), name);
            assert_eq!(path(text).parent(), parent.map(path));
        }
    }

    #[test]
    fn a_child_is_the_same_by_its_parts_and_by_its_segment() {
        for serial in [None, NonZeroU64::new(1), NonZeroU64::new(u64::MAX)] {
            let path = path("app/conns");
            assert_eq!(path.child("conn", serial), path.join(&segment("conn", serial)));
        }
    }

    #[test]
    fn a_path_is_its_text_wherever_it_is_written() {
        let path = path("app/db");
        assert_eq!(path.to_string(), "app/db");
        assert_eq!(format!("{path:?}"), "app/db");
        assert_eq!(format!("[{path:>8}]"), "[  app/db]");
        assert_eq!(path.as_ref(), "app/db");
        assert_eq!(serde_json::to_value(&path).unwrap(), "app/db");
    }

    #[test]
    fn in_order_a_path_is_followed_by_what_is_below_it() {
        let mut paths = ["b", "a/x", "a-b", "a", "a/x/y", "a-b/x", "a/w"].map(path);
        paths.sort();

        // As plain text, `a-b` would come between `a` and `a/w`.
        assert_eq!(paths, ["a", "a/w", "a/x", "a/x/y", "a-b", "a-b/x", "b"].map(path));
    }

    #[test]
    fn a_name_may_be_anything_that_is_one_line_and_no_path() {
        for name in ["db", "http-api_2", "ein Name", "größe", "日本", "a.b:c", &"x".repeat(255)]
        {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn a_name_that_cannot_be_used_is_answered_with_one_that_can() {
        let long = "x".repeat(256);
        let short = "x".repeat(40) + "…";
        let table = [
            ("", "", "is empty", "worker"),
            ("a/b", "a/b", "contains `/`, which separates the names in a path", "a-b"),
            (
                "conn#1",
                "conn#1",
                "contains `#`, which comes before the serial number of a dynamic child",
                "conn-1",
            ),
            (" db", " db", "begins or ends with white space", "db"),
            ("db\n", "db\n", "begins or ends with white space", "db"),
            (" ", " ", "begins or ends with white space", "worker"),
            ("a\tb", "a\tb", "contains a control character", "a-b"),
            ("a\0b", "a\0b", "contains a control character", "a-b"),
            (&long, &short, "is longer than 255 bytes", &short),
        ];
        for (name, shown, problem, instead) in table {
            assert_eq!(
                check_name(name).unwrap_err().to_string(),
                format!("the name {shown:?} {problem}; write {instead:?}, for example"),
            );
        }
    }

    #[test]
    fn what_is_no_name_is_never_put_into_a_path() {
        for name in ["", "/", "a/b"] {
            let root = std::panic::catch_unwind(|| Path::root(name));
            let joined = std::panic::catch_unwind(|| Path::root("app").join(name));
            assert!(root.is_err() && joined.is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_name_is_shown_whole_unless_it_is_too_long() {
        let name = "x".repeat(254) + "/";
        let shown = check_name(&name).unwrap_err().to_string();
        assert!(shown.starts_with(&format!("the name {name:?} contains `/`")), "{shown}");
    }

    #[test]
    fn the_length_of_a_name_is_in_bytes() {
        assert_eq!(check_name(&"é".repeat(127)), Ok(()), "254 bytes");
        assert!(check_name(&"é".repeat(128)).is_err(), "256 bytes");
    }

    proptest! {
        #[test]
        fn the_name_to_write_instead_can_be_used(
            name in prop_oneof!["[a/# \t\u{0}é]{0,300}", any::<String>()],
        ) {
            if let Err(problem) = check_name(&name) {
                prop_assert_eq!(check_name(&problem.instead), Ok(()), "{}", problem);
            }
        }

        #[test]
        fn a_child_is_below_its_parent(names in proptest::collection::vec("[a-c/]{1,3}", 1..5)) {
            let names: Vec<_> = names.iter().filter(|name| check_name(name).is_ok()).collect();
            let mut path = Path::root("app");
            for name in names {
                let child = path.join(name);
                prop_assert_eq!(child.parent(), Some(path.clone()));
                prop_assert_eq!(child.name(), name);
                prop_assert!(child > path);
                path = child;
            }
        }
    }
}
