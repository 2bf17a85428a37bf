//! The options of children and the rules of supervisors, as plain values.
//!
//! A [`ChildOptions`] holds the options of one spec. For an option that isn't set, the [`Rules`] of the
//! supervisor have a value. Many children share one `ChildOptions`, and all children one `Rules`.
//!
//! Nothing here is checked. The values of a built tree have passed `spec::check`.

use std::sync::Arc;
use std::time::Duration;

use super::{
    AutoShutdown, Backoff, ChildLayer, Exceptions, FailsAfter, FailureLog, FirstStart, Intensity,
    Limits, OnExhausted, OnExit, OnLeak, Places, PolicySource, RandomFactory, RestartType,
    RetryAfter, Shutdown, Start, Strategy, SupervisorLayer, Trigger, WrittenLimits, default_above,
};
use crate::exit::ExitReason;

/// The options of a child, of the defaults for children, or of a preset.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChildOptions {
    pub(crate) restart: Option<Trigger>,
    /// Evaluated before the exceptions of `restart`.
    pub(crate) exceptions: Exceptions,
    pub(crate) shutdown: Option<Shutdown>,
    pub(crate) backoff: Option<Backoff>,
    /// Delays from errors, in place of the backoff.
    pub(crate) retry_after: RetryAfter,
    pub(crate) activation_timeout: Option<Duration>,
    pub(crate) watchdog: Option<Duration>,
    pub(crate) run_time_limit: Option<Duration>,
    pub(crate) on_leak: Option<OnLeak>,
    pub(crate) failure_log: Option<FailureLog>,
    pub(crate) limits: WrittenLimits,
    pub(crate) on_exhausted: Option<OnExhausted>,
    /// Replaces the child when it exceeds a limit.
    pub(crate) fallback: Option<Arc<ChildOptions>>,
    /// Whether these are the options of a fallback.
    pub(crate) is_fallback: bool,
    pub(crate) significant: bool,
    /// Whether the child signals that it is ready, instead of being active as soon as it is spawned.
    pub(crate) signals: bool,
    /// Whether only the child's own signal counts, and not the return of its `activate`.
    pub(crate) signals_itself: bool,
    /// Whether being unhealthy is a failure.
    pub(crate) fails_unhealthy: bool,
    /// Whether the child is started by its first message, instead of with its supervisor.
    pub(crate) on_message: bool,
    /// Whether the backoff delays messages instead of the restart.
    pub(crate) delays_delivery: bool,
    /// For supervisors: how long aborting everything below may take.
    pub(crate) supervisor: Option<Duration>,
    /// Children with a lower number stop first.
    pub(crate) stop_order: i8,
    /// Whether the tree is ready only if the child is. `None`: if its supervisor isn't dynamic.
    pub(crate) essential: Option<bool>,
    /// For children that need a lease: how long it lasts after the child is cancelled because it couldn't be
    /// renewed.
    pub(crate) lease_grace: Option<Duration>,
    /// How long the child runs until it fails, as far as that is known: a supervisor that gives up, or a
    /// child that its health check restarts.
    pub(crate) fails_after: Option<FailsAfter>,
    /// Whether the child has one incarnation.
    pub(crate) once: bool,
    /// What the status shows as the version of the child's code.
    pub(crate) version: Option<Arc<str>>,
    /// Whether the child is started only once it has a configuration of its own.
    pub(crate) awaits_config: bool,
    /// Why no call and no event starts the child.
    pub(crate) withheld: Option<Withheld>,
    /// The options of the code, if a layer replaces some of them.
    pub(crate) layers: Option<Arc<Layers>>,
}

/// Why a child isn't started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Withheld {
    /// Its configuration takes it out.
    Disabled,
    /// It has no configuration yet.
    Unconfigured,
    /// It is stopped for a new configuration, and is started again with that.
    Reconfigured,
    /// A caller holds it.
    Held,
    /// Its lease isn't granted.
    Standby,
}

impl Withheld {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Unconfigured => "waits for its configuration",
            Self::Reconfigured => "gets a new configuration",
            Self::Held => "held",
            Self::Standby => "standby",
        }
    }
}

/// The options of a child, from the last that counts to the first.
#[derive(Clone, Debug)]
pub(crate) struct Layers {
    pub(crate) code: Arc<ChildOptions>,
    pub(crate) file: Option<Arc<ChildLayer>>,
    pub(crate) call: Option<Arc<ChildLayer>>,
}

