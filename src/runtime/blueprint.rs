//! A supervisor as it was built: checked, and ready to be run any number of times.

use std::sync::Arc;
use std::time::Duration;

use foldhash::HashMap;

use super::Drive;
use super::letters::LetterOptions;
use crate::child::ChildSpec;
use crate::core::Key;
use crate::error::{BuildError, BuildWarning};
use crate::failure::FailureCallback;
use crate::path::Path;
use crate::policy::{
    AutoShutdown, ChildOptions, EffectivePolicy, Reset, RestartPolicy, Rules, Shutdown, unreachable,
};
use crate::status::{ChildKind, ChildSpecInfo};

/// Up to so many names, a table of them takes more memory than it saves time: 400 bytes for ten.
pub(super) const FEW: usize = 16;

#[derive(Debug)]
pub(crate) struct Blueprint {
    pub(crate) name: Arc<str>,
    pub(crate) rules: Arc<Rules>,
    /// What drives it, if it is dynamic.
    pub(crate) dynamic: Option<Drive>,
    /// Its own; it may have one from above.
    pub(crate) on_child_failure: Option<FailureCallback>,
    /// Its own; there may be more from above.
    pub(crate) letters: LetterOptions,
    /// In the order in which they start.
    pub(crate) children: Vec<ChildSpec>,
    /// The key that each of them has in every incarnation, by its name, if they are more than [`FEW`].
    pub(crate) keys: HashMap<Arc<str>, Key>,
    /// Some child has a mailbox, or somebody below one.
    pub(crate) lends: bool,
}

impl Blueprint {
    /// Its children, in the order in which they start, and their keys.
    pub(crate) fn declare(&mut self, children: Vec<ChildSpec>, keys: HashMap<Arc<str>, Key>) {
        if children.len() > FEW {
            self.keys = keys;
        }
        self.children = children;
    }

    /// Whether it is the key of one of its children, and not of one that came later.
    pub(crate) fn declares(&self, key: Key) -> bool {
        key.is_of_first(self.children.len())
    }

    /// How long it takes at most to abort all that is below, and to tell what has leaked.
    pub(crate) fn abort_bound(&self) -> Duration {
        let mut below = Duration::ZERO;
        for child in &self.children {
            // What it is told, and then what each is told that may take its place.
            let mut next = Some(&child.options);
            while let Some(options) = next {
                below = below.max(options.supervisor.unwrap_or_default());
                next = options.fallback.as_ref();
            }
        }
        self.rules.leak_timeout.saturating_add(below)
    }

    pub(crate) fn is_dynamic(&self) -> bool {
        self.dynamic.is_some()
    }

    pub(crate) fn strategy(&self) -> &'static str {
        if self.is_dynamic() { "dynamic" } else { self.rules.strategy.word() }
    }

    /// Checks what a child and this supervisor ask of each other, siblings aside.
    pub(crate) fn check_child(
        &self,
        path: &dyn Fn() -> Path,
        child: &ChildSpec,
        warnings: &mut Vec<BuildWarning>,
    ) -> Result<(), BuildError> {
        let own = || path().join(child.name());
        let options = &child.options;
        if let Some(fallback) = &child.fallback {
            self.check_child(path, fallback, warnings)?;
        }
        self.check_limits(options, own, warnings)?;
        if options.supervisor.is_none() && self.rules.shutdown(options) == Shutdown::Infinity {
            warnings.push(BuildWarning::UnboundedStop { path: own() });
        }
        if self.is_dynamic() && !child.requires.is_empty() {
            let remedy = "there is no start order in it; remove it, or use a `Supervisor`";
            return Err(BuildError::NotForDynamic { path: own(), option: "requires", remedy });
        }
        if !options.significant {
            return Ok(());
        }
        if self.is_dynamic() {
            let remedy = "its children come and go; remove `significant()`";
            return Err(BuildError::NotForDynamic { path: own(), option: "significant", remedy });
        }
        if self.rules.trigger(options).always_restarts() {
            return Err(BuildError::SignificantPermanent { path: own() });
        }
        if self.rules.auto_shutdown == AutoShutdown::Never {
            let parent = path();
            return Err(BuildError::SignificantWithoutAutoShutdown { path: own(), parent });
        }
        Ok(())
    }

    /// Checks what limits the restarts of a child, or of a fallback.
    fn check_limits(
        &self,
        options: &ChildOptions,
        own: impl Fn() -> Path,
        warnings: &mut Vec<BuildWarning>,
    ) -> Result<(), BuildError> {
        let backoff = self.rules.backoff(options);
        let limits = self.rules.limits(options).unwrap_or_default();
        // As for rules that forgive in other ways: this is about a child that was active for no
        // time at all.
        let at_once = backoff.resets_after().is_some_and(|life| life.is_zero());
        if at_once || (backoff.resets_on(Reset::OnReady) && !options.signals) {
            if self.rules.intensity.is_none() && limits.intensity.is_none() {
                return Err(BuildError::EndlessRestarts { path: own() });
            }
            // One that isn't active at once may fail before it is, and is not forgiven then.
            if !options.signals {
                let never = |limit| BuildWarning::NeverInARow { path: own(), limit };
                warnings.extend(limits.in_a_row().map(never));
            }
        }
        let unreachable =
            limits.intensity.and_then(|limit| unreachable(limit, std::iter::once(backoff)));
        warnings.extend(unreachable.map(|limit| BuildWarning::unreachable(&own(), limit)));
        Ok(())
    }

    /// The policy that a child is under that says `own` itself.
    pub(crate) fn policy(
        &self,
        options: &Arc<ChildOptions>,
        own: Option<Arc<RestartPolicy>>,
    ) -> EffectivePolicy {
        EffectivePolicy::new(Arc::clone(options), Arc::clone(&self.rules), own)
    }

    /// How a child is treated, every default filled in.
    pub(crate) fn describe(&self, name: String, options: &Arc<ChildOptions>) -> ChildSpecInfo {
        let rules = &self.rules;
        let limits = rules.limits(options).unwrap_or_default();
        ChildSpecInfo {
            name,
            kind: kind(options),
            restart: rules.restart(options),
            trigger: rules.trigger(options),
            shutdown: rules.shutdown(options),
            backoff: rules.backoff(options).clone(),
            significant: options.significant,
            activation_timeout: rules.activation_timeout(options),
            on_leak: rules.on_leak(options),
            intensity: limits.intensity,
            consecutive_restarts: limits.consecutive,
            failing_for: limits.failing_for,
            on_exhausted: rules.on_exhausted(options),
            failure_log: rules.failure_log(options),
            sources: self.policy(options, None).sources(),
        }
    }
}

pub(crate) fn kind(options: &ChildOptions) -> ChildKind {
    if options.supervisor.is_some() { ChildKind::Supervisor } else { ChildKind::Worker }
}
