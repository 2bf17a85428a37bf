//! Configuration: the values of a tree by path, from a file or any other format.
//!
//! A [`Config`] knows sections. It doesn't know which children exist: that is checked by the tree.
//! Reading never fails. The mistakes are kept, and [`Config::check`] returns all of them at once.
//!
//! ```toml
//! [common]                         # beneath every section
//! restart = { failure_log = { level = "info" } }
//!
//! ["app/ingest"]                   # the path of a supervisor; "ingest" is the same path
//! strategy = "rest_for_one"
//! max_restarts = 5
//! period = "60s"
//!
//! ["app/ingest/*"]                 # beneath the sections of all children of `app/ingest`
//! shutdown = "10s"
//!
//! ["app/writer"]
//! enabled = false
//!
//! ["app/writer".restart]           # a word, such as restart = "never", or a table
//! when = "on_failure"
//! min_backoff = "5s"
//! max_backoff = "30s"
//!
//! ["app/writer".config]            # the child's own section
//! batch = 100
//! ```

// # Invariants
//
// 1. A section's own value is over that of `parent/*`, and that is over `[common]`. Tables are merged key
//    by key, and everything else is replaced.
// 2. Two ways to write the same path are a mistake, because neither has precedence.
// 3. `file` adds methods to [`Config`], and nothing imports it.

mod apply;
mod calls;
mod checks;
mod child_config;
mod code;
mod de;
mod draft;
mod facts;
#[cfg(feature = "config-file")]
mod file;
mod listing;
mod mistake;
mod node;
mod plan;
mod planner;
mod read_error;
mod rules;
mod secret;
mod section;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, Error};

pub use self::child_config::{ChildConfig, ConfigWatch};
pub(crate) use self::mistake::Location;
pub use self::mistake::{ConfigError, Mistake};
pub(crate) use self::node::ValueNode;
use self::node::{NodeTable, join};
pub use self::plan::{Applied, ApplyError, Change, ChangeKind, Effect, Plan, Refusal};
pub use self::secret::Secret;
use self::section::Section;
pub(crate) use self::section::keys;
use crate::panic::catch_panic;
use crate::path::Path;

/// The section beneath all others.
const COMMON: &str = "common";

/// The most values that a section checks together with its own. A valid section has fewer.
const MOST_SHARED: usize = 200;

/// The values of a configuration, by the paths of a tree.
///
/// Read it from a file with [`read`](Self::read) (feature `config-file`), or from any other format with
/// serde. Reading never fails: [`check`](Self::check) returns the mistakes, all at once.
///
/// ```
/// # #[cfg(feature = "config-file")] {
/// use verger::config::Config;
///
/// let config = Config::from_toml(
///     r#"
/// ["app/writer".restart]
/// when = "sometimes"
/// "#,
///     "feed.toml",
/// );
/// let error = config.check().unwrap_err();
/// let mistake = &error.mistakes()[0];
/// assert_eq!((mistake.line(), mistake.column()), (Some(3), Some(8)));
/// assert_eq!(mistake.key(), r#""app/writer".restart.when"#);
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Config {
    common: ValueNode,
    /// By path as it is written.
    sections: Arc<NodeTable>,
    /// Mistakes of the syntax.
    syntax: Vec<Mistake>,
    /// Mistakes of the whole, or of its shape.
    mistakes: Vec<Mistake>,
}

/// What a function that reads a configuration returns: a [`Config`], or a `Result` of one.
///
/// ```
/// use verger::config::Config;
/// use verger::{Application, Supervisor};
///
/// # #[cfg(feature = "config-file")] {
/// fn read() -> Result<Config, std::io::Error> {
///     let text = std::fs::read_to_string("app.toml")?;
///     Ok(Config::from_toml(&text, "app.toml"))
/// }
///
/// let app = Application::new(Supervisor::builder("app")).config(read);
/// # drop(app);
/// # }
/// ```
pub trait IntoConfig {
    /// Returns the configuration, or why it can't be read.
    ///
    /// # Errors
    ///
    /// The text of the error.
    fn into_config(self) -> Result<Config, String>;
}

impl IntoConfig for Config {
    fn into_config(self) -> Result<Config, String> {
        Ok(self)
    }
}

impl<E: fmt::Display> IntoConfig for Result<Config, E> {
    fn into_config(self) -> Result<Config, String> {
        self.map_err(|error| error.to_string())
    }
}

/// A function that reads a configuration, or returns why it can't be read. It may block.
#[derive(Clone)]
pub(crate) struct ConfigSource(Arc<dyn Fn() -> Result<Config, String> + Send + Sync>);

impl ConfigSource {
    pub(crate) fn new<R: IntoConfig>(read: impl Fn() -> R + Send + Sync + 'static) -> Self {
        Self(Arc::new(move || read().into_config()))
    }

