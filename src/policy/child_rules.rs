//! The rules of one child: its options, resolved to plain values.
//!
//! A spec, the defaults of its supervisor, a preset, a file and a call each set some options. They are resolved when
//! the spec enters the tree, and again when a layer changes. Nothing looks through the layers afterwards: a rule of
//! the core reads a field.
//!
//! | file | what |
//! | --- | --- |
//! | here | the values, and how they are resolved |
//! | `layers` | the values of a file or of a call |
//! | `options` | the values of the code, and the rules of a supervisor |
//!
//! # Invariants
//!
//! 1. A value comes from the highest layer that sets it: call, file, spec, defaults, preset. Without one, it is the
//!    supervisor's or the built-in value.
//! 2. The same layers give the same rules. Children of one spec share theirs.
//! 3. A fallback has the values of its code: no layer is written for it.

use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::{
    Backoff, ChildLayer, ChildOptions, DefaultLimit, Exceptions, FailureLog, ForWorkers, Intensity,
    Limits, OnExhausted, OnLeak, Places, PolicySource, PolicySources, RestartPolicy, RestartType,
    RetryAfter, Rules, Shutdown, Strategy, Trigger, Withheld,
};

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct ChildRules {
    /// The options of the code. Rules read its facts.
    pub(crate) spec: Arc<ChildOptions>,
    /// The rules of the supervisor that the values were resolved with.
    pub(crate) supervisor: Arc<Rules>,
    pub(crate) layers: Layers,
    /// The rules of the fallback, which replaces the child when it exceeds a limit.
    pub(crate) fallback: Option<Arc<ChildRules>>,

    /// With the exceptions of the spec before its own.
    pub(crate) trigger: Trigger,
    pub(crate) backoff: Backoff,
    /// The functions of the spec, then the functions of the defaults.
    pub(crate) retry_after: RetryAfter,
    /// `None`: none is written.
    pub(crate) written_limits: Option<Limits>,
    /// The built-in limit, since the first failure: it depends on every delay, and most children never fail.
    built_in: OnceLock<Intensity>,
    pub(crate) on_exhausted: OnExhausted,
    pub(crate) failure_log: FailureLog,
    /// The grace. It ends before the lease of the child does.
    pub(crate) shutdown: Shutdown,
    /// The grace that is written for the child: not by the defaults.
    pub(crate) written_shutdown: Option<Shutdown>,
    pub(crate) activation_timeout: Option<Duration>,
    /// The longest time between two heartbeats.
    pub(crate) watchdog: Option<Duration>,
    /// How long an incarnation may be active.
    pub(crate) run_time_limit: Option<Duration>,
    pub(crate) on_leak: OnLeak,
    /// The capacity of its mailbox that a file sets.
    pub(crate) mailbox_capacity: Option<NonZeroUsize>,
    /// How long an aborted child may keep running before it counts as leaked.
    pub(crate) leak_timeout: Duration,
    pub(crate) sources: PolicySources,
}

/// What is written over the code for one child.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layers {
    pub(crate) file: Option<Arc<ChildLayer>>,
    pub(crate) call: Option<Arc<ChildLayer>>,
    /// Why the child isn't started, although its layers may enable it.
    pub(crate) withheld: Option<Withheld>,
}

impl Layers {
    /// Why no call and no event starts the child.
    fn withheld(&self) -> Option<Withheld> {
        let layers = self.call.iter().chain(&self.file);
        match layers.filter_map(|layer| layer.enabled).next() {
            Some(false) => Some(Withheld::Disabled),
            Some(true) | None => self.withheld,
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        fn at(layer: &Option<Arc<ChildLayer>>) -> Option<*const ChildLayer> {
            layer.as_ref().map(Arc::as_ptr)
        }

        at(&self.file) == at(&other.file)
            && at(&self.call) == at(&other.call)
            && self.withheld == other.withheld
    }
}

/// The values that are written in one place.
#[derive(Clone, Copy)]
struct Written<'a> {
    source: PolicySource,
    values: &'a ChildLayer,
    /// The values that aren't the child's, because it is a supervisor.
    skips: ForWorkers,
}