impl ChildOptions {
    /// Returns the options with the values of a file, and of a call above those.
    ///
    /// `withheld`: why the child isn't started, if its layers enable it.
    pub(crate) fn layered(
        code: &Arc<Self>,
        file: Option<Arc<ChildLayer>>,
        call: Option<Arc<ChildLayer>>,
        withheld: Option<Withheld>,
    ) -> Arc<Self> {
        let code = code.code();
        if file.is_none() && call.is_none() && withheld.is_none() {
            return Arc::clone(code);
        }
        let mut options = Self::clone(code);
        let mut enabled = true;
        for layer in file.iter().chain(&call) {
            options.apply(layer);
            enabled = layer.enabled.unwrap_or(enabled);
        }
        options.withheld = if enabled { withheld } else { Some(Withheld::Disabled) };
        options.layers = Some(Arc::new(Layers { code: Arc::clone(code), file, call }));
        Arc::new(options)
    }

    fn apply(&mut self, layer: &ChildLayer) {
        // A limit of the layer replaces the same limit beneath.
        self.limits.layer();
        self.merge(layer.policy.clone());
        self.activation_timeout = layer.activation_timeout.or(self.activation_timeout);
        self.on_leak = layer.on_leak.or(self.on_leak);
        let is_worker = self.supervisor.is_none();
        let (shutdown, watchdog, run_time_limit) = layer.for_workers;
        self.shutdown = layer.shutdown.filter(|_| is_worker || !shutdown).or(self.shutdown);
        self.watchdog = layer.watchdog.filter(|_| is_worker || !watchdog).or(self.watchdog);
        let limit = layer.run_time_limit.filter(|_| is_worker || !run_time_limit);
        self.run_time_limit = limit.or(self.run_time_limit);
    }

    /// Returns where the values that replace those of the code come from, by name: a place such as
    /// `feed.toml:12`, or `call`.
    pub(crate) fn places(&self) -> Places {
        let Some(layers) = &self.layers else { return Places::new() };
        let mut places = layers.file.as_ref().map(|file| file.places.clone()).unwrap_or_default();
        if let Some(call) = &layers.call {
            let call_place: Arc<str> = "call".into();
            places.extend(call.policy.names().map(|name| (name, Arc::clone(&call_place))));
        }
        places
    }

    /// Whether these are the same options with the same layers.
    pub(crate) fn has_layers_of(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        fn is_same(a: &Option<Arc<ChildLayer>>, b: &Option<Arc<ChildLayer>>) -> bool {
            a.as_ref().map(Arc::as_ptr) == b.as_ref().map(Arc::as_ptr)
        }

        self.withheld == other.withheld
            && match (&self.layers, &other.layers) {
                (Some(a), Some(b)) => {
                    Arc::ptr_eq(&a.code, &b.code)
                        && is_same(&a.file, &b.file)
                        && is_same(&a.call, &b.call)
                }
                (None, None) => Arc::ptr_eq(self, other),
                _ => false,
            }
    }

    /// Returns the options of the code.
    pub(crate) fn code(self: &Arc<Self>) -> &Arc<Self> {
        self.layers.as_ref().map_or(self, |layers| &layers.code)
    }
}

/// The rules of one supervisor, with a value for each field.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) strategy: Strategy,
    pub(crate) auto_shutdown: AutoShutdown,
    pub(crate) start: Start,
    pub(crate) first_start: FirstStart,
    pub(crate) on_exhausted: OnExhausted,
    pub(crate) on_exhausted_from: PolicySource,
    /// `None`: unlimited.
    pub(crate) intensity: Option<Intensity>,
    /// The intensity of each child if nothing else sets one. Dynamic supervisors only.
    pub(crate) of_each: Option<Intensity>,
    /// Whether failures before `Active` are charged even if they are delayed.
    pub(crate) charge_everything: bool,
    /// Whether giving up is a clean exit, as in OTP.
    pub(crate) gives_up_cleanly: bool,
    /// Whether a temporary child that has ended is removed even if a message could start it again, as in
    /// OTP.
    pub(crate) forgets_temporary: bool,
    /// Whether a callback decides on failures. Set when the supervisor starts.
    pub(crate) has_failure_callback: bool,
    pub(crate) leak_timeout: Duration,
    /// How long `stop` may take as a whole; `None`: the sum of the children's graces.
    pub(crate) stop_deadline: Option<Duration>,
    /// Dynamic supervisors only.
    pub(crate) max_children: Option<usize>,
    /// The defaults for children.
    pub(crate) defaults: ChildOptions,
    /// The options of the preset, below `defaults`.
    pub(crate) preset: ChildOptions,
    /// The backoff if nothing else sets one.
    pub(crate) backoff: Backoff,
    /// The factory of random sources; `None`: a seeded one.
    pub(crate) random: Option<RandomFactory>,
    /// The rules of the code, and the layer that replaces some of them.
    pub(crate) layers: Option<(Arc<Rules>, Arc<SupervisorLayer>)>,
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
            intensity: Some(Intensity::DEFAULT),
            of_each: None,
            charge_everything: false,
            gives_up_cleanly: false,
            forgets_temporary: false,
            has_failure_callback: false,
            leak_timeout: Duration::from_secs(1),
            stop_deadline: None,
            max_children: None,
            defaults: ChildOptions::default(),
            preset: ChildOptions::default(),
            backoff: Backoff::default(),
            random: None,
            layers: None,
        }
    }
}