    /// Reads the configuration on a thread that may block.
    pub(crate) async fn read(&self) -> Result<Config, ApplyError> {
        let Self(source) = self.clone();
        let read = tokio::task::spawn_blocking(move || catch_panic(|| source()));
        match read.await {
            Ok(Some(config)) => config.map_err(ApplyError::Unreadable),
            Ok(None) => Err(ApplyError::Unreadable("reading it has panicked".to_owned())),
            Err(_) => Err(ApplyError::NotRunning),
        }
    }
}

impl fmt::Debug for ConfigSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigSource").finish_non_exhaustive()
    }
}

/// A section as it is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written<'a> {
    /// The path as it is written.
    pub(crate) key: &'a str,
    pub(crate) location: Option<&'a Location>,
    pub(crate) node: &'a ValueNode,
}

impl Config {
    /// Creates a configuration without values.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a configuration from a table with sections.
    fn from_node(root: ValueNode, syntax: Vec<Mistake>, mistakes: Vec<Mistake>) -> Self {
        let mut config = Self { syntax, mistakes, ..Self::default() };
        let node::Value::Table(table) = root.value else { return config };
        let mut sections = Arc::unwrap_or_clone(table);
        sections.retain(|key, entry| {
            let location = entry.location.as_ref();
            let problem = if entry.node.table().is_none() {
                Some(format!(
                    "`{key}` is a value outside of a section; write it below the path of a child, such \
                     as [\"app/ingest\"], or below [common]"
                ))
            } else {
                path_problem(key)
            };
            if let Some(message) = problem {
                config.mistakes.push(Mistake::new(location, join("", key), message));
                return false;
            }
            config.mistakes.extend(rules::unify(&mut entry.node, key));
            true
        });
        config.common = sections.remove(COMMON).map(|entry| entry.node).unwrap_or_default();
        config.sections = Arc::new(sections);
        config
    }

    /// Checks everything that can be checked without a tree.
    ///
    /// # Errors
    ///
    /// All mistakes at once, in the order of their places: of the file, of its syntax, and of the keys
    /// and values of each section. Paths that don't exist, and the own sections of children, are checked
    /// by the tree.
    pub fn check(&self) -> Result<(), ConfigError> {
        let mut found = Found::new(self);
        found.add(COMMON, section::values(&mut self.common.clone(), COMMON).err(), true);
        let is_pattern = |key: &str| key == "*" || key.ends_with("/*");
        let mut patterns = BTreeMap::new();
        for (key, entry) in self.sections.iter().filter(|(key, _)| is_pattern(key)) {
            let mut node = entry.node.clone();
            found.add(key, section::values(&mut node, key).err(), true);
            patterns.extend(known_only(&entry.node).map(|node| (key.as_str(), node)));
        }
        let common = known_only(&self.common);
        for (key, entry) in self.sections.iter().filter(|(key, _)| !is_pattern(key)) {
            if found.is_full() {
                break;
            }
            // The root's own name isn't known here, so only the same spelling of a path is found.
            let pattern =
                key.rsplit_once('/').map_or("*".to_owned(), |(above, _)| format!("{above}/*"));
            let pattern = patterns.get(pattern.as_str());
            let node = merged(common.iter().chain(pattern).chain([&entry.node]));
            found.add(key, Section::read(&node, key).err(), false);
        }
        ConfigError::new(found.mistakes).map_or(Ok(()), Err)
    }

    /// Returns the mistakes that were found while it was read.
    fn mistakes_so_far(&self) -> Vec<Mistake> {
        Found::new(self).mistakes
    }

    /// Returns the sections by their paths without the root's name. That of the root itself is empty.
    ///
    /// A path that is written twice, with the root's name and without it, is a mistake.
    pub(crate) fn sections(&self, root: &str) -> (BTreeMap<&str, Written<'_>>, Vec<Mistake>) {
        let mut sections: BTreeMap<&str, Written<'_>> = BTreeMap::new();
        let mut mistakes = Vec::new();
        for (key, entry) in &*self.sections {
            let path = below_root(key, root);
            let location = entry.location.as_ref();
            let written = Written { key, location, node: &entry.node };
            if let Some(first) = sections.insert(path, written) {
                let place = first.location.map_or(String::new(), |at| format!(" ({at})"));
                let message = format!(
                    "`{key}` and `{}`{place} are the same path, because the root is `{root}`; write one \
                     section with the values of both",
                    first.key
                );
                mistakes.push(Mistake::new(location, join("", key), message));
            }
        }
        (sections, mistakes)
    }

    /// Returns the refusal of a child as a mistake, at the place of the child's own values.
    fn mistake_of(&self, root: &Path, Refusal { path, reason, .. }: &Refusal) -> Mistake {
        let below = below_root(path, root.as_str());
        let written = self.section(root.as_str(), below);
        let own = written.and_then(|it| it.node.get("config")).and_then(|it| it.location.as_ref());
        let key = join(&join("", written.map_or(path, |it| it.key)), "config");
        // The line may show values.
        Mistake::new(own, key, format!("`{path}` refuses its values: {reason}")).hide_line()
    }