impl<'a> Written<'a> {
    fn new(source: PolicySource, values: &'a ChildLayer, skips: ForWorkers) -> Self {
        Self { source, values, skips }
    }

    fn policy(&self) -> &'a RestartPolicy {
        &self.values.policy
    }

    fn limits(&self) -> Limits {
        self.policy().limits.get()
    }

    fn shutdown(&self) -> Option<Shutdown> {
        self.values.shutdown.filter(|_| !self.skips.shutdown)
    }

    fn watchdog(&self) -> Option<Duration> {
        self.values.watchdog.filter(|_| !self.skips.watchdog)
    }

    fn run_time_limit(&self) -> Option<Duration> {
        self.values.run_time_limit.filter(|_| !self.skips.run_time_limit)
    }
}

impl ChildRules {
    /// Resolves the options of a spec with the rules of its supervisor and with what is written over the code.
    pub(crate) fn resolve(
        spec: &Arc<ChildOptions>,
        supervisor: &Arc<Rules>,
        layers: Layers,
    ) -> Arc<Self> {
        let is_supervisor = spec.facts.kind.is_supervisor();
        let nothing = ForWorkers::default();
        let of_workers = |skips| if is_supervisor { skips } else { nothing };
        let call = layers.call.iter().map(|it| Written::new(PolicySource::Call, it, nothing));
        let file = layers.file.iter().map(|it| {
            let skips = of_workers(it.for_workers);
            Written::new(PolicySource::File, it, skips)
        });
        let defaults = &supervisor.defaults.values;
        let all: Vec<_> = call
            .chain(file)
            .filter(|_| !spec.facts.is_fallback)
            .chain([
                Written::new(PolicySource::Spec, &spec.values, nothing),
                Written::new(PolicySource::Defaults, defaults, of_workers(ForWorkers::ALL)),
                Written::new(PolicySource::Preset, &supervisor.preset, nothing),
            ])
            .collect();
        let all = HighestFirst(&all);

        let leak_timeout = supervisor.leak_timeout.saturating_add(spec.facts.kind.abort_bound());
        let (restart, mut restart_from) = match all.find(|it| it.policy().restart.as_ref()) {
            Some((restart, source)) => (restart.clone(), source),
            None => (Trigger::default(), PolicySource::Default),
        };
        if spec.exceptions != *Exceptions::EMPTY {
            restart_from = restart_from.max(PolicySource::Spec);
        }
        let (backoff, backoff_from) = match all.find(|it| it.policy().backoff.as_ref()) {
            Some((backoff, source)) => (backoff.clone(), source),
            None => (supervisor.backoff.clone(), PolicySource::Default),
        };
        let (on_exhausted, on_exhausted_from) = all
            .find(|it| it.policy().on_exhausted)
            .unwrap_or((supervisor.on_exhausted, supervisor.on_exhausted_from));
        let (failure_log, failure_log_from) = all.or_default(|it| it.policy().failure_log);
        let written_shutdown =
            all.find(|it| it.shutdown().filter(|_| it.source >= PolicySource::Spec));
        let written_shutdown = written_shutdown.map(|(shutdown, _)| shutdown);
        let shutdown = match all.find(Written::shutdown) {
            Some((shutdown, _)) => shutdown,
            None if is_supervisor => Shutdown::Infinity,
            None => Shutdown::DEFAULT,
        };

        let sources = PolicySources {
            restart: restart_from,
            backoff: backoff_from,
            intensity: all.source(|it| it.limits().intensity),
            consecutive_restarts: all.source(|it| it.limits().consecutive),
            failing_for: all.source(|it| it.limits().failing_for),
            on_exhausted: on_exhausted_from,
            failure_log: failure_log_from,
        };
        let mut rules = Self {
            fallback: spec.fallback.as_ref().map(|spec| {
                let Layers { withheld, .. } = layers;
                Self::resolve(spec, supervisor, Layers { withheld, ..Layers::default() })
            }),
            trigger: restart.with(&spec.exceptions),
            backoff,
            retry_after: spec.retry_after.clone().and(&supervisor.defaults.retry_after),
            written_limits: all.limits(),
            built_in: OnceLock::new(),
            on_exhausted,
            failure_log,
            shutdown,
            written_shutdown,
            activation_timeout: all.value(|it| it.values.activation_timeout),
            watchdog: all.value(Written::watchdog),
            run_time_limit: all.value(Written::run_time_limit),
            on_leak: all.value(|it| it.values.on_leak).unwrap_or_default(),
            mailbox_capacity: all.value(|it| it.values.mailbox_capacity),
            leak_timeout,
            sources,
            spec: Arc::clone(spec),
            supervisor: Arc::clone(supervisor),
            layers,
        };
        if let Some(longest) = rules.longest_grace() {
            rules.shutdown = rules.shutdown.at_most(longest);
        }
        Arc::new(rules)
    }

