//! A checked supervisor, which can be run any number of times.

use std::collections::HashMap;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, iter};

use super::shared::SupervisorShared;
use crate::child::{ChildSpec, ExplicitGraces};
use crate::core::Key;
use crate::dead_letter::DeadLetterOptions;
use crate::error::{BuildError, BuildWarning};
use crate::path::Path;
use crate::policy::{
    AutoShutdown, ChildOptions, ChildRules, EffectivePolicy, Exceptions, FailsAfter,
    FailureCallback, Intensity, Layers, OnExhausted, Reset, Resolver, RestartType, Rules, Shutdown,
    Strategy, SupervisorLayer, Unreachable, unreachable,
};
use crate::status::{ChildKind, ChildSpecInfo};

/// A value outside of the tree that knows where the supervisor of a description runs.
pub(crate) trait RegistrationListener: fmt::Debug + Send + Sync {
    /// The supervisor runs.
    fn registered(&self, supervisor: &Arc<SupervisorShared>);
}

/// The names of declared children, with their keys.
pub(super) type DeclaredNames = Arc<HashMap<Arc<str>, Key>>;

#[derive(Clone, Debug)]
pub(crate) struct Blueprint {
    pub(crate) name: Arc<str>,
    /// Where it is described.
    pub(crate) defined_at: &'static Location<'static>,
    /// The version of its code.
    pub(crate) version: Option<Arc<str>>,
    pub(crate) rules: Arc<Rules>,
    /// Whether its children have no order.
    pub(crate) dynamic: bool,
    /// Its own callback. One from above may apply instead.
    pub(crate) on_child_failure: Option<FailureCallback>,
    /// Its own options. Those from above apply as well.
    pub(crate) dead_letters: DeadLetterOptions,
    /// In start order.
    pub(crate) children: Arc<[ChildSpec]>,
    /// The keys of these children by name, the same in each incarnation of the supervisor.
    pub(crate) keys: DeclaredNames,
    /// Whether any child below has a mailbox.
    pub(crate) lends: bool,
    /// How many levels of supervisors it has, as far as they are declared. 1 if none is below it.
    pub(crate) levels: usize,
    /// The graces of all children below that were set explicitly.
    pub(crate) graces: ExplicitGraces,
    /// How long it runs until it gives up, if it does and that is known.
    pub(crate) gives_up: Option<FailsAfter>,
    /// Whether a thread watches its tree for blocked threads. Only the root's counts.
    pub(crate) self_check: bool,
    /// Whether the polls of its tree are timed. `None`: while something shows the times. Only the root's counts.
    pub(crate) busy_time: Option<bool>,
    /// Learns of each incarnation that runs.
    pub(crate) registration: Option<Arc<dyn RegistrationListener>>,
}

/// Why a limit on restarts may have no effect.
#[derive(Clone, Debug)]
pub(crate) enum Ineffective {
    Never(Unreachable),
    /// If restarts take as long as graces and timeouts allow: at least `restart`.
    Maybe {
        limit: String,
        restart: Duration,
    },
}

impl Ineffective {
    /// The warning about the supervisor or the child at this path.
    pub(crate) fn warning(self, path: Path) -> BuildWarning {
        match self {
            Self::Never(limit) => BuildWarning::unreachable(&path, limit),
            Self::Maybe { limit, restart } => BuildWarning::SlowRestarts { path, limit, restart },
        }
    }
}

impl Blueprint {
    /// Returns the names of the declared children with their keys. `None` for a dynamic supervisor, whose
    /// children have serial numbers.
    pub(super) fn declared_names(&self) -> Option<&DeclaredNames> {
        (!self.dynamic).then_some(&self.keys)
    }

