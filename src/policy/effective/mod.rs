//! The effective policy of a child, with the source of each value.
//!
//! An [`EffectivePolicy`] shares the [`ChildRules`] that the supervisor decides by.

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{
    Backoff, ChildRules, FailureLog, Intensity, Limits, OnExhausted, RestartPolicy, Trigger,
};
use crate::string_enum::string_enum;

/// The source of a value in the effective policy of a child. Later variants take precedence.
///
/// The example of [`Effective`] compares one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum PolicySource {
    /// The built-in default.
    Default,
    /// The [preset](crate::SupervisorBuilder::preset) of the supervisor.
    Preset,
    /// The supervisor's own [`restarts`](crate::SupervisorBuilder::restarts) or
    /// [`on_exhausted`](crate::SupervisorBuilder::on_exhausted).
    Supervisor,
    /// The supervisor's [defaults](crate::SupervisorBuilder::defaults) for children.
    Defaults,
    /// The [spec](crate::ChildSpec) of the child, or its type in
    /// [`Child::child_spec`](crate::Child::child_spec).
    Spec,
    /// A configuration file; see the module `config`.
    File,
    /// A call of a handle, such as `set_policy`.
    Call,
    /// The child itself, for the current incarnation, with
    /// [`Context::set_restart_policy`](crate::Context::set_restart_policy).
    Child,
}

string_enum!(
    PolicySource, "policy source":
    Default = "default",
    Preset = "preset",
    Supervisor = "supervisor",
    Defaults = "defaults",
    Spec = "spec",
    File = "file",
    Call = "call",
    Child = "child",
);

/// An effective value of a policy, and its source.
///
/// ```
/// use verger::policy::PolicySource;
/// use verger::{Context, RestartType, Supervisor, worker};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let import = worker("import", async |ctx: Context| ctx.cancelled().await);
/// let import = import.restart(RestartType::Transient);
/// let app = Supervisor::builder("app").child(import).build()?.start().await?;
///
/// let policy = app.which_child("import").await?.policy.unwrap();
/// assert_eq!(policy.restart().value, RestartType::Transient.into());
/// assert_eq!(policy.restart().source, PolicySource::Spec);
/// assert_eq!(policy.sources().backoff, PolicySource::Default);
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Effective<T> {
    /// The value.
    pub value: T,
    /// The source of the value.
    pub source: PolicySource,
}

impl<T> Effective<T> {
    fn new(value: T, source: PolicySource) -> Self {
        Self { value, source }
    }
}

/// The sources of all values of a policy. For a limit that isn't set, [`PolicySource::Default`].
///
/// The example of [`Effective`] reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicySources {
    /// See [`EffectivePolicy::restart`].
    pub restart: PolicySource,
    /// See [`EffectivePolicy::backoff`].
    pub backoff: PolicySource,
    /// See [`EffectivePolicy::intensity`].
    pub intensity: PolicySource,
    /// See [`EffectivePolicy::consecutive_restarts`].
    pub consecutive_restarts: PolicySource,
    /// See [`EffectivePolicy::failing_for`].
    pub failing_for: PolicySource,
    /// See [`EffectivePolicy::on_exhausted`].
    pub on_exhausted: PolicySource,
    /// See [`EffectivePolicy::failure_log`].
    pub failure_log: PolicySource,
}

/// The effective policy of a child: the values that decide on its next exit.
///
/// While the child waits for a restart, these are the values that decided on its last exit. A clone
/// shares the values.
///
/// The serialised form, with the feature `serde`, has each value, as it is written in a file, and its
/// source. A limit that isn't set is left out.
///
/// ```json
/// {
///   "restart": { "value": "transient", "source": "spec" },
///   "backoff": { "value": { "curve": "constant", "delay": "5s" }, "source": "defaults" },
///   "intensity": { "value": { "max": 3, "period": "1m" }, "source": "child" },
///   "on_exhausted": { "value": "escalate", "source": "default" },
///   "failure_log": { "value": { "level": "warn" }, "source": "default" }
/// }
/// ```
#[derive(Clone)]
pub struct EffectivePolicy {
    rules: Arc<ChildRules>,
    /// The policy that the child has set for its current incarnation.
    own: Option<Arc<RestartPolicy>>,
}

