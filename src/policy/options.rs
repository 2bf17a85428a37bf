//! The options of children and the rules of supervisors, as plain values.
//!
//! A [`ChildOptions`] holds the options of one spec, of the defaults for children, or of a preset. What applies to a
//! child is in its [`ChildRules`](super::ChildRules). Many children share one `ChildOptions`, and all children one
//! `Rules`.
//!
//! Nothing here is checked. The values of a built tree have passed `spec::check`.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use super::{
    AutoShutdown, Backoff, DefaultLimit, Exceptions, FailsAfter, FirstStart, Intensity,
    OnExhausted, OnLeak, PolicySource, RandomFactory, RestartPolicy, RetryAfter, Shutdown, Start,
    Strategy,
};

/// The options of a child, of the defaults for children, or of a preset.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChildOptions {
    /// The values that a file or a call can replace.
    pub(crate) values: ChildLayer,
    /// Evaluated before the exceptions of the trigger.
    pub(crate) exceptions: Exceptions,
    /// Delays from errors, in place of the backoff.
    pub(crate) retry_after: RetryAfter,
    /// Replaces the child when it exceeds a limit.
    pub(crate) fallback: Option<Arc<ChildOptions>>,
    pub(crate) facts: SpecFacts,
    pub(crate) significant: bool,
    /// Whether being unhealthy is a failure.
    pub(crate) fails_unhealthy: bool,
    /// Whether the child is started by its first message, instead of with its supervisor.
    pub(crate) on_message: bool,
    /// Whether the backoff delays messages instead of the restart.
    pub(crate) delays_delivery: bool,
    /// Children with a lower number stop first.
    pub(crate) stop_order: i8,
    /// Whether the tree is ready only if the child is. `None`: if its supervisor isn't dynamic.
    pub(crate) essential: Option<bool>,
    /// For children that need a lease: how long it lasts after the child is cancelled because it couldn't be
    /// renewed.
    pub(crate) lease_grace: Option<Duration>,
    /// What the status shows as the version of the child's code.
    pub(crate) version: Option<Arc<str>>,
    /// Whether the child is started only once it has a configuration of its own.
    pub(crate) awaits_config: bool,
}

/// What follows from the code of a child, and isn't an option.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpecFacts {
    pub(crate) kind: SpecKind,
    /// Whether these are the options of a fallback.
    pub(crate) is_fallback: bool,
    /// Whether the child signals that it is ready, instead of being active as soon as it is spawned.
    pub(crate) signals: bool,
    /// Whether only the child's own signal counts, and not the return of its `activate`.
    pub(crate) signals_itself: bool,
    /// How long the child runs until it fails, as far as that is known: a supervisor that gives up, or a
    /// child that its health check restarts.
    pub(crate) fails_after: Option<FailsAfter>,
    /// Whether the child has one incarnation.
    pub(crate) once: bool,
}

/// What a child is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum SpecKind {
    #[default]
    Worker,
    /// `abort_bound`: how long aborting everything below may take.
    Supervisor { abort_bound: Duration },
}

impl SpecKind {
    pub(crate) fn is_supervisor(self) -> bool {
        matches!(self, Self::Supervisor { .. })
    }

    /// Returns how long aborting everything below the child may take.
    pub(crate) fn abort_bound(self) -> Duration {
        match self {
            Self::Worker => Duration::ZERO,
            Self::Supervisor { abort_bound } => abort_bound,
        }
    }
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

/// How a message starts a temporary child again that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Revival {
    /// After a failure when the backoff is over, and otherwise immediately.
    AfterBackoff,
    /// Immediately, also after a failure, as in elfo. Such a start is charged to no limit.
    AtOnce,
    /// Not at all: the child is removed when it ends, as in OTP.
    Never,
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
    /// How a message starts a temporary child again.
    pub(crate) revival: Revival,
    /// Whether a callback decides on failures. Set when the supervisor starts.
    pub(crate) has_failure_callback: bool,
    pub(crate) leak_timeout: Duration,
    /// How long `stop` may take as a whole; `None`: the sum of the children's graces.
    pub(crate) stop_deadline: Option<Duration>,
    /// Dynamic supervisors only.
    pub(crate) max_children: Option<usize>,
    /// How many children have to be active so that the supervisor is ready. Dynamic supervisors only.
    pub(crate) min_ready: u32,
    /// The defaults for children.
    pub(crate) defaults: ChildOptions,
    /// The values of the preset, below `defaults`.
    pub(crate) preset: ChildLayer,
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
            intensity: None,
            intensity_from: PolicySource::Default,
            of_each: Some(DefaultLimit::BUILT_IN),
            group_restart: Duration::ZERO,
            count_failed_starts: false,
            gives_up_cleanly: false,
            revival: Revival::AfterBackoff,
            has_failure_callback: false,
            leak_timeout: Duration::from_secs(1),
            stop_deadline: None,
            max_children: None,
            min_ready: 0,
            defaults: ChildOptions::default(),
            preset: ChildLayer::default(),
            backoff: Backoff::default(),
            random: None,
            layers: None,
        }
    }
}

