//! Checks of specs, policies and limits, and the resolution of nested supervisors.

use std::collections::HashMap;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use super::mailbox::MailboxControl;
use super::spec::{ChildSpec, FactoryKind, Nested, Resolved};
use crate::error::{BuildError, BuildWarning};
use crate::path::{Path, check_name};
use crate::policy::{Backoff, Intensity, OnExhausted, RestartPolicy, SetTwice, SpecKind};

/// The most levels of supervisors. Deeper trees could be run, but not everything that is made of them,
/// such as a [`Status`](crate::status::Status), could be dropped or cloned on the stack of a thread.
const MAX_LEVELS: usize = 1_024;

impl ChildSpec {
    /// Checks the spec without its siblings, and resolves the builders of nested supervisors.
    ///
    /// An explicit stack instead of recursion: a tree can be thousands of levels deep.
    pub(crate) fn resolve(
        &self,
        parent: &Path,
        warnings: &mut Vec<BuildWarning>,
    ) -> Result<Self, BuildError> {
        /// A nested supervisor, and those of its children that are resolved.
        struct OpenSupervisor<'a> {
            spec: &'a ChildSpec,
            path: Path,
            nested: &'a dyn Nested,
            children: Vec<ChildSpec>,
        }

        let mut open: Vec<OpenSupervisor<'_>> = Vec::new();
        let levels_above = parent.depth();
        let mut spec = self;
        loop {
            let above = open.last().map_or(parent, |last| &last.path).clone();
            spec.check(&above)?;
            let mut resolved = None;
            if let FactoryKind::Nested(nested) = &spec.factory.kind {
                if levels_above + open.len() >= MAX_LEVELS {
                    let name = spec.name().to_owned();
                    return Err(BuildError::TooDeep { name, levels: MAX_LEVELS });
                }
                let path = above.join(spec.name());
                nested.check(&path)?;
                open.push(OpenSupervisor { spec, path, nested: &**nested, children: Vec::new() });
            } else {
                resolved = Some(spec.clone().with_fallback(&above, warnings)?);
            }
            // Return to the next child that isn't resolved.
            spec = loop {
                let Some(mut last) = open.pop() else {
                    return Ok(resolved.unwrap_or_else(|| spec.clone()));
                };
                last.children.extend(resolved.take());
                if let Some(next) = last.nested.children().get(last.children.len()) {
                    open.push(last);
                    break next;
                }
                let OpenSupervisor { spec, path, nested, children } = last;
                let Resolved { factory, abort_bound, gives_up } =
                    nested.resolve(&path, children, warnings)?;
                let mut runnable = spec.clone();
                runnable.factory = factory;
                let options = runnable.edit();
                options.facts.kind = SpecKind::Supervisor { abort_bound };
                options.facts.fails_after = gives_up;
                let above = open.last().map_or(parent, |last| &last.path);
                resolved = Some(runnable.with_fallback(above, warnings)?);
            };
        }
    }

    /// Resolves a spec by value. Most specs have nothing to resolve.
    pub(crate) fn resolved(
        self,
        parent: &Path,
        warnings: &mut Vec<BuildWarning>,
    ) -> Result<Self, BuildError> {
        if self.fallback.is_some() || matches!(self.factory.kind, FactoryKind::Nested(_)) {
            return self.resolve(parent, warnings);
        }
        self.check(parent).map(|()| self)
    }

    /// Checks that a supervisor which was built before has not too many levels here.
    fn check_levels(&self, parent: &Path) -> Result<(), BuildError> {
        let (mut levels, mut spec) = (self.levels(), self);
        if levels == 0 {
            return Ok(());
        }
        let above = parent.depth();
        let Some(excess) = (above + levels).checked_sub(MAX_LEVELS).filter(|&it| it > 0) else {
            return Ok(());
        };
        // The first supervisor with too many above it.
        while levels > excess {
            levels -= 1;
            let variants = iter::successors(Some(spec), |spec| spec.fallback.as_deref());
            let below = variants.flat_map(|spec| spec.factory.children());
            spec = below.max_by_key(|spec| spec.levels()).unwrap_or(spec);
        }
        Err(BuildError::TooDeep { name: spec.name().to_owned(), levels: MAX_LEVELS })
    }

    /// Checks the options of the child.
    fn check(&self, parent: &Path) -> Result<(), BuildError> {
        self.check_levels(parent)?;
        check_name(self.factory.name())
            .map_err(|problem| BuildError::BadName { parent: parent.to_string(), problem })?;
        let path = || parent.join(self.name());
        check_policy(&self.options.values.policy, &path)?;
        self.factory.check(&path)?;
        if self.options.on_message && self.factory.mailbox().is_none() {
            return Err(BuildError::NoMailbox { path: path() });
        }
        if let Some(health) = &self.health {
            health.check(&path)?;
        }
        #[cfg(feature = "lease")]
        if let Some(lease) = &self.lease {
            lease.check().map_err(|problem| BuildError::BadLease {
                path: path(),
                problem: problem.to_string(),
            })?;
            if self.factory.keeps_memo() {
                lease.check_memos().map_err(|problem| BuildError::BadLease {
                    path: path(),
                    problem: problem.to_string(),
                })?;
            }
        }
        let values = &self.options.values;
        for (duration, option, example) in [
            (values.activation_timeout, "activation timeout", 10),
            (values.run_time_limit, "run-time limit", 300),
            (values.watchdog, "watchdog", 30),
        ] {
            if duration.is_some_and(|it| it.is_zero()) {
                return Err(zero_duration(&path, option, example));
            }
        }
        if values.watchdog.is_some() && self.options.facts.kind.is_supervisor() {
            return Err(BuildError::WatchdogOfSupervisor { path: path() });
        }
        Ok(())
    }

    /// Resolves the fallback, under the name of the child.
    fn with_fallback(
        mut self,
        parent: &Path,
        warnings: &mut Vec<BuildWarning>,
    ) -> Result<Self, BuildError> {
        let Some(fallback) = &self.fallback else { return Ok(self) };
        let named = ChildSpec::clone(fallback).named(self.name());
        if !named.requires.is_empty() {
            let (path, requirement) = (parent.join(self.name()), named.requires[0].clone());
            return Err(BuildError::FallbackRequires { path, requirement });
        }
        if named.options.lease_grace.is_some() {
            return Err(BuildError::FallbackLease { path: parent.join(self.name()) });
        }
        let mut fallback = named.resolve(parent, warnings)?;
        let lease_grace = self.options.lease_grace;
        let options = fallback.edit();
        (options.facts.is_fallback, options.lease_grace) = (true, lease_grace);
        self.edit().fallback = Some(Arc::clone(&fallback.options));
        self.fallback = Some(Arc::new(fallback));
        Ok(self)
    }
}