    /// Returns the options of a spec, resolved without layers.
    pub(crate) fn of(spec: &Arc<ChildOptions>, supervisor: &Arc<Rules>) -> Arc<Self> {
        Self::resolve(spec, supervisor, Layers::default())
    }

    /// Whether these are the rules of the same spec, supervisor and layers.
    pub(crate) fn is_of(
        &self,
        spec: &Arc<ChildOptions>,
        supervisor: &Arc<Rules>,
        layers: &Layers,
    ) -> bool {
        Arc::ptr_eq(&self.spec, spec)
            && Arc::ptr_eq(&self.supervisor, supervisor)
            && self.layers.is_same(layers)
    }

    /// Why no call and no event starts the child.
    pub(crate) fn withheld(&self) -> Option<Withheld> {
        self.layers.withheld()
    }

    /// Returns the rules of a child that is withheld for this reason, unless a layer disables it.
    pub(crate) fn withheld_as(&self, withheld: Option<Withheld>) -> Self {
        let layers = Layers { withheld, ..self.layers.clone() };
        Self { layers, ..self.clone() }
    }

    pub(crate) fn is_supervisor(&self) -> bool {
        self.spec.facts.kind.is_supervisor()
    }

    pub(crate) fn restart_type(&self) -> RestartType {
        self.trigger.restart_type()
    }

    /// Whether an exit of the child may have a consequence that its restart type doesn't tell.
    pub(crate) fn has_exceptions(&self) -> bool {
        self.trigger.has_exceptions() || self.restart_type() == RestartType::OnStop
    }

    /// Returns the longest grace with which the child is down before its lease expires, if it needs one.
    pub(crate) fn longest_grace(&self) -> Option<Duration> {
        Some(self.spec.lease_grace?.saturating_sub(self.leak_timeout))
    }

    /// Returns where the values that replace the code come from, by name: a place such as
    /// `feed.toml:12`, or `call`.
    pub(crate) fn places(&self) -> Places {
        let Layers { file, call, .. } = &self.layers;
        let mut places = file.as_ref().map(|file| file.places.0.clone()).unwrap_or_default();
        if let Some(call) = call {
            let call_place: Arc<str> = "call".into();
            places.extend(call.policy.names().map(|name| (name, Arc::clone(&call_place))));
        }
        places
    }

    /// Returns the limits that apply, or `None` if there is none. `own`: the policy that the current incarnation has
    /// set for itself.
    ///
    /// A limit replaces the one of its kind that is written at a lower precedence. The built-in limit applies only
    /// where none is written at all, so that it never stands beside a written one. The end of a backoff is written, too.
    pub(crate) fn limits(&self, own: Option<&RestartPolicy>) -> Option<Limits> {
        let own = own.map(|own| own.limits.get()).filter(|limits| !limits.is_unwritten());
        match own.into_iter().chain(self.written_limits).reduce(Limits::or) {
            Some(written) => Some(written).filter(Limits::is_limited),
            None => {
                let of_each = self.of_each()?;
                let intensity =
                    Some(*self.built_in.get_or_init(|| {
                        of_each.of(self.is_supervisor(), &self.backoff, self.cycle())
                    }));
                Some(Limits { intensity, is_default: true, ..Limits::default() })
            }
        }
    }