impl Rules {
    /// Returns the rules with the values of a file.
    pub(crate) fn layered(code: &Arc<Self>, file: Option<Arc<SupervisorLayer>>) -> Arc<Self> {
        let code = code.code();
        let Some(layer) = file else { return Arc::clone(code) };
        let mut rules = Self::clone(code);
        rules.strategy = layer.strategy.unwrap_or(rules.strategy);
        rules.auto_shutdown = layer.auto_shutdown.unwrap_or(rules.auto_shutdown);
        rules.start = layer.start.unwrap_or(rules.start);
        if let Some(intensity) = layer.intensity {
            // As with the call of the builder, it replaces the default for each child.
            (rules.intensity, rules.of_each) = (intensity, None);
        }
        if let Some(on_exhausted) = layer.on_exhausted {
            rules.on_exhausted = on_exhausted;
            rules.on_exhausted_from = PolicySource::File;
        }
        rules.leak_timeout = layer.leak_timeout.unwrap_or(rules.leak_timeout);
        rules.stop_deadline = layer.stop_deadline.or(rules.stop_deadline);
        rules.max_children = layer.max_children.or(rules.max_children);
        rules.layers = Some((Arc::clone(code), layer));
        Arc::new(rules)
    }

    /// Returns where the values that replace those of the code were written, by name.
    pub(crate) fn places(&self) -> Places {
        self.layers.as_ref().map(|(_, layer)| layer.places.clone()).unwrap_or_default()
    }

    /// Returns the rules of the code.
    pub(crate) fn code(self: &Arc<Self>) -> &Arc<Self> {
        self.layers.as_ref().map_or(self, |(code, _)| code)
    }

    pub(crate) fn restart(&self, child: &ChildOptions) -> RestartType {
        self.base(child).map(Trigger::restart_type).unwrap_or_default()
    }

    /// Returns what follows an exit of the child; `active`: whether it was active before.
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

    /// Whether an exit of the child may have a consequence that its restart type doesn't tell.
    pub(crate) fn has_exceptions(&self, child: &ChildOptions) -> bool {
        child.exceptions != Exceptions::default()
            || self.base(child).is_some_and(Trigger::has_exceptions)
            || self.restart(child) == RestartType::OnStop
    }

    /// Returns the child's trigger with all exceptions.
    pub(crate) fn trigger(&self, child: &ChildOptions) -> Trigger {
        self.base(child).cloned().unwrap_or_default().with(&child.exceptions)
    }

    /// Returns the trigger without the child's own exceptions.
    fn base<'a>(&'a self, child: &'a ChildOptions) -> Option<&'a Trigger> {
        let beneath = self.defaults.restart.as_ref().or(self.preset.restart.as_ref());
        child.restart.as_ref().or(beneath)
    }

    /// Returns the child's grace. A supervisor needs time for everything below it, so the defaults
    /// don't apply to it.
    pub(crate) fn shutdown(&self, child: &ChildOptions) -> Shutdown {
        let shutdown = match (child.shutdown, child.supervisor) {
            (Some(own), _) => own,
            (None, Some(_)) => Shutdown::Infinity,
            (None, None) => self.defaults.shutdown.unwrap_or(Shutdown::DEFAULT),
        };
        match self.longest_grace(child) {
            Some(longest) => shutdown.at_most(longest),
            None => shutdown,
        }
    }

    /// Returns the longest grace with which the child is down before its lease expires, if it needs one.
    pub(crate) fn longest_grace(&self, child: &ChildOptions) -> Option<Duration> {
        Some(child.lease_grace?.saturating_sub(self.leak_timeout(child)))
    }

    pub(crate) fn backoff<'a>(&'a self, child: &'a ChildOptions) -> &'a Backoff {
        let beneath = self.defaults.backoff.as_ref().or(self.preset.backoff.as_ref());
        child.backoff.as_ref().or(beneath).unwrap_or(&self.backoff)
    }