    /// Returns the place of a declared child in the start order.
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.keys.get(name).map(|key| key.index())
    }

    /// Returns the spec of a declared child.
    pub(crate) fn child(&self, name: &str) -> Option<&ChildSpec> {
        self.children.get(self.place(name)?)
    }

    /// Returns it with different rules.
    pub(super) fn with_rules(&self, rules: Arc<Rules>) -> Arc<Self> {
        Arc::new(Self { rules, ..self.clone() })
    }

    /// Returns what makes the limit of all children together ineffective: they can't exceed it, or may not if
    /// restarts take as long as they can.
    pub(crate) fn ineffective_limit(&self, children: &[Arc<ChildRules>]) -> Option<Ineffective> {
        let rules = &self.rules;
        let intensity = rules.intensity.filter(|_| !children.is_empty())?;
        // The delays that errors ask for are unknown.
        if children.iter().any(|child| !child.retry_after.is_empty()) {
            return None;
        }
        let lives = children.iter().map(|it| (&it.backoff, it.shortest_life()));
        if let Some(never) = unreachable(intensity, lives) {
            return Some(Ineffective::Never(never));
        }
        let waits = waits_for_others(rules.strategy, children);
        let mut slowed = children.iter().zip(waits).map(|(it, others)| {
            let alone = it.down_after(it.shortest_life());
            (&it.backoff, alone.saturating_add(others))
        });
        let restart = slowed.clone().map(|(_, cycle)| cycle).min()?;
        let is_slow = match rules.strategy {
            // A failure of one is a restart of all, so their failures don't add up.
            Strategy::OneForAll => {
                slowed.all(|cycle| unreachable(intensity, iter::once(cycle)).is_some())
            }
            Strategy::OneForOne | Strategy::RestForOne => unreachable(intensity, slowed).is_some(),
        };
        is_slow.then(|| Ineffective::Maybe { limit: intensity.to_string(), restart })
    }

    /// Returns the rules of the declared children, without what files and calls write over the code.
    pub(crate) fn child_rules(&self) -> Vec<Arc<ChildRules>> {
        let mut resolver = Resolver::default();
        let resolve =
            |child: &ChildSpec| resolver.resolve(&child.options, &self.rules, Layers::default());
        self.children.iter().map(resolve).collect()
    }

    /// Returns how long it runs until it gives up on children that keep failing. `ineffective`: what makes the limit of
    /// all of them ineffective.
    pub(crate) fn gives_up(
        &self,
        children: &[Arc<ChildRules>],
        ineffective: Option<&Ineffective>,
    ) -> Option<FailsAfter> {
        let rules = &self.rules;
        let escalating = children.iter().filter(|it| it.on_exhausted == OnExhausted::Escalate);
        let gives_up_together = match self.dynamic {
            true => matches!(rules.on_exhausted, OnExhausted::Escalate | OnExhausted::Remove),
            false => escalating.clone().next().is_some(),
        };
        let together = rules.intensity.filter(|_| gives_up_together).map(|intensity| {
            let lives = children.iter().map(|it| (&it.backoff, it.shortest_life()));
            let mut gives_up = FailsAfter::of(intensity, lives);
            if let Some(Ineffective::Never(_)) = ineffective {
                gives_up.soonest = Duration::MAX;
            }
            gives_up
        });
        let unknown = ChildRules::of(&Arc::default(), rules);
        let of_any = (self.dynamic && rules.on_exhausted == OnExhausted::Escalate)
            .then_some(&unknown)
            .into_iter();
        // Children of one spec give the same answer, and there may be very many.
        let mut last = None;
        let distinct = escalating.chain(of_any).filter(|it| {
            let is_new = last.replace(Arc::as_ptr(it)) != Some(Arc::as_ptr(it));
            is_new && it.restart_type() != RestartType::Temporary
        });
        let alone = distinct.filter_map(|it| {
            let limits = it.limits(None)?;
            let (life, cycle) = (it.shortest_life(), it.cycle());
            Some(FailsAfter::of_child(&limits, &it.backoff, life, cycle))
        });
        let mut gives_up = together.into_iter().chain(alone).reduce(FailsAfter::or)?;
        // The children that remain stop one after another.
        if self.children.len() > 1 {
            gives_up.latest = gives_up.latest.saturating_add(rules.group_restart);
        }
        if self.dynamic || self.may_fail_otherwise(children) {
            gives_up.soonest = Duration::ZERO;
        }
        Some(gives_up)
    }

    /// Whether it may end before a limit is exceeded.
    fn may_fail_otherwise(&self, children: &[Arc<ChildRules>]) -> bool {
        self.on_child_failure.is_some()
            || self.rules.auto_shutdown != AutoShutdown::Never
            || !self.rules.defaults.retry_after.is_empty()
            || children.iter().any(|it| !it.retry_after.is_empty() || it.has_exceptions())
    }

    /// Returns how long it takes at most to abort everything below, and to report leaks.
    pub(crate) fn abort_bound(&self) -> Duration {
        let mut below = Duration::ZERO;
        for child in self.children.iter() {
            // The child itself, and each of its fallbacks.
            let mut next = Some(&child.options);
            while let Some(options) = next {
                below = below.max(options.facts.kind.abort_bound());
                next = options.fallback.as_ref();
            }
        }
        self.rules.leak_timeout.saturating_add(below)
    }

    /// Returns the graces of all children below that were set explicitly.
    ///
    /// The children of a dynamic supervisor are unknown, but they stop at the same time, so the grace that its
    /// defaults set is added once. Longer graces of single children can't be known.
    pub(crate) fn explicit_graces(&self) -> ExplicitGraces {
        let leak_timeout = self.rules.leak_timeout;
        let none = ExplicitGraces { leak_timeout, ..ExplicitGraces::default() };
        if !self.dynamic {
            let (mut all, mut last, mut closing) =
                (none, (i8::MAX, Duration::ZERO), Duration::ZERO);
            for child in self.children.iter() {
                let grace = self.explicit_grace(child);
                all = all.then(grace);
                // A child stops no later than the children before it. Children of one order stop at the same time.
                let order = child.options.stop_order.min(last.0);
                if order < last.0 {
                    closing = closing.saturating_add(last.1);
                    last = (order, Duration::ZERO);
                }
                last.1 = last.1.max(grace.closing);
            }
            return ExplicitGraces { closing: closing.saturating_add(last.1), ..all };
        }
        let later = match self.rules.defaults.values.shutdown {
            Some(Shutdown::Timeout(grace) | Shutdown::Drain(grace)) => {
                none.beside(ExplicitGraces::of(grace))
            }
            Some(Shutdown::BrutalKill | Shutdown::Infinity) | None => none,
        };
        let graces = self.children.iter().map(|child| self.explicit_grace(child));
        graces.fold(later, ExplicitGraces::beside)
    }

    fn explicit_grace(&self, child: &ChildSpec) -> ExplicitGraces {
        // Supervisors don't have the grace of the defaults.
        let default = self
            .rules
            .defaults
            .values
            .shutdown
            .filter(|_| !child.options.facts.kind.is_supervisor());
        match child.options.values.shutdown.or(default) {
            Some(Shutdown::Timeout(grace) | Shutdown::Drain(grace)) => ExplicitGraces::of(grace),
            Some(Shutdown::BrutalKill) => ExplicitGraces::default(),
            Some(Shutdown::Infinity) | None => child.factory.explicit_graces(),
        }
    }

    /// Whether a restart of this supervisor starts a child that has one incarnation. A supervisor below that
    /// is restarted itself doesn't count.
    pub(crate) fn spends(&self) -> bool {
        let is_temporary = |child: &ChildSpec| {
            let rules = ChildRules::of(&child.options, &self.rules);
            rules.restart_type() == RestartType::Temporary
        };
        self.children.iter().any(|child| {
            let is_supervisor = child.options.facts.kind.is_supervisor();
            child.options.facts.once
                || (is_supervisor && is_temporary(child) && child.factory.spends())
        })
    }

    /// Whether the tree is ready only if this child is.
    pub(crate) fn is_essential(&self, options: &ChildOptions) -> bool {
        options.essential.unwrap_or(!self.dynamic)
    }

    pub(crate) fn is_dynamic(&self) -> bool {
        self.dynamic
    }

    pub(crate) fn strategy(&self) -> &'static str {
        self.strategy_with(None)
    }

    /// Returns the strategy with the values of a configuration, which a supervisor takes in when it starts.
    pub(crate) fn strategy_with(&self, layer: Option<&SupervisorLayer>) -> &'static str {
        let written = layer.and_then(|layer| layer.strategy);
        if self.is_dynamic() { "dynamic" } else { written.unwrap_or(self.rules.strategy).word() }
    }

    /// Returns the intensity of children that have none of their own.
    pub(crate) fn child_limit(&self) -> Option<Intensity> {
        ChildRules::of(&Arc::default(), &self.rules).limits(None)?.intensity
    }

    /// Checks a child against this supervisor, but not against its siblings.
    pub(crate) fn check_child(
        &self,
        path: &dyn Fn() -> Path,
        child: &ChildSpec,
        rules: &ChildRules,
        warnings: &mut Vec<BuildWarning>,
    ) -> Result<(), BuildError> {
        let own = || path().join(child.name());
        let options = &child.options;
        if let Some((fallback, rules)) = child.fallback.as_ref().zip(rules.fallback.as_ref()) {
            self.check_child(path, fallback, rules, warnings)?;
        }
        check_restarts(rules, &own, warnings)?;
        check_grace(rules, || child.factory.explicit_graces().sum, &own)?;
        child.factory.warn(&own, warnings);
        if !rules.is_supervisor() && rules.shutdown == Shutdown::Infinity {
            warnings.push(BuildWarning::UnboundedStop { path: own() });
        }
        if options.on_message && child.factory.mailbox().is_some_and(|mailbox| mailbox.diverts()) {
            warnings.push(BuildWarning::WhileDownIgnored { path: own() });
        }
        let is_restarted = rules.restart_type() != RestartType::Temporary;
        if options.facts.once
            && (is_restarted || options.exceptions != *Exceptions::EMPTY || options.on_message)
        {
            return Err(BuildError::RestartedOnce { path: own() });
        }
        if is_restarted && child.factory.spends() {
            warnings.push(BuildWarning::SpentOnce { path: own() });
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
        if rules.trigger.always_restarts() {
            return Err(BuildError::SignificantPermanent { path: own() });
        }
        if self.rules.auto_shutdown == AutoShutdown::Never {
            let parent = path();
            return Err(BuildError::SignificantWithoutAutoShutdown { path: own(), parent });
        }
        Ok(())
    }

    /// Describes how a child is supervised, with every default filled in.
    pub(crate) fn describe(&self, name: String, rules: &Arc<ChildRules>) -> ChildSpecInfo {
        let limits = rules.limits(None).unwrap_or_default();
        ChildSpecInfo {
            name,
            kind: kind(rules),
            restart: rules.restart_type(),
            trigger: rules.trigger.clone(),
            shutdown: rules.shutdown,
            backoff: rules.backoff.clone(),
            significant: rules.spec.significant,
            essential: self.is_essential(&rules.spec),
            activation_timeout: rules.activation_timeout,
            watchdog: rules.watchdog,
            run_time_limit: rules.run_time_limit,
            on_leak: rules.on_leak,
            intensity: limits.intensity,
            consecutive_restarts: limits.consecutive,
            failing_for: limits.failing_for,
            on_exhausted: rules.on_exhausted,
            failure_log: rules.failure_log,
            sources: EffectivePolicy::new(Arc::clone(rules), None).sources(),
        }
    }
}

