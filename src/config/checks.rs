//! Checks a section against what is at its path: its keys, and its values together with those of the code.

use std::sync::Arc;
use std::time::Duration;

use super::facts::{Facts, Found, KnownChild, below};
use super::mistake::Mistake;
use super::node::join;
use super::section::keys;
use super::{Config, Written};
use crate::child::check_policy;
use crate::error::BuildError;
use crate::path::Path;
use crate::policy::option_table::{OptionOf, option};
use crate::policy::{ChildLayer, ChildRules, Layers, Rules};
use crate::runtime::{check_grace, check_restarts};

/// Checks that the keys of a section are those of what is at its path.
pub(super) fn check_keys(
    facts: &Facts,
    path: &str,
    written: &Written<'_>,
    found: &Found<'_>,
    is_supervisor: bool,
    is_shared: bool,
) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    let (of_supervisors, of_children) = keys();
    let child = match found {
        Found::Child(child, _) => Some(*child),
        Found::Root | Found::Possible | Found::Unknown => None,
    };
    let is_root = matches!(found, Found::Root);
    let supervisor = facts.supervisors.get(path);
    let supervisor = supervisor.filter(|_| is_root || child.is_some() && is_supervisor);
    let dynamic = supervisor.map(|supervisor| supervisor.is_dynamic);
    let is_known = !matches!(found, Found::Possible);
    let has_no_config = is_root || child.is_some_and(|child| child.config.is_none());
    let config = child.filter(|_| !is_shared).and_then(|child| child.config.as_ref());
    let elsewhere = config.and_then(|config| config.section.as_deref());
    for (key, entry) in written.node.table().into_iter().flatten() {
        let key = key.as_str();
        let of = option(key).map(|option| option.of);
        let message = if key == "config"
            && let Some(section) = elsewhere
        {
            let section = join(&join("", section), "config");
            format!("the child takes its configuration from [{section}]; write it there")
        } else if of_supervisors.contains(&key) && is_known && !is_supervisor {
            format!("`{key}` is for supervisors, and this is a worker; remove it")
        } else if key == "config" && is_shared {
            continue;
        } else if of_children.contains(&key) && is_root {
            format!(
                "`{key}` is for children, and this is the root, which has no supervisor; remove it"
            )
        } else if of == Some(OptionOf::Worker) && is_supervisor {
            format!("`{key}` is for workers, and this is a supervisor; remove it")
        } else if key == "mailbox" && child.is_some_and(|child| !child.has_mailbox) {
            "the child has no mailbox; remove it".to_owned()
        } else if of == Some(OptionOf::DynamicSupervisor) && dynamic == Some(false) {
            format!("`{key}` is for dynamic supervisors; remove it")
        } else if of == Some(OptionOf::OrderedSupervisor) && dynamic == Some(true) {
            format!(
                "`{key}` is for supervisors whose children have an order, not for dynamic ones; remove it"
            )
        } else if key != "config" && matches!(found, Found::Unknown) {
            "there is no child with this path, only children that share the table `config` of this \
             section; remove the key"
                .to_owned()
        } else if key == "config" && !is_shared && has_no_config {
            "the child has no configuration of its own; name its type in its spec, or remove the table"
                .to_owned()
        } else {
            continue;
        };
        let key = join(&join("", written.key), key);
        mistakes.push(Mistake::new(entry.location.as_ref(), key, message));
    }
    mistakes
}

/// Checks the values of a child together with those of its code.
pub(super) fn check_child(
    facts: &Facts,
    path: &str,
    written: &Written<'_>,
    child: &KnownChild,
    rules: &Arc<Rules>,
    layer: &ChildLayer,
) -> Option<Mistake> {
    let call = child.rules.layers.call.clone();
    let file = Some(Arc::new(layer.clone()));
    let checked = check_layers(&facts.full(path), child, rules, file, call);
    Some(Mistake::new(written.location, join("", written.key), checked.err()?))
}

/// Checks the values of a file and of a call together with those of the code.
pub(super) fn check_layers(
    path: &Path,
    child: &KnownChild,
    rules: &Arc<Rules>,
    file: Option<Arc<ChildLayer>>,
    call: Option<Arc<ChildLayer>>,
) -> Result<(), BuildError> {
    for layer in file.iter().chain(&call) {
        check_policy(&layer.policy, &|| path.clone())?;
    }
    let layers = Layers { file, call, withheld: None };
    let rules = ChildRules::resolve(&child.rules.spec, rules, layers);
    check_restarts(&rules, &|| path.clone(), &mut Vec::new())?;
    // The graces below are those of the code, which has been built.
    check_grace(&rules, || Duration::ZERO, &|| path.clone())
}

/// Checks the values of a section for several children together with the code of each that has no section of its
/// own. `above`: the path of their supervisor, or `None` for the common section.
pub(super) fn check_general(
    facts: &Facts,
    config: &Config,
    above: Option<&str>,
    written: &Written<'_>,
    layer: &ChildLayer,
) -> Option<Mistake> {
    let is_written = |path: &str| config.section(facts.root.as_str(), path).is_some();
    let is_meant = |at: &str| above.map_or_else(|| !is_written(&below(at, "*")), |it| it == at);
    facts.supervisors.iter().filter(|(at, _)| is_meant(at)).find_map(|(at, supervisor)| {
        supervisor.children.iter().find_map(|(name, child)| {
            let path = below(at, name);
            let is_own = is_written(&path);
            let check = || check_child(facts, &path, written, child, &supervisor.rules, layer);
            if is_own { None } else { check() }
        })
    })
}
