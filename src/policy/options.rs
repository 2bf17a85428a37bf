//! The options of children and the rules of supervisors, as plain values.
//!
//! A [`ChildOptions`] holds the options of one spec. For an option that isn't set, the [`Rules`] of the
//! supervisor have a value. Many children share one `ChildOptions`, and all children one `Rules`.
//!
//! Nothing here is checked. The values of a built tree have passed `spec::check`.

use std::sync::Arc;
use std::time::Duration;

#[cfg(test)]
use super::OnExit;
use super::default_limit::KeptLimit;
use super::{
    AutoShutdown, Backoff, ChildLayer, DefaultLimit, Exceptions, FailsAfter, FailureLog,
    FirstStart, Intensity, Limits, OnExhausted, OnLeak, Places, PolicySource, RandomFactory,
    RestartPolicy, RestartType, RetryAfter, Shutdown, Start, Strategy, SupervisorLayer, Trigger,
    WrittenLimits,
};
#[cfg(test)]
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

    /// Whether the child sets nothing that the built-in limit depends on, so that all such children of a supervisor
    /// have the same.
    pub(crate) fn is_plain(&self) -> bool {
        self.backoff.is_none()
            && self.shutdown.is_none()
            && self.activation_timeout.is_none()
            && self.watchdog.is_none()
            && self.supervisor.is_none()
            && self.lease_grace.is_none()
            && self.fails_after.is_none()
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
    /// The limit of all children together, if one is written.
    pub(crate) intensity: Option<Intensity>,
    pub(crate) intensity_from: PolicySource,
    /// The limit of each child for which no limit is written. `None`: there is none.
    pub(crate) of_each: Option<DefaultLimit>,
    /// How long a restart of all children may take, without the parts that have no bound.
    pub(crate) group_restart: Duration,
    /// Whether failures before `Active` are charged even if they are delayed.
    pub(crate) count_failed_starts: bool,
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
    pub(crate) kept_limit: KeptLimit,
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
            intensity: None,
            intensity_from: PolicySource::Default,
            of_each: Some(DefaultLimit::BUILT_IN),
            group_restart: Duration::ZERO,
            count_failed_starts: false,
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
            kept_limit: KeptLimit::default(),
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
            // As with the call of the builder, it replaces the built-in limit of each child.
            (rules.intensity, rules.of_each) = (intensity, None);
            rules.intensity_from = PolicySource::File;
        }
        rules.count_failed_starts = layer.count_failed_starts.unwrap_or(rules.count_failed_starts);
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

    /// Returns the child's trigger, and the exceptions that apply with it.
    pub(crate) fn trigger_of<'a>(
        &'a self,
        child: &'a ChildOptions,
    ) -> (&'a Trigger, [&'a Exceptions; 2]) {
        let trigger = self.base(child).unwrap_or(Trigger::DEFAULT);
        (trigger, trigger.with_exceptions(&child.exceptions))
    }

    /// Calls the predicates, and returns what follows an exit of the child; `active`: whether it was active before.
    #[cfg(test)]
    pub(crate) fn on_exit(
        &self,
        child: &ChildOptions,
        reason: &ExitReason,
        active: bool,
    ) -> OnExit {
        self.trigger_of(child).0.after_exit(&child.exceptions, reason, active)
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
    #[cfg(test)]
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

    /// Returns the child's own limits, or `None` if it has none. `own`: the policy that its current incarnation has
    /// set for itself.
    ///
    /// A limit replaces the one of its kind that is written at a lower precedence. The built-in limit applies only
    /// where none is written at all, so that it never stands beside a written one. The end of a backoff is written, too.
    pub(crate) fn limits(
        &self,
        child: &ChildOptions,
        own: Option<&RestartPolicy>,
    ) -> Option<Limits> {
        let layers = [&child.limits, &self.defaults.limits, &self.preset.limits];
        let layers = own.map(|own| &own.limits).into_iter().chain(layers);
        let written = layers.filter(|limits| !limits.is_none()).map(WrittenLimits::get);
        match written.reduce(Limits::or) {
            Some(written) => Some(written).filter(|limits| limits.is_limited()),
            None => {
                let intensity = Some(self.default_limit(child)?);
                Some(Limits { intensity, is_default: true, ..Limits::default() })
            }
        }
    }

    /// Returns the built-in limit of this child, if it has one.
    fn default_limit(&self, child: &ChildOptions) -> Option<Intensity> {
        let of_each = self.of_each.filter(|_| !self.backoff(child).may_end())?;
        let limit = || {
            let is_supervisor = child.supervisor.is_some();
            of_each.of(is_supervisor, self.backoff(child), self.cycle(child))
        };
        Some(if child.is_plain() { self.kept_limit.get(limit) } else { limit() })
    }

    /// Returns the longest time from a start of the child to the next without the delay, as far as it has a bound:
    /// until it has failed, and until the children that restart with it are down and active again.
    pub(crate) fn cycle(&self, child: &ChildOptions) -> Duration {
        let group = match self.strategy {
            Strategy::OneForOne => Duration::ZERO,
            Strategy::OneForAll | Strategy::RestForOne => self.group_restart,
        };
        let fails = child.fails_after.map(|it| it.latest).max(self.watchdog(child));
        self.down_after(child, fails.unwrap_or_default()).saturating_add(group)
    }

    /// Returns the longest time from a start of the child until it is down, as far as it has a bound, if it fails
    /// after being active for `life`. A child that fails in its own code is down immediately.
    pub(crate) fn down_after(&self, child: &ChildOptions, life: Duration) -> Duration {
        let may_fail_running = child.fails_after.is_some() || self.watchdog(child).is_some();
        let is_stopped = may_fail_running && child.supervisor.is_none();
        let stops = if is_stopped { self.stop_time(child) } else { Duration::ZERO };
        self.start_time(child).saturating_add(life).saturating_add(stops)
    }

    /// Returns how long a restart of the child waits at least for the others that restart with it, if they take as long
    /// as they may.
    pub(crate) fn waits_for_group(&self, child: &ChildOptions) -> Duration {
        match self.strategy {
            Strategy::OneForAll => self.group_restart.saturating_sub(self.restart_time(child)),
            // The last child waits for nobody.
            Strategy::OneForOne | Strategy::RestForOne => Duration::ZERO,
        }
    }

    /// Returns how long the child may take to stop and to become active again, as far as that has a bound.
    pub(crate) fn restart_time(&self, child: &ChildOptions) -> Duration {
        self.stop_time(child).saturating_add(self.start_time(child))
    }

    fn stop_time(&self, child: &ChildOptions) -> Duration {
        let grace = match self.shutdown(child) {
            Shutdown::Timeout(grace) => grace,
            Shutdown::BrutalKill | Shutdown::Infinity => Duration::ZERO,
        };
        grace.saturating_add(self.leak_timeout(child))
    }

    fn start_time(&self, child: &ChildOptions) -> Duration {
        self.activation_timeout(child).unwrap_or_default()
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

    fn consecutive(max: u32) -> ChildOptions {
        let mut options = ChildOptions::default();
        options.limits.consecutive(max);
        options
    }

    fn limits(rules: &Rules, child: &ChildOptions) -> Option<Limits> {
        rules.limits(child, None)
    }

    #[test]
    fn a_limit_that_is_written_anywhere_replaces_the_built_in_one() {
        let none = ChildOptions::default;
        let (written, expected) =
            (|| consecutive(3), Some(Limits { consecutive: Some(3), ..Limits::default() }));
        for [child, defaults, preset] in
            [[written(), none(), none()], [none(), written(), none()], [none(), none(), written()]]
        {
            let rules = Rules { defaults, preset, ..Rules::default() };
            assert_eq!(limits(&rules, &child), expected);
        }
        let own = RestartPolicy::new().consecutive_restarts(3);
        assert_eq!(Rules::default().limits(&none(), Some(&own)), expected);
    }

    #[test]
    fn a_child_without_a_limit_has_twelve_restarts_in_five_minutes() {
        let intensity = Some(Intensity::sliding(12, Duration::from_secs(300)));
        let expected = Limits { intensity, is_default: true, ..Limits::default() };
        assert_eq!(limits(&Rules::default(), &ChildOptions::default()), Some(expected));
        let rules = Rules { of_each: None, ..Rules::default() };
        assert_eq!(limits(&rules, &ChildOptions::default()), None);
    }

    #[test]
    fn a_backoff_that_may_end_replaces_the_built_in_limit() {
        let backoff = Backoff::iter(|| std::iter::repeat_n(Duration::from_secs(1), 20));
        let backoff = backoff.cap(Duration::from_secs(9));
        let child = ChildOptions { backoff: Some(backoff), ..ChildOptions::default() };
        assert_eq!(limits(&Rules::default(), &child), None);
    }

    #[test]
    fn a_higher_layer_replaces_a_limit_of_its_kind_and_leaves_the_others() {
        let window = |max| Intensity::sliding(max, Duration::from_secs(60));
        let mut defaults = consecutive(3);
        defaults.limits.intensity(window(5));
        let rules = Rules { defaults, ..Rules::default() };
        let mut child = ChildOptions::default();
        child.limits.intensity(window(9));
        let (intensity, consecutive) = (Some(window(9)), Some(3));
        let expected = Limits { intensity, consecutive, ..Limits::default() };
        assert_eq!(limits(&rules, &child), Some(expected));
    }

    #[test]
    fn unlimited_restarts_at_a_layer_void_all_limits_below_it() {
        let rules = Rules { defaults: consecutive(3), ..Rules::default() };
        let mut child = ChildOptions::default();
        child.limits.unlimited();
        assert_eq!(limits(&rules, &child), None);
        let own = RestartPolicy::new().consecutive_restarts(7);
        let expected = Limits { consecutive: Some(7), unlimited: true, ..Limits::default() };
        assert_eq!(rules.limits(&child, Some(&own)), Some(expected), "a limit above it applies");
    }

    #[test]
    fn the_period_of_the_built_in_limit_contains_graces_and_timeouts() {
        let secs = Duration::from_secs;
        let period = |rules: &Rules, child: &ChildOptions| {
            limits(rules, child).and_then(|limits| limits.intensity).expect("it has one").period()
        };
        let slow = ChildOptions { shutdown: Some(secs(20).into()), ..ChildOptions::default() };
        assert_eq!(period(&Rules::default(), &slow), secs(5 * 60), "it isn't stopped");
        let slow = ChildOptions { activation_timeout: Some(secs(20)), ..slow };
        // 12 * 20 s and 205.2 s of delays.
        assert_eq!(period(&Rules::default(), &slow), secs(8 * 60));
        let hangs = ChildOptions { watchdog: Some(secs(30)), ..ChildOptions::default() };
        // 12 * (30 + 5 + 1) s and the delays.
        assert_eq!(period(&Rules::default(), &hangs), secs(11 * 60));
        let infinite =
            ChildOptions { shutdown: Some(Shutdown::Infinity), ..ChildOptions::default() };
        assert_eq!(period(&Rules::default(), &infinite), secs(5 * 60));

        let group = Rules { group_restart: secs(60), ..Rules::default() };
        assert_eq!(period(&group, &ChildOptions::default()), secs(5 * 60), "it restarts alone");
        let group = Rules { strategy: Strategy::OneForAll, ..group.clone() };
        // 12 * 60 s and the delays.
        assert_eq!(period(&group, &ChildOptions::default()), secs(16 * 60));
    }
}