    /// Whether something bounds how long the child may take, or how long it may be wrong: a timeout, a watchdog, a
    /// health check that restarts it, or a lease.
    pub(crate) fn is_bounded(&self) -> bool {
        self.activation_timeout.is_some()
            || self.watchdog.is_some()
            || self.run_time_limit.is_some()
            || self.spec.fails_unhealthy
            || self.spec.lease_grace.is_some()
    }

    /// Whether a limit applies, written or built in.
    pub(crate) fn is_limited(&self) -> bool {
        self.written_limits.map_or(self.of_each().is_some(), |limits| limits.is_limited())
    }

    /// Returns the built-in limits, if they apply to a child for which none is written.
    fn of_each(&self) -> Option<DefaultLimit> {
        self.supervisor.of_each.filter(|_| !self.backoff.may_end())
    }

    /// Returns the longest time from a start of the child to the next without the delay, as far as it has a bound:
    /// until it has failed, and until the children that restart with it are down and active again.
    pub(crate) fn cycle(&self) -> Duration {
        let group = match self.supervisor.strategy {
            Strategy::OneForOne => Duration::ZERO,
            Strategy::OneForAll | Strategy::RestForOne => self.supervisor.group_restart,
        };
        let fails = self.spec.facts.fails_after.map(|it| it.latest).max(self.watchdog);
        self.down_after(fails.unwrap_or_default()).saturating_add(group)
    }

    /// Returns the longest time from a start of the child until it is down, as far as it has a bound, if it fails
    /// after being active for `life`. A child that fails in its own code is down immediately.
    pub(crate) fn down_after(&self, life: Duration) -> Duration {
        let may_fail_running = self.spec.facts.fails_after.is_some() || self.watchdog.is_some();
        let is_stopped = may_fail_running && !self.is_supervisor();
        let stops = if is_stopped { self.stop_time() } else { Duration::ZERO };
        self.start_time().saturating_add(life).saturating_add(stops)
    }

    /// Returns how long a restart of the child waits at least for the others that restart with it, if they take as long
    /// as they may.
    pub(crate) fn waits_for_group(&self) -> Duration {
        match self.supervisor.strategy {
            Strategy::OneForAll => {
                self.supervisor.group_restart.saturating_sub(self.restart_time())
            }
            // The last child waits for nobody.
            Strategy::OneForOne | Strategy::RestForOne => Duration::ZERO,
        }
    }

    /// Returns how long the child may take to stop and to become active again, as far as that has a bound.
    pub(crate) fn restart_time(&self) -> Duration {
        self.stop_time().saturating_add(self.start_time())
    }

    fn stop_time(&self) -> Duration {
        self.shutdown.grace().unwrap_or_default().saturating_add(self.leak_timeout)
    }

    fn start_time(&self) -> Duration {
        self.activation_timeout.unwrap_or_default()
    }

    /// Returns how long the child runs at least until it fails.
    pub(crate) fn shortest_life(&self) -> Duration {
        self.spec.facts.fails_after.map_or(Duration::ZERO, |it| it.soonest)
    }
}