    /// Returns the section of a path without the root's name.
    pub(crate) fn section(&self, root: &str, path: &str) -> Option<Written<'_>> {
        let full = if path.is_empty() { root.to_owned() } else { format!("{root}/{path}") };
        let short = Some(path).filter(|path| below_root(path, root) == *path);
        let found = self.sections.get_key_value(&full);
        let (key, entry) = found.or_else(|| self.sections.get_key_value(short?))?;
        Some(Written { key, location: entry.location.as_ref(), node: &entry.node })
    }
}

/// Returns the path of a section without the root's name. That of the root itself is empty.
fn below_root<'a>(key: &'a str, root: &str) -> &'a str {
    match key.strip_prefix(root) {
        Some("") => "",
        Some(below) => below.strip_prefix('/').unwrap_or(key),
        None => key,
    }
}

/// Merges layers, the lowest first.
///
/// The order matters: a word in the middle, such as `restart = "never"`, also replaces the table beneath
/// it where the section above has a table again.
fn merged<'a>(layers: impl Iterator<Item = &'a ValueNode>) -> ValueNode {
    layers.fold(ValueNode::default(), |beneath, layer| rules::over(layer.clone(), &beneath))
}

/// Returns the values that other sections take from this one. Its unknown keys are reported only once, and the
/// children's own values aren't checked here.
fn known_only(section: &ValueNode) -> Option<ValueNode> {
    let mut section = section.without(&["config"]);
    let (supervisors, children) = keys();
    if let Some(table) = section.table_mut() {
        table.retain(|key, _| supervisors.contains(&&**key) || children.contains(&&**key));
    }
    // More values than there are keys: these are mistakes, which would be read again in each section.
    (section.flatten("").len() <= MOST_SHARED).then_some(section)
}

/// Returns what is wrong with a path, and what to write instead.
fn path_problem(path: &str) -> Option<String> {
    let names: Vec<&str> = path.split('/').collect();
    let problem = if names.iter().any(|name| name.is_empty()) {
        "has an empty name"
    } else if names[..names.len() - 1].contains(&"*")
        || names.iter().any(|name| name.len() > 1 && name.contains('*'))
    {
        "has `*` in it; only a last name that is `*` stands for the children of a supervisor"
    } else if names.iter().any(|name| name.contains('#')) {
        "has a serial number; a section is for all children with one name"
    } else {
        return None;
    };
    let used = names.iter().map(|name| name.split(['#', '*']).next().unwrap_or_default());
    let used: Vec<&str> = used.filter(|name| !name.is_empty()).collect();
    let instead = if used.is_empty() { "app/ingest".to_owned() } else { used.join("/") };
    Some(format!("the path `{path}` {problem}; write [{}], for example", join("", &instead)))
}

/// The mistakes that [`Config::check`] has found.
struct Found {
    mistakes: Vec<Mistake>,
    /// Lines with an error in the syntax. Its consequences aren't reported.
    lines: HashSet<usize>,
    /// Mistakes in values that are beneath other sections, which read them again.
    shared: HashSet<mistake::Identity>,
}

impl Found {
    fn new(config: &Config) -> Self {
        let lines = config.syntax.iter().filter_map(Mistake::line).collect();
        let mut found = Self { mistakes: config.syntax.clone(), lines, shared: HashSet::new() };
        found.add("", Some(config.mistakes.clone()), false);
        found
    }

    fn is_full(&self) -> bool {
        self.mistakes.len() >= mistake::KEPT
    }

    fn add(&mut self, path: &str, mistakes: Option<Vec<Mistake>>, is_shared: bool) {
        let prefix = join("", path);
        for mistake in mistakes.into_iter().flatten() {
            if self.is_full() || mistake.line().is_some_and(|line| self.lines.contains(&line)) {
                continue;
            }
            let place = mistake.identity(&prefix);
            if is_shared {
                self.shared.insert(place);
            } else if self.shared.contains(&place) {
                continue;
            }
            self.mistakes.push(mistake);
        }
    }
}

/// Reads a table of sections. Errors have no lines.
impl<'de> Deserialize<'de> for Config {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let root = ValueNode::deserialize(deserializer)?;
        if root.table().is_none() {
            return Err(D::Error::custom(
                "a configuration is a table of sections; write { \"app/ingest\" = { enabled = true } }, \
                 for example",
            ));
        }
        Ok(Self::from_node(root, Vec::new(), Vec::new()))
    }
}

/// Shows the paths, but no values: any of them may be a secret.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("common", &(self.common != ValueNode::default()))
            .field("sections", &self.sections.keys())
            .field("mistakes", &(self.syntax.len() + self.mistakes.len()))
            .finish()
    }
}