impl EffectivePolicy {
    pub(crate) fn new(rules: Arc<ChildRules>, own: Option<Arc<RestartPolicy>>) -> Self {
        Self { rules, own }
    }

    /// Returns `true` if the child has set a value itself, for its current incarnation.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.own.as_deref().is_some_and(|own| *own != RestartPolicy::new())
    }

    /// Returns the trigger: which exits are followed by a restart.
    ///
    /// If the spec adds exceptions to a trigger from a different source, the source is the spec.
    #[must_use]
    pub fn restart(&self) -> Effective<Trigger> {
        if let Some(own) = self.own.as_ref().and_then(|own| own.restart.clone()) {
            return Effective::new(own, PolicySource::Child);
        }
        Effective::new(self.rules.trigger.clone(), self.rules.sources.restart)
    }

    /// Returns the backoff.
    #[must_use]
    pub fn backoff(&self) -> Effective<&Backoff> {
        if let Some(own) = self.own.as_ref().and_then(|own| own.backoff.as_ref()) {
            return Effective::new(own, PolicySource::Child);
        }
        Effective::new(&self.rules.backoff, self.rules.sources.backoff)
    }

    /// Returns the child's own limit on restarts in a period, if it has one.
    #[must_use]
    pub fn intensity(&self) -> Option<Effective<Intensity>> {
        self.limit(|limits| limits.intensity, |sources| sources.intensity)
    }

    /// Returns the limit on consecutive restarts, if there is one.
    #[must_use]
    pub fn consecutive_restarts(&self) -> Option<Effective<u32>> {
        self.limit(|limits| limits.consecutive, |sources| sources.consecutive_restarts)
    }

    /// Returns the limit on the time for which the child may fail, if there is one.
    #[must_use]
    pub fn failing_for(&self) -> Option<Effective<Duration>> {
        self.limit(|limits| limits.failing_for, |sources| sources.failing_for)
    }

    /// Returns what happens when the child exceeds a limit.
    #[must_use]
    pub fn on_exhausted(&self) -> Effective<OnExhausted> {
        if let Some(own) = self.own.as_ref().and_then(|own| own.on_exhausted) {
            return Effective::new(own, PolicySource::Child);
        }
        Effective::new(self.rules.on_exhausted, self.rules.sources.on_exhausted)
    }

    /// Returns the log level of failures.
    #[must_use]
    pub fn failure_log(&self) -> Effective<FailureLog> {
        if let Some(own) = self.own.as_ref().and_then(|own| own.failure_log) {
            return Effective::new(own, PolicySource::Child);
        }
        Effective::new(self.rules.failure_log, self.rules.sources.failure_log)
    }

    /// Returns the sources of all values.
    #[must_use]
    pub fn sources(&self) -> PolicySources {
        fn of<T>(limit: Option<Effective<T>>) -> PolicySource {
            limit.map_or(PolicySource::Default, |limit| limit.source)
        }

        PolicySources {
            restart: self.restart().source,
            backoff: self.backoff().source,
            intensity: of(self.intensity()),
            consecutive_restarts: of(self.consecutive_restarts()),
            failing_for: of(self.failing_for()),
            on_exhausted: self.on_exhausted().source,
            failure_log: self.failure_log().source,
        }
    }

    fn limit<T>(
        &self,
        of: impl Fn(&Limits) -> Option<T>,
        source: impl Fn(&PolicySources) -> PolicySource,
    ) -> Option<Effective<T>> {
        let own = self.own.as_deref();
        let value = of(&self.rules.limits(own)?)?;
        let is_own = own.is_some_and(|own| of(&own.limits.get()).is_some());
        let source = if is_own { PolicySource::Child } else { source(&self.rules.sources) };
        Some(Effective::new(value, source))
    }
}

impl fmt::Debug for EffectivePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EffectivePolicy")
            .field("restart", &self.restart())
            .field("backoff", &self.backoff())
            .field("intensity", &self.intensity())
            .field("consecutive_restarts", &self.consecutive_restarts())
            .field("failing_for", &self.failing_for())
            .field("on_exhausted", &self.on_exhausted())
            .field("failure_log", &self.failure_log())
            .finish()
    }
}