/// Returns for each child how long a restart may wait for the others that restart with it, as far as that has a
/// bound.
fn waits_for_others(strategy: Strategy, children: &[Arc<ChildRules>]) -> Vec<Duration> {
    match strategy {
        Strategy::OneForOne | Strategy::OneForAll => {
            children.iter().map(|it| it.waits_for_group()).collect()
        }
        Strategy::RestForOne => {
            let mut after = Duration::ZERO;
            let mut waits: Vec<_> = children
                .iter()
                .rev()
                .map(|it| {
                    let wait = after;
                    after = after.saturating_add(it.restart_time());
                    wait
                })
                .collect();
            waits.reverse();
            waits
        }
    }
}

/// Checks that a child which needs a lease is down before that expires. `below`: the graces below it that were set
/// explicitly, if it is a supervisor.
pub(crate) fn check_grace(
    rules: &ChildRules,
    below: impl FnOnce() -> Duration,
    path: &dyn Fn() -> Path,
) -> Result<(), BuildError> {
    let Some(lasts) = rules.spec.lease_grace else { return Ok(()) };
    let leak_timeout = rules.leak_timeout;
    let longest = lasts.saturating_sub(leak_timeout);
    if longest.is_zero() {
        return Err(BuildError::ShortLease { path: path(), lasts, leak_timeout });
    }
    let grace = match rules.written_shutdown {
        Some(Shutdown::BrutalKill) => Some(Duration::ZERO),
        Some(Shutdown::Timeout(grace) | Shutdown::Drain(grace)) => Some(grace),
        Some(Shutdown::Infinity) => None,
        None => Some(below()),
    };
    if grace.is_none_or(|grace| grace > longest) {
        return Err(BuildError::GraceBeyondLease { path: path(), grace, longest });
    }
    Ok(())
}

