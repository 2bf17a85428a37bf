//! Checks of specs, and the resolution of nested supervisors.

use std::iter;
use std::sync::Arc;
use std::time::Duration;

use super::check::check_policy;
use super::spec::ChildSpec;
use super::spec::{FactoryKind, Nested, Resolved};
use crate::error::{BuildError, BuildWarning};
use crate::path::{Path, check_name};

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
                (options.supervisor, options.fails_after) = (Some(abort_bound), gives_up);
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
            health.check(&path())?;
        }
        #[cfg(feature = "lease")]
        if let Some(lease) = &self.lease {
            lease.check().map_err(|problem| BuildError::BadLease {
                path: path(),
                problem: problem.to_string(),
            })?;
        }
        if self.options.values.activation_timeout.is_some_and(|timeout| timeout.is_zero()) {
            let (path, example) = (path(), Duration::from_secs(10));
            return Err(BuildError::ZeroDuration { path, option: "activation timeout", example });
        }
        if self.options.values.run_time_limit.is_some_and(|limit| limit.is_zero()) {
            let (path, example) = (path(), Duration::from_secs(300));
            return Err(BuildError::ZeroDuration { path, option: "run-time limit", example });
        }
        if let Some(interval) = self.options.values.watchdog {
            let (path, example) = (path(), Duration::from_secs(30));
            if interval.is_zero() {
                return Err(BuildError::ZeroDuration { path, option: "watchdog", example });
            }
            if self.options.supervisor.is_some() {
                return Err(BuildError::WatchdogOfSupervisor { path });
            }
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
        (options.is_fallback, options.lease_grace) = (true, lease_grace);
        self.edit().fallback = Some(Arc::clone(&fallback.options));
        self.fallback = Some(Arc::new(fallback));
        Ok(self)
    }
}