/// What is written for a child, the place that takes precedence first.
struct HighestFirst<'a>(&'a [Written<'a>]);

impl<'a> HighestFirst<'a> {
    /// Returns the value of the first layer that has one, and its source.
    fn find<T>(&self, of: impl Fn(&Written<'a>) -> Option<T>) -> Option<(T, PolicySource)> {
        self.0.iter().find_map(|layer| Some((of(layer)?, layer.source)))
    }

    fn value<T>(&self, of: impl Fn(&Written<'a>) -> Option<T>) -> Option<T> {
        self.find(of).map(|(value, _)| value)
    }

    fn or_default<T: Default>(&self, of: impl Fn(&Written<'a>) -> Option<T>) -> (T, PolicySource) {
        self.find(of).unwrap_or((T::default(), PolicySource::Default))
    }

    fn source<T>(&self, of: impl Fn(&Written<'a>) -> Option<T>) -> PolicySource {
        self.find(of).map_or(PolicySource::Default, |(_, source)| source)
    }

    /// Returns all limits that are written, if any is.
    fn limits(&self) -> Option<Limits> {
        let layers = self.0.iter().map(Written::limits);
        layers.filter(|limits| !limits.is_unwritten()).reduce(Limits::or)
    }
}

/// The last rules that were resolved, which the next children of the same spec share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resolver(Option<Arc<ChildRules>>);

impl Resolver {
    /// Returns the rules of a child, those that were resolved last if they are the same.
    pub(crate) fn resolve(
        &mut self,
        spec: &Arc<ChildOptions>,
        supervisor: &Arc<Rules>,
        layers: Layers,
    ) -> Arc<ChildRules> {
        match &self.0 {
            Some(last) if last.is_of(spec, supervisor, &layers) => Arc::clone(last),
            _ => Arc::clone(self.0.insert(ChildRules::resolve(spec, supervisor, layers))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{SpecFacts, SpecKind};

    fn none() -> ChildLayer {
        ChildLayer::default()
    }

    fn of(values: ChildLayer) -> ChildOptions {
        ChildOptions { values, ..ChildOptions::default() }
    }

    fn consecutive(max: u32) -> ChildOptions {
        let mut options = ChildOptions::default();
        options.values.policy.limits.consecutive(max);
        options
    }

    fn resolved(rules: &Rules, child: &ChildOptions) -> Arc<ChildRules> {
        ChildRules::of(&Arc::new(child.clone()), &Arc::new(rules.clone()))
    }

    fn limits(rules: &Rules, child: &ChildOptions) -> Option<Limits> {
        resolved(rules, child).limits(None)
    }

    #[test]
    fn a_limit_that_is_written_anywhere_replaces_the_built_in_one() {
        let none = ChildOptions::default;
        let (written, expected) =
            (|| consecutive(3), Some(Limits { consecutive: Some(3), ..Limits::default() }));
        for [child, defaults, preset] in
            [[written(), none(), none()], [none(), written(), none()], [none(), none(), written()]]
        {
            let rules = Rules { defaults, preset: preset.values, ..Rules::default() };
            assert_eq!(limits(&rules, &child), expected);
        }
        let own = RestartPolicy::new().consecutive_restarts(3);
        assert_eq!(resolved(&Rules::default(), &none()).limits(Some(&own)), expected);
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
        let child = of(ChildLayer { policy: RestartPolicy::new().backoff(backoff), ..none() });
        assert_eq!(limits(&Rules::default(), &child), None);
    }

    #[test]
    fn a_higher_layer_replaces_a_limit_of_its_kind_and_leaves_the_others() {
        let window = |max| Intensity::sliding(max, Duration::from_secs(60));
        let mut defaults = consecutive(3);
        defaults.values.policy.limits.intensity(window(5));
        let rules = Rules { defaults, ..Rules::default() };
        let mut child = ChildOptions::default();
        child.values.policy.limits.intensity(window(9));
        let (intensity, consecutive) = (Some(window(9)), Some(3));
        let expected = Limits { intensity, consecutive, ..Limits::default() };
        assert_eq!(limits(&rules, &child), Some(expected));
    }

    #[test]
    fn unlimited_restarts_at_a_layer_void_all_limits_below_it() {
        let rules = Rules { defaults: consecutive(3), ..Rules::default() };
        let mut child = ChildOptions::default();
        child.values.policy.limits.unlimited();
        assert_eq!(limits(&rules, &child), None);
        let own = RestartPolicy::new().consecutive_restarts(7);
        let expected = Limits { consecutive: Some(7), unlimited: true, ..Limits::default() };
        assert_eq!(
            resolved(&rules, &child).limits(Some(&own)),
            Some(expected),
            "a limit above it applies"
        );
    }

    #[test]
    fn the_period_of_the_built_in_limit_contains_graces_and_timeouts() {
        let secs = Duration::from_secs;
        let period = |rules: &Rules, child: &ChildOptions| {
            limits(rules, child).and_then(|limits| limits.intensity).expect("it has one").period()
        };
        let slow = ChildLayer { shutdown: Some(secs(20).into()), ..none() };
        assert_eq!(period(&Rules::default(), &of(slow.clone())), secs(5 * 60), "it isn't stopped");
        let slow = of(ChildLayer { activation_timeout: Some(secs(20)), ..slow });
        // 12 * 20 s and 205.2 s of delays.
        assert_eq!(period(&Rules::default(), &slow), secs(8 * 60));
        let hangs = of(ChildLayer { watchdog: Some(secs(30)), ..none() });
        // 12 * (30 + 5 + 1) s and the delays.
        assert_eq!(period(&Rules::default(), &hangs), secs(11 * 60));
        let infinite = of(ChildLayer { shutdown: Some(Shutdown::Infinity), ..none() });
        assert_eq!(period(&Rules::default(), &infinite), secs(5 * 60));

        let group = Rules { group_restart: secs(60), ..Rules::default() };
        assert_eq!(period(&group, &ChildOptions::default()), secs(5 * 60), "it restarts alone");
        let group = Rules { strategy: Strategy::OneForAll, ..group.clone() };
        // 12 * 60 s and the delays.
        assert_eq!(period(&group, &ChildOptions::default()), secs(16 * 60));
    }

    #[test]
    fn children_of_one_spec_share_their_rules_while_nothing_changes() {
        let (spec, supervisor) = (Arc::<ChildOptions>::default(), Arc::<Rules>::default());
        let mut resolver = Resolver::default();
        let mut resolve = |spec, supervisor, layers| resolver.resolve(spec, supervisor, layers);
        let first = resolve(&spec, &supervisor, Layers::default());
        assert!(Arc::ptr_eq(&first, &resolve(&spec, &supervisor, Layers::default())));
        let held = Layers { withheld: Some(Withheld::Reconfigured), ..Layers::default() };
        assert!(!Arc::ptr_eq(&first, &resolve(&spec, &supervisor, held)));
        let others = (Arc::default(), Arc::default());
        assert!(!Arc::ptr_eq(&first, &resolve(&others.0, &supervisor, Layers::default())));
        assert!(!Arc::ptr_eq(&first, &resolve(&spec, &others.1, Layers::default())));
    }

    #[test]
    fn the_call_decides_before_the_file_whether_a_child_is_enabled() {
        let layer = |enabled| Some(Arc::new(ChildLayer { enabled, ..ChildLayer::default() }));
        let disabled = Some(Withheld::Disabled);
        for (file, call, expected) in [
            (None, None, None),
            (Some(false), None, disabled),
            (Some(false), Some(true), None),
            (Some(true), Some(false), disabled),
        ] {
            let layers = Layers { file: layer(file), call: layer(call), withheld: None };
            let rules = ChildRules::resolve(&Arc::default(), &Arc::default(), layers);
            assert_eq!(rules.withheld(), expected, "{file:?}, {call:?}");
        }
    }

    #[test]
    fn a_supervisor_takes_no_grace_watchdog_or_run_time_from_what_is_written_for_several() {
        let secs = Duration::from_secs;
        let values = ChildLayer {
            shutdown: Some(secs(7).into()),
            watchdog: Some(secs(8)),
            run_time_limit: Some(secs(9)),
            activation_timeout: Some(secs(10)),
            ..none()
        };
        let nested = || {
            let kind = SpecKind::Supervisor { abort_bound: secs(1) };
            SpecFacts { kind, ..SpecFacts::default() }
        };
        let supervisor = ChildOptions { facts: nested(), ..ChildOptions::default() };
        let shown = |rules: &ChildRules| {
            (rules.shutdown, rules.watchdog, rules.run_time_limit, rules.activation_timeout)
        };
        let rules = Rules { defaults: of(values.clone()), ..Rules::default() };
        let nothing = (Shutdown::Infinity, None, None, Some(secs(10)));
        assert_eq!(shown(&resolved(&rules, &supervisor)), nothing);
        let all = (secs(7).into(), Some(secs(8)), Some(secs(9)), Some(secs(10)));
        assert_eq!(shown(&resolved(&rules, &ChildOptions::default())), all);
        let own = ChildOptions { facts: nested(), ..of(values) };
        assert_eq!(shown(&resolved(&Rules::default(), &own)), all);
    }
}
