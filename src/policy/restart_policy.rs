//! What a running child says of its own restart, for as long as that incarnation lasts.
//!
//! A [`RestartPolicy`] is a set of answers, each of which may be missing. It knows neither the spec
//! that it overrides nor when it is forgotten.

use super::{Backoff, BackoffProblem, Trigger};

/// How a child is restarted, instead of what its spec says; see
/// [`Context::set_restart_policy`](crate::Context::set_restart_policy).
///
/// What is left open stays as the spec has it.
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
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "a policy does nothing until it is set"]
pub struct RestartPolicy {
    pub(crate) restart: Option<Trigger>,
    pub(crate) backoff: Option<Backoff>,
}

impl RestartPolicy {
    /// A policy that leaves everything as the spec has it.
    pub const fn new() -> Self {
        Self { restart: None, backoff: None }
    }

    /// What the end of this incarnation leads to: a [`RestartType`](crate::RestartType), or a
    /// [`Trigger`]. What the spec says, exceptions included, is not looked at.
    ///
    /// With [`RestartType::Temporary`](crate::RestartType::Temporary) it isn't restarted; the spec is kept all the same, unless it is
    /// temporary itself, or belongs to a dynamic supervisor, which keeps nobody who has ended.
    pub fn restart(mut self, restart: impl Into<Trigger>) -> Self {
        self.restart = Some(restart.into());
        self
    }

    /// How long to wait before the restart that follows this incarnation.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = Some(backoff);
        self
    }

    /// Whether it makes sense.
    pub(crate) fn check(&self) -> Result<(), BackoffProblem> {
        self.backoff.as_ref().map_or(Ok(()), Backoff::check)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_not_said_is_left_open() {
        let (restart, backoff) = (Trigger::stop(), Backoff::none());
        let table = [
            (RestartPolicy::new(), None, None),
            (RestartPolicy::new().restart(restart.clone()), Some(restart), None),
            (RestartPolicy::new().backoff(backoff.clone()), None, Some(backoff)),
        ];
        for (policy, restart, backoff) in table {
            assert_eq!((&policy.restart, &policy.backoff), (&restart, &backoff), "{policy:?}");
            assert_eq!(policy.check(), Ok(()));
        }
    }

    #[test]
    fn a_backoff_that_makes_no_sense_is_told() {
        let second = Duration::from_secs(1);
        let policy = RestartPolicy::new().backoff(Backoff::exponential(2 * second, second));
        assert!(policy.check().is_err());
    }
}
