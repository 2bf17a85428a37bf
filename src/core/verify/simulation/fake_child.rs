//! A child of the simulation and the script that its incarnations follow.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::core::verify::invariants::DeclaredChild;
use crate::exit::{ExitError, ExitKind, ExitReason};
use crate::path::Path;
use crate::policy::{
    Backoff, ChildOptions, Exceptions, Intensity, OnExhausted, OnExit, OnLeak, Resolution,
    RestartType, Shutdown, SpecKind, Trigger, WrittenLimits,
};

/// What one incarnation does when it is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core) enum Script {
    Run,
    /// This and the following end when the child should be ready. `Fail` returns an error.
    Fail,
    /// Returns the error that may set the delay: see [`FakeChild::retry_after`].
    Busy,
    Panic,
    Ignore,
    End,
    Escalate,
    /// Ends the program, as a supervisor would.
    Exit,
}

/// An error that a retry-after rule can match.
#[derive(Debug, thiserror::Error)]
#[error("busy")]
pub(in crate::core) struct Busy;

impl Script {
    pub(in crate::core) fn reason(self) -> ExitReason {
        match self {
            Self::Run | Self::Ignore | Self::End => ExitReason::Normal,
            Self::Fail => ExitReason::Failed(ExitError::from("no")),
            Self::Busy => ExitReason::Failed(ExitError::from(Busy)),
            Self::Panic => ExitReason::Panicked("oh".into()),
            Self::Exit => ExitReason::Exit {
                code: 3,
                child: Path::root("x"),
                source: Arc::new(ExitReason::Hung(Duration::from_secs(30))),
            },
            Self::Escalate => ExitReason::Escalated {
                child: Path::root("x"),
                source: Arc::new(ExitReason::Hung(Duration::from_secs(30))),
            },
        }
    }
}

/// What a child with a watchdog answers when it is asked for its last heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core) enum Heart {
    /// It has sent one just now.
    Beats,
    /// The last heartbeat of [`Simulation::beat`](super::Simulation::beat), if there was one.
    Manual(Option<Instant>),
    /// The test answers, with an event.
    Unanswered,
}

/// A child and how it behaves.
#[derive(Clone, Debug)]
pub(in crate::core) struct FakeChild {
    pub(super) name: String,
    pub(in crate::core) options: ChildOptions,
    /// The delay that [`Busy`] sets.
    pub(in crate::core) retry_after: Option<Duration>,
    /// The exceptions by kind, as they were set.
    pub(in crate::core) on_exit: Vec<(ExitKind, OnExit)>,
    pub(in crate::core) requires: Vec<String>,
    /// The time until it is ready. `None`: never.
    pub(in crate::core) ready: Option<Duration>,
    /// The time from its cancel to its end. `None`: it ignores a cancel.
    pub(in crate::core) stops: Option<Duration>,
    /// The time from its abort to its end. `None`: it leaks.
    pub(in crate::core) dies: Option<Duration>,
    /// The scripts of the next incarnations. Later incarnations run.
    pub(in crate::core) scripts: VecDeque<Script>,
    /// The child that replaces it.
    pub(super) fallback: Option<Box<FakeChild>>,
    /// The callback's next decisions, each with the time that it takes. Later ones restart at once.
    pub(in crate::core) answers: VecDeque<(Duration, Resolution)>,
    /// The callback does not decide.
    pub(in crate::core) silent: bool,
    pub(in crate::core) heart: Heart,
}

/// A child that is active at once, runs until it is cancelled and then ends at once.
pub(in crate::core) fn fake(name: &str) -> FakeChild {
    FakeChild {
        name: name.to_owned(),
        options: ChildOptions::default(),
        retry_after: None,
        on_exit: Vec::new(),
        requires: Vec::new(),
        ready: Some(Duration::ZERO),
        stops: Some(Duration::ZERO),
        dies: Some(Duration::ZERO),
        scripts: VecDeque::new(),
        fallback: None,
        answers: VecDeque::new(),
        silent: false,
        heart: Heart::Beats,
    }
}

impl FakeChild {
    pub(in crate::core) fn restart(mut self, restart: RestartType) -> Self {
        self.options.values.policy.restart = Some(restart.into());
        self
    }

    /// Needs a lease, which lasts this long after a loss.
    pub(in crate::core) fn leased(mut self, grace: Duration) -> Self {
        self.options.lease_grace = Some(grace);
        self
    }

    pub(in crate::core) fn stop_order(mut self, order: i8) -> Self {
        self.options.stop_order = order;
        self
    }

    pub(in crate::core) fn trigger(mut self, trigger: Trigger) -> Self {
        self.options.values.policy.restart = Some(trigger);
        self
    }

    pub(in crate::core) fn on_exit(mut self, kind: ExitKind, then: OnExit) -> Self {
        self.options.exceptions.on_exit(kind, then);
        self.on_exit.push((kind, then));
        self
    }

    /// Delays its restart for this long after a [`Busy`].
    pub(in crate::core) fn retry_after(mut self, wait: Duration) -> Self {
        self.options.retry_after.add(move |_: &Busy| Some(wait));
        self.retry_after = Some(wait);
        self
    }

    /// Restarts after every end, without exceptions.
    pub(in crate::core) fn always_restarts(mut self) -> Self {
        self.options.exceptions = Exceptions::default();
        self.on_exit.clear();
        self.restart(RestartType::Permanent)
    }

    pub(in crate::core) fn transient(self) -> Self {
        self.restart(RestartType::Transient)
    }

    pub(in crate::core) fn temporary(self) -> Self {
        self.restart(RestartType::Temporary)
    }