impl Rules {
    /// Returns the rules with the values of a layer, which a builder or a file sets.
    pub(crate) fn with(self, layer: &SupervisorLayer, source: PolicySource) -> Self {
        let mut rules = self;
        rules.strategy = layer.strategy.unwrap_or(rules.strategy);
        rules.auto_shutdown = layer.auto_shutdown.unwrap_or(rules.auto_shutdown);
        rules.start = layer.start.unwrap_or(rules.start);
        if let Some(intensity) = layer.intensity {
            // A limit that is written replaces the built-in limit of each child.
            (rules.intensity, rules.intensity_from, rules.of_each) = (intensity, source, None);
        }
        rules.count_failed_starts = layer.count_failed_starts.unwrap_or(rules.count_failed_starts);
        if let Some(on_exhausted) = layer.on_exhausted {
            (rules.on_exhausted, rules.on_exhausted_from) = (on_exhausted, source);
        }
        rules.leak_timeout = layer.leak_timeout.unwrap_or(rules.leak_timeout);
        rules.stop_deadline = layer.stop_deadline.or(rules.stop_deadline);
        rules.max_children = layer.max_children.or(rules.max_children);
        rules.min_ready = layer.min_ready.unwrap_or(rules.min_ready);
        rules
    }

    /// Returns the rules of the code, with the values of a file.
    pub(crate) fn layered(code: &Arc<Self>, file: Option<Arc<SupervisorLayer>>) -> Arc<Self> {
        let code = code.code();
        let Some(layer) = file else { return Arc::clone(code) };
        let rules = Self::clone(code).with(&layer, PolicySource::File);
        Arc::new(Self { layers: Some((Arc::clone(code), layer)), ..rules })
    }

    /// Returns where the values that replace those of the code were written, by name.
    pub(crate) fn places(&self) -> Places {
        self.layers.as_ref().map(|(_, layer)| layer.places.0.clone()).unwrap_or_default()
    }

    /// Returns the rules of the code.
    pub(crate) fn code(self: &Arc<Self>) -> &Arc<Self> {
        self.layers.as_ref().map_or(self, |(code, _)| code)
    }
}

/// Where values were written, such as `feed.toml:12`, by the name of the setting.
pub(crate) type Places = BTreeMap<&'static str, Arc<str>>;

/// Where the values of a layer were written. It makes no difference between two layers.
#[derive(Clone, Debug, Default)]
pub(crate) struct WrittenAt(pub(crate) Places);

impl PartialEq for WrittenAt {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The values of one child.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ChildLayer {
    pub(crate) for_workers: ForWorkers,
    /// `false` takes the child out of the tree.
    pub(crate) enabled: Option<bool>,
    pub(crate) policy: RestartPolicy,
    pub(crate) shutdown: Option<Shutdown>,
    pub(crate) activation_timeout: Option<Duration>,
    pub(crate) watchdog: Option<Duration>,
    pub(crate) run_time_limit: Option<Duration>,
    pub(crate) on_leak: Option<OnLeak>,
    /// The capacity of the child's mailbox, in the place of the code's.
    pub(crate) mailbox_capacity: Option<NonZeroUsize>,
    pub(crate) places: WrittenAt,
}

/// Which values are written for several children, and so only for the workers among them: a supervisor needs time
/// for its own children, sends no heartbeats, and runs for as long as they do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ForWorkers {
    pub(crate) shutdown: bool,
    pub(crate) watchdog: bool,
    pub(crate) run_time_limit: bool,
}

impl ForWorkers {
    pub(crate) const ALL: Self = Self { shutdown: true, watchdog: true, run_time_limit: true };
}

/// The values of one supervisor.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SupervisorLayer {
    pub(crate) strategy: Option<Strategy>,
    pub(crate) auto_shutdown: Option<AutoShutdown>,
    pub(crate) start: Option<Start>,
    /// `Some(None)`: unlimited.
    pub(crate) intensity: Option<Option<Intensity>>,
    pub(crate) count_failed_starts: Option<bool>,
    pub(crate) on_exhausted: Option<OnExhausted>,
    pub(crate) leak_timeout: Option<Duration>,
    pub(crate) stop_deadline: Option<Duration>,
    /// Dynamic supervisors only.
    pub(crate) max_children: Option<usize>,
    /// Dynamic supervisors only.
    pub(crate) min_ready: Option<u32>,
    pub(crate) places: WrittenAt,
}