/// Returns the path of the child that is checked, which is needed only for an error.
pub(super) type PathOf<'a> = &'a dyn Fn() -> Path;

/// Checks a policy: of a spec, a file or a call, or one that a running child sets for itself.
pub(crate) fn check_policy(policy: &RestartPolicy, path: PathOf<'_>) -> Result<(), BuildError> {
    if let Some(Err(problem)) = policy.backoff.as_ref().map(Backoff::check) {
        return Err(BuildError::BadBackoff { path: path(), problem });
    }
    check_limits(policy, path)
}

/// Checks the limits of a policy, and what follows when one is exceeded.
pub(crate) fn check_limits(policy: &RestartPolicy, path: PathOf<'_>) -> Result<(), BuildError> {
    check_twice(policy.limits.twice.as_ref(), path)?;
    let limits = policy.limits.get();
    if let Some(intensity) = limits.intensity {
        check_intensity(intensity, path)?;
    }
    if limits.failing_for.is_some_and(|max| max.is_zero()) {
        return Err(zero_duration(path, "`failing_for`", 60));
    }
    match policy.on_exhausted {
        Some(on_exhausted) => check_on_exhausted(on_exhausted, path),
        None => Ok(()),
    }
}

pub(crate) fn check_twice(twice: Option<&SetTwice>, path: PathOf<'_>) -> Result<(), BuildError> {
    let Some(SetTwice { first, second }) = twice.cloned() else { return Ok(()) };
    Err(BuildError::SetTwice { path: path(), first, second })
}

pub(crate) fn check_intensity(intensity: Intensity, path: PathOf<'_>) -> Result<(), BuildError> {
    if let Some(max) = intensity.invalid_max() {
        return Err(BuildError::BadScore { path: path(), max });
    }
    if intensity.period().is_zero() {
        return Err(BuildError::ZeroPeriod { path: path(), max: intensity.max() });
    }
    Ok(())
}

pub(crate) fn check_on_exhausted(what: OnExhausted, path: PathOf<'_>) -> Result<(), BuildError> {
    if what == OnExhausted::Pause(Duration::ZERO) {
        return Err(zero_duration(path, "pause", 15));
    }
    Ok(())
}

/// Returns the error of a duration that can't be zero. `example` is in seconds.
pub(super) fn zero_duration(path: PathOf<'_>, option: &'static str, example: u64) -> BuildError {
    BuildError::ZeroDuration { path: path(), option, example: Duration::from_secs(example) }
}

/// A child, as the path of its supervisor and its own name.
type Owner<'a> = (Path, &'a str);

/// Checks that no two children among these resolved specs and below share a mailbox, and, if `is_added`
/// to a running supervisor, that no mailbox belongs to a child already.
///
/// A child and its fallback may share one: they never run at the same time.
pub(crate) fn check_mailboxes(
    parent: &Path,
    specs: &[ChildSpec],
    is_added: bool,
) -> Result<(), BuildError> {
    let mut owners: HashMap<usize, Owner<'_>> = HashMap::new();
    // A list instead of recursion, as a tree can be a thousand levels deep.
    let mut open = vec![(parent.clone(), specs.iter())];
    while let Some((parent, specs)) = open.last_mut() {
        let Some(child) = specs.next() else {
            open.pop();
            continue;
        };
        if !child.lends() {
            continue;
        }
        let parent = parent.clone();
        let variants = || std::iter::successors(Some(child), |spec| spec.fallback.as_deref());
        for mailbox in variants().filter_map(|spec| spec.factory.mailbox()) {
            let taken = |owner| BuildError::MailboxTaken { path: parent.join(child.name()), owner };
            let own = (parent.clone(), child.name());
            if let Some(owner) = bound_elsewhere(mailbox, &own, is_added) {
                return Err(taken(owner));
            }
            let owner = owners.entry(Arc::as_ptr(mailbox).addr()).or_insert_with(|| own.clone());
            if *owner != own {
                return Err(taken(owner.0.join(owner.1)));
            }
        }
        let below = || parent.join(child.name());
        // The last one is visited first.
        let children = variants().map(|spec| spec.factory.children());
        let mut children: Vec<_> = children.filter(|children| !children.is_empty()).collect();
        children.reverse();
        open.extend(children.into_iter().map(|children| (below(), children.iter())));
    }
    Ok(())
}

/// Returns the path of the child that the mailbox belongs to, unless that is the same one.
fn bound_elsewhere(
    mailbox: &Arc<dyn MailboxControl>,
    (parent, name): &Owner<'_>,
    is_added: bool,
) -> Option<Path> {
    let bound = is_added.then(|| mailbox.bound_to()).flatten()?;
    // The supervisor refuses a second child of the same name for that reason.
    (bound != parent.join(name)).then_some(bound)
}
