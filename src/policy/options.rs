//! What a supervisor and a child are told to do, as plain values.
//!
//! A [`ChildOptions`] holds what its author wrote; a field that was left open is `None` and is
//! answered by the [`Rules`] of the supervisor that owns the child. So children may share one
//! options value, and a default is kept once for a million of them.
//!
//! Nothing here is checked: a value that exists in a built tree has passed `tree::check`.

use std::sync::Arc;
use std::time::Duration;

use super::{
    AskedWaits, AutoShutdown, Backoff, Exceptions, FailureLog, FirstStart, Intensity, Limits,
    OnExhausted, OnExit, OnLeak, PolicySource, RestartType, Shutdown, Sources, Start, Strategy,
    Trigger, WrittenLimits,
};
use crate::exit::ExitReason;

/// What the author of a child asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChildOptions {
    pub(crate) restart: Option<Trigger>,
    /// Come before those of `restart`, be that the child's own or the default.
    pub(crate) exceptions: Exceptions,
    pub(crate) shutdown: Option<Shutdown>,
    pub(crate) backoff: Option<Backoff>,
    /// What errors say about the wait, in place of the backoff.
    pub(crate) waits: AskedWaits,
    pub(crate) activation_timeout: Option<Duration>,
    pub(crate) on_leak: Option<OnLeak>,
    pub(crate) failure_log: Option<FailureLog>,
    pub(crate) limits: WrittenLimits,
    pub(crate) on_exhausted: Option<OnExhausted>,
    /// What takes its place when it has failed too often.
    pub(crate) fallback: Option<Arc<ChildOptions>>,
    /// It is one.
    pub(crate) is_fallback: bool,
    pub(crate) significant: bool,
    /// Active only once the child has said so, not as soon as its task exists.
    pub(crate) signals: bool,
    /// Only the child's own word counts, not that its `activate` has returned.
    pub(crate) signals_itself: bool,
    /// That it is unhealthy is a failure, and not only told.
    pub(crate) fails_unhealthy: bool,
    /// It is started by the first message for it, not with its supervisor.
    pub(crate) on_message: bool,
    /// While it would wait for its restart, its messages do, and it runs.
    pub(crate) delays_traffic: bool,
    /// The child is a supervisor; how long it may take to abort all that is below it.
    pub(crate) supervisor: Option<Duration>,
}

/// The rules of one supervisor, every field answered.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) strategy: Strategy,
    pub(crate) auto_shutdown: AutoShutdown,
    pub(crate) start: Start,
    pub(crate) first_start: FirstStart,
    pub(crate) on_exhausted: OnExhausted,
    /// Who said so.
    pub(crate) on_exhausted_from: PolicySource,
    /// `None`: unlimited.
    pub(crate) intensity: Option<Intensity>,
    /// Failures before Active count too, whatever their delay.
    pub(crate) charge_everything: bool,
    /// Giving up is a clean end, as in OTP.
    pub(crate) gives_up_cleanly: bool,
    /// Somebody is asked what becomes of a child that has failed. Known when the supervisor starts.
    pub(crate) asks: bool,
    pub(crate) leak_timeout: Duration,
    /// How long `stop` may take in all; `None`: as long as the graces of the children add up to.
    pub(crate) stop_deadline: Option<Duration>,
    /// Dynamic supervisors only.
    pub(crate) max_children: Option<usize>,
    /// What children get that did not say otherwise.
    pub(crate) defaults: ChildOptions,
    /// What children get from a preset that have it neither from their author nor from `defaults`.
    pub(crate) preset: ChildOptions,
    /// The backoff behind all of that.
    pub(crate) backoff: Backoff,
    /// Where random numbers come from, if not from a seed.
    pub(crate) random: Option<Sources>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            strategy: Strategy::OneForOne,
            auto_shutdown: AutoShutdown::Never,
            start: Start::Sequential,
            first_start: FirstStart::Retry,
            on_exhausted: OnExhausted::Escalate,
            on_exhausted_from: PolicySource::Default,
            intensity: Some(Intensity::sliding(5, Duration::from_secs(60))),
            charge_everything: false,
            gives_up_cleanly: false,
            asks: false,
            leak_timeout: Duration::from_secs(1),
            stop_deadline: None,
            max_children: None,
            defaults: ChildOptions::default(),
            preset: ChildOptions::default(),
            backoff: Backoff::default(),
            random: None,
        }
    }
}

