//! How a child is restarted, as one value: said in code, read from a file, or by the child itself.
//!
//! A [`RestartPolicy`] is a set of answers, each of which may be missing. It knows neither what it
//! stands above nor when it is forgotten.

use std::time::Duration;

use super::{Backoff, ChildOptions, FailureLog, Intensity, OnExhausted, Trigger, WrittenLimits};

/// How a child is restarted: all that there is to say about it, or some of it.
///
/// For a spec ([`ChildSpec::policy`](crate::ChildSpec::policy)), for all children of a supervisor
/// ([`ChildDefaults::policy`](crate::ChildDefaults::policy)), or said by a running child about its
/// own end ([`Context::set_restart_policy`](crate::Context::set_restart_policy)). What is left open
/// stays as it is where the policy is applied.
///
/// ```
/// use std::time::Duration;
///
/// use verger::{Backoff, Context, Exit, RestartPolicy, RestartType};
///
/// async fn migrate(ctx: Context) -> Exit {
///     ctx.set_restart_policy(Some(RestartPolicy::new().restart(RestartType::Temporary)))?;
///     // From here on a failure must not make it run again…
///     ctx.set_restart_policy(Some(
///         RestartPolicy::new().backoff(Backoff::constant(Duration::from_secs(60))),
///     ))?;
///     // … and from here on it may, a minute later.
///     Ok(())
/// }
/// ```
///
/// # In a file
///
/// A table whose keys are the methods. All may be left out; one that there isn't is an error, and
/// so is a value without a meaning. `max_restarts` and `period` are short for an `intensity` that
/// slides.
///
/// ```
/// use verger::{RestartPolicy, worker};
///
/// let policy: RestartPolicy = toml::from_str(
///     r#"
///     restart = "on_failure"
///     backoff = { min = "200ms", max = "30s", jitter = 0.2 }
///     max_restarts = 5
///     period = "60s"
///     consecutive_restarts = 10
///     failing_for = "1h"
///     on_exhausted = { pause = "15s" }
///     failure_log = { level = "info", critical = { level = "error", after = 3 } }
///     "#,
/// )?;
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
    /// A policy that leaves everything open.
    pub const fn new() -> Self {
        let limits = WrittenLimits::none();
        Self { restart: None, backoff: None, limits, on_exhausted: None, failure_log: None }
    }

    /// What an end leads to: a [`RestartType`](crate::RestartType), or a [`Trigger`]. See
    /// [`ChildSpec::restart`](crate::ChildSpec::restart).
    ///
    /// Said by a running child, it replaces what the spec says, exceptions included. With
    /// [`RestartType::Temporary`](crate::RestartType::Temporary) it isn't restarted then; the spec
    /// is kept all the same, unless it is temporary itself, or belongs to a dynamic supervisor,
    /// which keeps nobody who has ended.
    pub fn restart(mut self, restart: impl Into<Trigger>) -> Self {
        self.restart = Some(restart.into());
        self
    }

    /// How long to wait before each restart. See [`ChildSpec::backoff`](crate::ChildSpec::backoff).
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = Some(backoff);
        self
    }

    /// Allows the child `max` restarts within `period`, which slides. See
    /// [`ChildSpec::restarts`](crate::ChildSpec::restarts).
    pub fn restarts(self, max: u32, period: Duration) -> Self {
        self.intensity(Intensity::sliding(max, period))
    }

    /// The same as [`restarts`](Self::restarts) with another kind of window.
    pub fn intensity(mut self, intensity: Intensity) -> Self {
        self.limits.intensity(intensity);
        self
    }

    /// Allows the child `max` restarts in a row. See
    /// [`ChildSpec::consecutive_restarts`](crate::ChildSpec::consecutive_restarts).
    pub fn consecutive_restarts(mut self, max: u32) -> Self {
        self.limits.consecutive(max);
        self
    }

    /// Gives the child up at a failure that comes later than `max` after its first one. See
    /// [`ChildSpec::failing_for`](crate::ChildSpec::failing_for).
    pub fn failing_for(mut self, max: Duration) -> Self {
        self.limits.failing_for(max);
        self
    }

    /// What follows when the child has failed too often. See
    /// [`ChildSpec::on_exhausted`](crate::ChildSpec::on_exhausted).
    pub fn on_exhausted(mut self, on_exhausted: OnExhausted) -> Self {
        self.on_exhausted = Some(on_exhausted);
        self
    }

    /// How loudly its failures are logged. See
    /// [`ChildSpec::failure_log`](crate::ChildSpec::failure_log).
    pub fn failure_log(mut self, log: FailureLog) -> Self {
        self.failure_log = Some(log);
        self
    }
}

impl ChildOptions {
    /// Says what a policy says.
    pub(crate) fn adopt(&mut self, policy: RestartPolicy) {
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
    use super::*;
    use crate::policy::{Limits, LogLevel, RestartType};

    const SECOND: Duration = Duration::from_secs(1);

    /// One policy for each part that can be said.
    fn each() -> [RestartPolicy; 7] {
        [
            RestartPolicy::new().restart(RestartType::Transient),
            RestartPolicy::new().backoff(Backoff::none()),
            RestartPolicy::new().restarts(1, SECOND),
            RestartPolicy::new().consecutive_restarts(2),
            RestartPolicy::new().failing_for(SECOND),
            RestartPolicy::new().on_exhausted(OnExhausted::Park),
            RestartPolicy::new().failure_log(FailureLog::at(LogLevel::Info)),
        ]
    }

    /// What options say of restarts.
    fn said(options: &ChildOptions) -> RestartPolicy {
        RestartPolicy {
            restart: options.restart.clone(),
            backoff: options.backoff.clone(),
            limits: options.limits.clone(),
            on_exhausted: options.on_exhausted,
            failure_log: options.failure_log,
        }
    }

    #[test]
    fn what_is_not_said_is_left_open() {
        for (number, policy) in each().into_iter().enumerate() {
            for (other, before) in each().into_iter().enumerate() {
                let mut options = ChildOptions::default();
                options.adopt(before.clone());
                options.adopt(policy.clone());
                if number != other {
                    let both = said(&options);
                    options.adopt(RestartPolicy::new());
                    assert_eq!(said(&options), both, "nothing changes nothing");
                    assert_ne!(both, before, "{policy:?} is taken over");
                    assert_ne!(both, policy, "{before:?} is kept");
                }
            }
        }
    }

    #[test]
    fn all_parts_are_taken_over() {
        let policy = RestartPolicy::new()
            .restart(RestartType::Transient)
            .backoff(Backoff::none())
            .restarts(1, SECOND)
            .consecutive_restarts(2)
            .failing_for(SECOND)
            .on_exhausted(OnExhausted::Park)
            .failure_log(FailureLog::at(LogLevel::Info));
        let mut options = ChildOptions::default();
        options.adopt(policy.clone());
        assert_eq!(said(&options), policy);
    }

    #[test]
    fn a_limit_that_is_there_already_is_written_twice() {
        let mut options = ChildOptions::default();
        options.limits.consecutive(3);
        options.adopt(RestartPolicy::new().failing_for(SECOND));
        assert_eq!(options.limits.twice, None);
        let expected = Limits { intensity: None, consecutive: Some(3), failing_for: Some(SECOND) };
        assert_eq!(options.limits.get(), expected);
        options.adopt(RestartPolicy::new().consecutive_restarts(4));
        let twice = options.limits.twice.expect("it is noted");
        let texts = (twice.first.as_str(), twice.second.as_str());
        assert_eq!(texts, ("consecutive_restarts(3)", "consecutive_restarts(4)"));
    }
}
