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
mod properties;

#[cfg(feature = "config-file")]
use super::Config;

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