/// Checks the restart limits of a child, or of a fallback.
pub(crate) fn check_restarts(
    rules: &ChildRules,
    own: &dyn Fn() -> Path,
    warnings: &mut Vec<BuildWarning>,
) -> Result<(), BuildError> {
    let (backoff, together) = (&rules.backoff, rules.supervisor.intensity);
    // The period of the built-in limit is long enough for each child.
    let written = rules.written_limits.unwrap_or_default();
    let signals = rules.spec.facts.signals;
    if together.is_none()
        && !rules.is_limited()
        && backoff.is_none()
        && rules.restart_type() != RestartType::Temporary
    {
        warnings.push(BuildWarning::BusyRestarts { path: own() });
    }
    // A reset that applies even to a child that was never active.
    let at_once = backoff.resets_after().is_some_and(|life| life.is_zero());
    if at_once || (backoff.resets_on(Reset::OnReady) && !signals) {
        let is_built_in = rules.written_limits.is_none() && rules.is_limited();
        if together.is_none() && written.intensity.is_none() && !is_built_in {
            return Err(BuildError::EndlessRestarts { path: own() });
        }
        // A child that signals its readiness may fail before it is active, which resets nothing.
        if !signals {
            let never = |limit| BuildWarning::NeverInARow { path: own(), limit };
            warnings.extend(written.in_a_row().map(never));
        }
    }
    let Some(limit) = written.intensity else { return Ok(()) };
    let life = rules.shortest_life();
    let cycle = rules.down_after(life).saturating_add(rules.waits_for_group());
    let after = |life| unreachable(limit, iter::once((backoff, life)));
    let ineffective = match after(life) {
        Some(never) => Some(Ineffective::Never(never)),
        None => after(cycle).map(|_| {
            let limit = written.window_text().unwrap_or_default();
            Ineffective::Maybe { limit, restart: cycle }
        }),
    };
    warnings.extend(ineffective.map(|it| it.warning(own())));
    Ok(())
}

pub(crate) fn kind(rules: &ChildRules) -> ChildKind {
    if rules.is_supervisor() { ChildKind::Supervisor } else { ChildKind::Worker }
}
