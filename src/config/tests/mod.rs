//! Tests of the whole module: texts in, mistakes and layers out.

mod merge;
mod reads;
mod reference;
mod typed;

#[cfg(feature = "config-file")]
mod difference;
#[cfg(feature = "config-file")]
mod layers;
#[cfg(feature = "config-file")]
mod messages;
#[cfg(feature = "config-file")]
mod options;
#[cfg(feature = "config-file")]
mod properties;

use super::{Config, ValueNode};

/// Returns the values of a path in a tree whose root is `app`, over those of `parent/*`, over the common ones.
fn merged(config: &Config, path: &str) -> ValueNode {
    let sections = config.sections("app").0;
    let pattern = match path.rsplit_once('/') {
        Some((above, _)) => Some(format!("{above}/*")),
        None => (!path.is_empty()).then(|| "*".to_owned()),
    };
    let pattern = pattern.and_then(|pattern| sections.get(pattern.as_str()));
    let layers = [pattern, sections.get(path)];
    let layers = layers.into_iter().flatten().map(|written| written.node);
    super::merged(std::iter::once(&config.common).chain(layers))
}

/// Returns the mistakes of a text, each as `line:column key: message`.
#[cfg(feature = "config-file")]
fn mistakes(text: &str) -> Vec<String> {
    let Err(error) = Config::from_toml(text, "feed.toml").check() else { return Vec::new() };
    let shown = |mistake: &super::Mistake| {
        let (line, column) = (mistake.line().unwrap_or(0), mistake.column().unwrap_or(0));
        format!("{line}:{column} {}: {}", mistake.key(), mistake.message())
    };
    error.mistakes().iter().map(shown).collect()
}
