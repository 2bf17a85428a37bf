//! The validation of a tree: builders in, a valid blueprint out.

use std::collections::HashMap;
use std::sync::{Arc, Once};
use std::time::Duration;

use super::description::Description;
use super::order;
use super::supervisor::{Supervisor, resolved};
use crate::child::{
    ChildSpec, ExplicitGraces, Nested, Resolved, check_intensity, check_limits, check_mailboxes,
    check_on_exhausted, check_twice,
};
use crate::core::Key;
use crate::error::{BuildError, BuildWarning};
use crate::path::{Path, check_name};
use crate::policy::{Layers, OnExhausted, PolicySource, Preset, Resolver, Rules};
use crate::runtime::{Blueprint, Ineffective};
use crate::subscriber;

/// Checks a tree from its root.
pub(super) fn root(description: &Description) -> Result<Supervisor, BuildError> {
    check_name(&description.name)
        .map_err(|problem| BuildError::BadName { parent: "the root".to_owned(), problem })?;
    let path = Path::root(&description.name);
    let (blueprint, mut warnings) = tree(description, &path, false)?;
    // `cargo test` ignores this setting of a profile, so no test shows what it does.
    if cfg!(panic = "abort") {
        let warning = BuildWarning::PanicAborts { path };
        // Once, because a reload also builds trees.
        static LOGGED: Once = Once::new();
        LOGGED.call_once(|| subscriber::warn!(target: "verger::lifecycle", "{warning}"));
        warnings.push(warning);
    }
    Ok(Supervisor::new(blueprint, warnings))
}

/// Checks the tree of children that the worker at `path` starts.
pub(super) fn below_worker(
    description: &Description,
    path: &Path,
) -> Result<Arc<Blueprint>, BuildError> {
    check_name(&description.name)
        .map_err(|problem| BuildError::BadName { parent: path.to_string(), problem })?;
    tree(description, path, true).map(|(blueprint, _)| blueprint)
}

/// Checks a tree whose supervisor is at `path`, and logs what is probably a mistake. `is_added`: other trees may have
/// its mailboxes.
fn tree(
    description: &Description,
    path: &Path,
    is_added: bool,
) -> Result<(Arc<Blueprint>, Vec<BuildWarning>), BuildError> {
    let mut warnings = Vec::new();
    description.check(path)?;
    let mut children = Vec::with_capacity(description.children.len());
    for child in &description.children {
        children.push(child.resolve(path, &mut warnings)?);
    }
    let blueprint = blueprint(description, path, children, &mut warnings)?;
    if blueprint.lends {
        check_mailboxes(path, &blueprint.children, is_added)?;
    }
    for warning in &warnings {
        subscriber::warn!(target: "verger::lifecycle", "{warning}");
    }
    Ok((Arc::new(blueprint), warnings))
}

impl Nested for Description {
    fn children(&self) -> &[ChildSpec] {
        &self.children
    }

    fn take_children(&mut self) -> Vec<ChildSpec> {
        std::mem::take(&mut self.children)
    }

    fn check(&self, path: &Path) -> Result<(), BuildError> {
        rules(self, path).map(drop)
    }

    fn resolve(
        &self,
        path: &Path,
        children: Vec<ChildSpec>,
        warnings: &mut Vec<BuildWarning>,
    ) -> Result<Resolved, BuildError> {
        Ok(resolved(Arc::new(blueprint(self, path, children, warnings)?)))
    }
}

