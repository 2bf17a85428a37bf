//! Restart policies: how a child is restarted, as one value.
//!
//! A [`RestartPolicy`] is a set of optional values. It is set in code, read from a file, or set by a
//! running child for itself.

use super::setters::policy_setters;
use super::{Backoff, FailureLog, OnExhausted, Trigger, WrittenLimits};

/// How a child is restarted, as a set of optional values.
///
/// Set it on a spec ([`ChildSpec::policy`](crate::ChildSpec::policy)), for all children of a
/// supervisor ([`ChildDefaults::policy`](crate::ChildDefaults::policy)), or from a running child for
/// its own exit ([`Context::set_restart_policy`](crate::Context::set_restart_policy)). A policy
/// doesn't change a setting for which it has no value.
///
/// ```
/// use std::time::Duration;
///
/// use verger::policy::RestartPolicy;
/// use verger::{Backoff, Context, Exit, RestartType};
///
/// async fn migrate(ctx: Context) -> Exit {
///     ctx.set_restart_policy(Some(RestartPolicy::new().restart(RestartType::Temporary)))?;
///     // From here on, a failure isn't followed by a restart…
///     ctx.set_restart_policy(Some(
///         RestartPolicy::new().backoff(Backoff::constant(Duration::from_secs(60))),
///     ))?;
///     // … and from here on it is, a minute later.
///     Ok(())
/// }
/// ```
///
/// # In a file
///
/// With the feature `serde`, a table whose keys are the names of the methods. All keys are optional; an unknown key or an
/// invalid value is an error. `own_restarts` is a sliding window; `intensity` takes any window.
///
/// ```
/// use verger::policy::RestartPolicy;
/// use verger::worker;
///
/// # #[cfg(feature = "serde")]
/// let policy: RestartPolicy = toml::from_str(
///     r#"
///     restart = "on_failure"
///     backoff = { min = "200ms", max = "30s", jitter = 0.2 }
///     own_restarts = { max = 5, period = "60s" }
///     consecutive_restarts = 10
///     failing_for = "1h"
///     on_exhausted = { pause = "15s" }
///     failure_log = { level = "info", critical = { level = "error", after = 3 } }
///     "#,
/// )?;
/// # #[cfg(not(feature = "serde"))]
/// # let policy = RestartPolicy::new();
/// let mqtt = worker("mqtt", async |_| {}).policy(policy);
/// # drop(mqtt);
/// # Ok::<_, toml::de::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "a policy does nothing until it is set"]
pub struct RestartPolicy {
    pub(crate) restart: Option<Trigger>,
    pub(crate) backoff: Option<Backoff>,
    pub(crate) limits: WrittenLimits,
    pub(crate) on_exhausted: Option<OnExhausted>,
    pub(crate) failure_log: Option<FailureLog>,
}

impl RestartPolicy {
    /// Creates a policy without any value.
    pub const fn new() -> Self {
        let limits = WrittenLimits::none();
        Self { restart: None, backoff: None, limits, on_exhausted: None, failure_log: None }
    }

    policy_setters!(self => self);

    /// Returns the names of the values that are set.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        let limits = self.limits.get();
        [
            ("restart", self.restart.is_some()),
            ("backoff", self.backoff.is_some()),
            ("intensity", limits.intensity.is_some() || limits.unlimited),
            ("consecutive_restarts", limits.consecutive.is_some()),
            ("failing_for", limits.failing_for.is_some()),
            ("on_exhausted", self.on_exhausted.is_some()),
            ("failure_log", self.failure_log.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, is_set)| is_set.then_some(name))
    }

    /// Sets the values of a different policy.
    pub(crate) fn merge(&mut self, policy: RestartPolicy) {
        let RestartPolicy { restart, backoff, limits, on_exhausted, failure_log } = policy;
        self.restart = restart.or(self.restart.take());
        self.backoff = backoff.or(self.backoff.take());
        self.limits.add(&limits);
        self.on_exhausted = on_exhausted.or(self.on_exhausted);
        self.failure_log = failure_log.or(self.failure_log);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::policy::{Limits, LogLevel, RestartType};

    const SECOND: Duration = Duration::from_secs(1);

    /// One policy for each value.
    fn each() -> [RestartPolicy; 7] {
        [
            RestartPolicy::new().restart(RestartType::Transient),
            RestartPolicy::new().backoff(Backoff::none()),
            RestartPolicy::new().own_restarts(1, SECOND),
            RestartPolicy::new().consecutive_restarts(2),
            RestartPolicy::new().failing_for(SECOND),
            RestartPolicy::new().on_exhausted(OnExhausted::Park),
            RestartPolicy::new().failure_log(FailureLog::at(LogLevel::Info)),
        ]
    }

    #[test]
    fn a_value_that_is_not_set_stays_as_it_is() {
        for (number, policy) in each().into_iter().enumerate() {
            for (other, before) in each().into_iter().enumerate() {
                let mut options = RestartPolicy::new();
                options.merge(before.clone());
                options.merge(policy.clone());
                if number != other {
                    let both = options.clone();
                    options.merge(RestartPolicy::new());
                    assert_eq!(options, both, "an empty policy changes nothing");
                    assert_ne!(both, before, "{policy:?} is set");
                    assert_ne!(both, policy, "{before:?} is kept");
                }
            }
        }
    }

    #[test]
    fn merging_sets_all_values() {
        let policy = RestartPolicy::new()
            .restart(RestartType::Transient)
            .backoff(Backoff::none())
            .own_restarts(1, SECOND)
            .consecutive_restarts(2)
            .failing_for(SECOND)
            .on_exhausted(OnExhausted::Park)
            .failure_log(FailureLog::at(LogLevel::Info));
        let mut options = RestartPolicy::new();
        options.merge(policy.clone());
        assert_eq!(options, policy);
    }

    #[test]
    fn a_limit_that_is_set_already_is_reported_as_set_twice() {
        let mut options = RestartPolicy::new();
        options.limits.consecutive(3);
        options.merge(RestartPolicy::new().failing_for(SECOND));
        assert_eq!(options.limits.twice, None);
        let (consecutive, failing_for) = (Some(3), Some(SECOND));
        let expected = Limits { consecutive, failing_for, ..Limits::default() };
        assert_eq!(options.limits.get(), expected);
        options.merge(RestartPolicy::new().consecutive_restarts(4));
        let twice = options.limits.twice.expect("both values are recorded");
        let texts = (twice.first.as_str(), twice.second.as_str());
        assert_eq!(texts, ("consecutive_restarts(3)", "consecutive_restarts(4)"));
    }
}