    pub(in crate::core) fn significant(mut self) -> Self {
        self.options.significant = true;
        self
    }

    /// Is a supervisor without children.
    pub(in crate::core) fn supervisor(mut self) -> Self {
        self.options.facts.kind = SpecKind::Supervisor { abort_bound: Duration::ZERO };
        self
    }

    pub(in crate::core) fn requires(mut self, name: &str) -> Self {
        self.requires.push(name.to_owned());
        self
    }

    pub(in crate::core) fn shutdown(mut self, shutdown: impl Into<Shutdown>) -> Self {
        self.options.values.shutdown = Some(shutdown.into());
        self
    }

    pub(in crate::core) fn backoff(mut self, backoff: Backoff) -> Self {
        self.options.values.policy.backoff = Some(backoff);
        self
    }

    pub(in crate::core) fn intensity(mut self, intensity: Intensity) -> Self {
        self.options.values.policy.limits.intensity(intensity);
        self
    }

    pub(in crate::core) fn consecutive(mut self, max: u32) -> Self {
        self.options.values.policy.limits.consecutive(max);
        self
    }

    pub(in crate::core) fn failing_for(mut self, max: Duration) -> Self {
        self.options.values.policy.limits.failing_for(max);
        self
    }

    pub(in crate::core) fn on_exhausted(mut self, on_exhausted: OnExhausted) -> Self {
        self.options.values.policy.on_exhausted = Some(on_exhausted);
        self
    }

    /// `fallback` replaces it, under its name, when it has exceeded a limit.
    pub(in crate::core) fn fallback(mut self, mut fallback: Self) -> Self {
        fallback.options.facts.is_fallback = true;
        fallback.name.clone_from(&self.name);
        self.options.fallback = Some(Arc::new(fallback.options.clone()));
        self.fallback = Some(Box::new(fallback));
        self
    }

    /// Has no limits of its own, and does not end the program.
    pub(in crate::core) fn without_limits(mut self) -> Self {
        self.options.values.policy.limits = WrittenLimits::default();
        self.scripts.retain(|&script| script != Script::Exit);
        self
    }

    pub(in crate::core) fn on_leak(mut self, on_leak: OnLeak) -> Self {
        self.options.values.on_leak = Some(on_leak);
        self
    }

    pub(in crate::core) fn activation_timeout(mut self, timeout: Duration) -> Self {
        self.options.values.activation_timeout = Some(timeout);
        self
    }

    /// Has to send a heartbeat this often, and does.
    pub(in crate::core) fn watchdog(mut self, interval: Duration) -> Self {
        self.options.values.watchdog = Some(interval);
        self
    }

    /// May be active for this long.
    pub(in crate::core) fn run_time_limit(mut self, limit: Duration) -> Self {
        self.options.values.run_time_limit = Some(limit);
        self
    }

    /// How it answers when it is asked for its last heartbeat.
    pub(in crate::core) fn heart(mut self, heart: Heart) -> Self {
        self.heart = heart;
        self
    }

    /// Is started by a message.
    pub(in crate::core) fn on_message(mut self) -> Self {
        self.options.on_message = true;
        self
    }

    /// Its delivery is delayed instead of its restart.
    pub(in crate::core) fn delays_delivery(mut self) -> Self {
        self.options.delays_delivery = true;
        self
    }

    /// A failed health check is a failure.
    pub(in crate::core) fn fails_unhealthy(mut self) -> Self {
        self.options.fails_unhealthy = true;
        self
    }

    /// Signals when it is ready: after this time, or never.
    pub(in crate::core) fn signals(mut self, ready: impl Into<Option<Duration>>) -> Self {
        self.options.facts.signals = true;
        self.ready = ready.into();
        self
    }

    /// Ends this long after it was cancelled, or never.
    pub(in crate::core) fn stops(mut self, stops: impl Into<Option<Duration>>) -> Self {
        self.stops = stops.into();
        self
    }

    /// Ends this long after it was aborted.
    pub(in crate::core) fn dies(mut self, dies: Duration) -> Self {
        self.dies = Some(dies);
        self
    }

    /// Never exits, even when it is aborted.
    pub(in crate::core) fn leaks(mut self) -> Self {
        self.stops = None;
        self.dies = None;
        self
    }

    /// The callback takes these decisions on its failures.
    pub(in crate::core) fn answers(
        mut self,
        answers: impl IntoIterator<Item = (Duration, Resolution)>,
    ) -> Self {
        self.answers.extend(answers);
        self
    }

    /// The callback does not decide on its failures.
    pub(in crate::core) fn silent(mut self) -> Self {
        self.silent = true;
        self
    }

    /// Requires no sibling and is not significant: a child of a dynamic supervisor.
    pub(in crate::core) fn alone(mut self) -> Self {
        self.requires.clear();
        self.options.significant = false;
        self
    }

    pub(in crate::core) fn replacement(&self) -> Option<&Self> {
        self.fallback.as_deref()
    }

    pub(in crate::core) fn name(&self) -> &str {
        &self.name
    }

    pub(in crate::core::verify) fn declaration(&self) -> Arc<DeclaredChild> {
        Arc::new(DeclaredChild {
            name: self.name.as_str().into(),
            options: Arc::new(self.options.clone()),
            requires: self.requires.iter().map(|name| name.as_str().into()).collect(),
        })
    }

    pub(in crate::core) fn scripts(mut self, scripts: impl IntoIterator<Item = Script>) -> Self {
        self.scripts.extend(scripts);
        self
    }
}