fn blueprint(
    description: &Description,
    path: &Path,
    children: Vec<ChildSpec>,
    warnings: &mut Vec<BuildWarning>,
) -> Result<Blueprint, BuildError> {
    let rules = rules(description, path)?;
    let is_written = description.options.values.intensity.is_some();
    let mut resolver = Resolver::default();
    let alone = Arc::new(rules);
    let times = children
        .iter()
        .map(|child| resolver.resolve(&child.options, &alone, Layers::default()).restart_time());
    let group_restart = times.fold(Duration::ZERO, Duration::saturating_add);
    let rules = Rules { group_restart, ..Rules::clone(&alone) };
    let mut blueprint = Blueprint {
        // A spec can rename the supervisor, so this is not the name of the builder.
        name: path.name().into(),
        defined_at: description.defined_at,
        version: description.options.version.clone(),
        rules: Arc::new(rules),
        dynamic: description.dynamic,
        on_child_failure: description.options.on_child_failure.clone(),
        dead_letters: description.options.dead_letters.clone(),
        children: Arc::default(),
        keys: Arc::default(),
        lends: false,
        levels: 1,
        graces: ExplicitGraces::default(),
        gives_up: None,
        self_check: !description.options.unwatched,
        busy_time: description.options.busy_time,
        registration: description.options.registration.clone(),
    };
    let mut keys = HashMap::with_capacity(children.len());
    for (number, child) in (0..).zip(&children) {
        blueprint.lends |= child.lends();
        blueprint.levels = blueprint.levels.max(1 + child.levels());
        if keys.insert(Arc::clone(child.factory.name()), Key::of_number(number)).is_some() {
            let name = child.name().to_owned();
            return Err(BuildError::DuplicateChild { parent: path.clone(), name });
        }
        let rules = resolver.resolve(&child.options, &blueprint.rules, Layers::default());
        blueprint.check_child(&|| path.clone(), child, &rules, warnings)?;
    }
    blueprint.children = order::sorted(children, &mut keys, path, blueprint.rules.start)?.into();
    blueprint.keys = Arc::new(keys);
    blueprint.graces = blueprint.explicit_graces();
    if let Some(deadline) = blueprint.rules.stop_deadline
        && let grace = blueprint.graces.longest
        && deadline < grace
    {
        let path = path.clone();
        warnings.push(BuildWarning::ShortStopDeadline { path, deadline, grace });
    }
    if blueprint.rules.max_children == Some(0) {
        warnings.push(BuildWarning::NoRoom { path: path.clone() });
    }
    let rules = blueprint.child_rules();
    let ineffective = blueprint.ineffective_limit(&rules);
    blueprint.gives_up = blueprint.gives_up(&rules, ineffective.as_ref());
    // A preset has the values of its document, where restarts are as slow.
    let is_a_mistake = |it: &Ineffective| is_written || matches!(it, Ineffective::Never(_));
    let ineffective = ineffective.filter(is_a_mistake);
    warnings.extend(ineffective.map(|it| it.warning(path.clone())));
    Ok(blueprint)
}

fn rules(description: &Description, path: &Path) -> Result<Rules, BuildError> {
    let &Description { ref options, dynamic, .. } = description;
    let preset = options.preset.as_ref();
    let (values, own) = (&options.values, || path.clone());
    check_twice(options.twice.as_ref(), &own)?;
    let default = Rules::default();
    let on_exhausted = match preset {
        Some(preset) => preset.on_exhausted(path.depth() == 1),
        None if dynamic => OnExhausted::Remove,
        None => default.on_exhausted,
    };
    let base = Rules {
        first_start: options
            .first_start
            .unwrap_or_else(|| preset.map_or(default.first_start, |preset| preset.first_start)),
        on_exhausted,
        on_exhausted_from: preset.map_or(PolicySource::Default, |_| PolicySource::Preset),
        intensity: preset.and_then(|preset| preset.intensity),
        intensity_from: PolicySource::Preset,
        of_each: if preset.is_some() { None } else { default.of_each },
        count_failed_starts: preset.is_some_and(|preset| preset.count_failed_starts),
        gives_up_cleanly: preset.is_some_and(|preset| preset.gives_up_cleanly),
        revival: preset.map_or(default.revival, |preset| preset.revival),
        defaults: options.defaults.options.clone(),
        preset: preset.map(Preset::of_children).unwrap_or_default(),
        random: options.random.clone(),
        ..default
    };
    let rules = base.with(values, PolicySource::Supervisor);
    if let Some(intensity) = rules.intensity {
        check_intensity(intensity, &own)?;
    }
    check_on_exhausted(rules.on_exhausted, &own)?;
    check_limits(&options.defaults.options.values.policy, &own)?;
    let example = Duration::from_secs(10);
    let zero = |option| BuildError::ZeroDuration { path: own(), option, example };
    if options.defaults.options.values.activation_timeout.is_some_and(|timeout| timeout.is_zero()) {
        return Err(zero("default activation timeout"));
    }
    if options.defaults.options.values.watchdog.is_some_and(|interval| interval.is_zero()) {
        return Err(zero("default watchdog"));
    }
    if options.defaults.options.values.run_time_limit.is_some_and(|limit| limit.is_zero()) {
        return Err(zero("default run-time limit"));
    }
    if rules.leak_timeout.is_zero() {
        return Err(zero("leak timeout"));
    }
    if let Some(backoff) = &options.defaults.options.values.policy.backoff {
        backoff.check().map_err(|problem| {
            let path = own();
            BuildError::BadBackoff { path, problem }
        })?;
    }
    Ok(rules)
}