impl Rules {
    pub(crate) fn restart(&self, child: &ChildOptions) -> RestartType {
        self.base(child).map(Trigger::restart_type).unwrap_or_default()
    }

    /// What an end of the child leads to; `active`: it was active when it came.
    pub(crate) fn on_exit(
        &self,
        child: &ChildOptions,
        reason: &ExitReason,
        active: bool,
    ) -> OnExit {
        match self.base(child) {
            Some(trigger) => trigger.after(&child.exceptions, reason, active),
            None => Trigger::DEFAULT.after(&child.exceptions, reason, active),
        }
    }

    /// The child's trigger with all its exceptions.
    pub(crate) fn trigger(&self, child: &ChildOptions) -> Trigger {
        self.base(child).cloned().unwrap_or_default().with(&child.exceptions)
    }

    /// A child's own trigger replaces the default as a whole.
    fn base<'a>(&'a self, child: &'a ChildOptions) -> Option<&'a Trigger> {
        let beneath = self.defaults.restart.as_ref().or(self.preset.restart.as_ref());
        child.restart.as_ref().or(beneath)
    }

    /// A child supervisor needs time for all that is below it, so only its own setting limits it.
    pub(crate) fn shutdown(&self, child: &ChildOptions) -> Shutdown {
        match (child.shutdown, child.supervisor) {
            (Some(own), _) => own,
            (None, Some(_)) => Shutdown::Infinity,
            (None, None) => self.defaults.shutdown.unwrap_or(Shutdown::DEFAULT),
        }
    }

    pub(crate) fn backoff<'a>(&'a self, child: &'a ChildOptions) -> &'a Backoff {
        let beneath = self.defaults.backoff.as_ref().or(self.preset.backoff.as_ref());
        child.backoff.as_ref().or(beneath).unwrap_or(&self.backoff)
    }

    /// The wait that the error behind this end asks for, if it does.
    pub(crate) fn asked_wait(&self, child: &ChildOptions, reason: &ExitReason) -> Option<Duration> {
        if child.waits.is_empty() && self.defaults.waits.is_empty() {
            return None;
        }
        child.waits.after(reason).or_else(|| self.defaults.waits.after(reason))
    }

    pub(crate) fn activation_timeout(&self, child: &ChildOptions) -> Option<Duration> {
        child.activation_timeout.or(self.defaults.activation_timeout)
    }

    pub(crate) fn on_leak(&self, child: &ChildOptions) -> OnLeak {
        child.on_leak.or(self.defaults.on_leak).unwrap_or_default()
    }

    pub(crate) fn failure_log(&self, child: &ChildOptions) -> FailureLog {
        child.failure_log.or(self.defaults.failure_log).unwrap_or_default()
    }

    /// How often is too often for this child, besides what is too often for all together, if anything
    /// is. Most children have no limits, and to look into all layers was 160 instructions of a restart.
    pub(crate) fn limits(&self, child: &ChildOptions) -> Option<Limits> {
        let all = || child.limits.get().or(self.defaults.limits.get()).or(self.preset.limits.get());
        self.is_limited(child).then(all)
    }

    fn is_limited(&self, child: &ChildOptions) -> bool {
        let layers = [&child.limits, &self.defaults.limits, &self.preset.limits];
        layers.iter().any(|limits| !limits.is_none())
    }

    pub(crate) fn on_exhausted(&self, child: &ChildOptions) -> OnExhausted {
        child.on_exhausted.or(self.defaults.on_exhausted).unwrap_or(self.on_exhausted)
    }

    /// How long an aborted child may take to disappear before it counts as leaked.
    pub(crate) fn leak_timeout(&self, child: &ChildOptions) -> Duration {
        self.leak_timeout.saturating_add(child.supervisor.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_limited_if_it_or_the_defaults_or_the_preset_say_so() {
        for layers in [[true, false, false], [false, true, false], [false, false, true]] {
            let [child, defaults, preset] = layers.map(|limited| {
                let mut options = ChildOptions::default();
                if limited {
                    options.limits.consecutive(3);
                }
                options
            });
            let rules = Rules { defaults, preset, ..Rules::default() };
            assert!(rules.is_limited(&child), "{layers:?}");
        }
        assert!(!Rules::default().is_limited(&ChildOptions::default()));
    }
}