    /// Returns the delay that the error of this exit requests.
    pub(crate) fn retry_after(
        &self,
        child: &ChildOptions,
        reason: &ExitReason,
    ) -> Option<Duration> {
        child.retry_after.delay(reason).or_else(|| self.defaults.retry_after.delay(reason))
    }

    pub(crate) fn activation_timeout(&self, child: &ChildOptions) -> Option<Duration> {
        child.activation_timeout.or(self.defaults.activation_timeout)
    }

    /// Returns the longest time between two heartbeats of the child. A supervisor sends none, so the
    /// defaults don't apply to it.
    pub(crate) fn watchdog(&self, child: &ChildOptions) -> Option<Duration> {
        child.watchdog.or(self.defaults.watchdog.filter(|_| child.supervisor.is_none()))
    }

    /// Returns how long an incarnation may be active. The children of a supervisor are limited one by one, so the
    /// defaults don't apply to it.
    pub(crate) fn run_time_limit(&self, child: &ChildOptions) -> Option<Duration> {
        let default = self.defaults.run_time_limit.filter(|_| child.supervisor.is_none());
        child.run_time_limit.or(default)
    }

    pub(crate) fn on_leak(&self, child: &ChildOptions) -> OnLeak {
        child.on_leak.or(self.defaults.on_leak).unwrap_or_default()
    }

    pub(crate) fn failure_log(&self, child: &ChildOptions) -> FailureLog {
        child.failure_log.or(self.defaults.failure_log).unwrap_or_default()
    }

    /// Returns the child's own limits, or `None` if it has none.
    pub(crate) fn limits(&self, child: &ChildOptions) -> Option<Limits> {
        if self.of_each.is_none() && !self.has_limits(child) {
            return None;
        }
        let layers = [&child.limits, &self.defaults.limits, &self.preset.limits];
        let written = layers.into_iter().filter(|limits| !limits.is_none());
        let written = written.map(WrittenLimits::get);
        let default = self.of_each.map(|intensity| Limits {
            intensity: Some(self.default_above(intensity, child)),
            is_default: true,
            ..Limits::default()
        });
        written.chain(default).reduce(Limits::or)
    }

    /// Whether limits were set for this child, for all children, or by the preset.
    fn has_limits(&self, child: &ChildOptions) -> bool {
        let layers = [&child.limits, &self.defaults.limits, &self.preset.limits];
        layers.into_iter().any(|limits| !limits.is_none())
    }

    /// Whether the child has the backoff that is used if nothing sets one.
    pub(crate) fn has_default_backoff(&self, child: &ChildOptions) -> bool {
        std::ptr::eq(self.backoff(child), &raw const self.backoff)
    }

    /// Returns the default limit with a period that this child can exceed it in.
    fn default_above(&self, default: Intensity, child: &ChildOptions) -> Intensity {
        default_above(default, self.slowest(child).into_iter())
    }

    /// Returns the child's backoff, and the longest time until it fails and has stopped, if that is known
    /// and the child is restarted then.
    pub(crate) fn slowest<'a>(
        &'a self,
        child: &'a ChildOptions,
    ) -> Option<(&'a Backoff, Duration)> {
        let FailsAfter { latest, .. } = child.fails_after?;
        if self.restart(child) == RestartType::Temporary {
            return None;
        }
        let stops = match self.shutdown(child) {
            Shutdown::Timeout(grace) if child.supervisor.is_none() => grace,
            _ => Duration::ZERO,
        };
        Some((self.backoff(child), latest.saturating_add(stops)))
    }

    pub(crate) fn on_exhausted(&self, child: &ChildOptions) -> OnExhausted {
        child.on_exhausted.or(self.defaults.on_exhausted).unwrap_or(self.on_exhausted)
    }

    /// Returns how long an aborted child may keep running before it counts as leaked.
    pub(crate) fn leak_timeout(&self, child: &ChildOptions) -> Duration {
        self.leak_timeout.saturating_add(child.supervisor.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_come_from_the_child_the_defaults_or_the_preset() {
        for layers in [[true, false, false], [false, true, false], [false, false, true]] {
            let [child, defaults, preset] = layers.map(|limited| {
                let mut options = ChildOptions::default();
                if limited {
                    options.limits.consecutive(3);
                }
                options
            });
            let rules = Rules { defaults, preset, ..Rules::default() };
            assert!(rules.limits(&child).is_some(), "{layers:?}");
        }
        assert_eq!(Rules::default().limits(&ChildOptions::default()), None);
    }
}
