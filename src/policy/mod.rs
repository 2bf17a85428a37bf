//! Policies: which children are restarted, when and how often, and what happens at a limit.
//!
//! A policy is a value. Set it on a [spec](crate::ChildSpec) for one child, in the
//! [defaults](crate::SupervisorBuilder::defaults) for all children of a supervisor, or on the
//! [builder](crate::SupervisorBuilder) for the supervisor itself.
//!
//! | setting | types |
//! | --- | --- |
//! | exits that are followed by a restart | [`RestartType`]; exceptions: [`Trigger`], [`OnExit`] |
//! | delay before a restart | [`Backoff`], [`Jitter`], [`Reset`] |
//! | limit on restarts | [`Intensity`] |
//! | what happens at the limit | [`OnExhausted`] |
//! | decisions by a callback | [`ChildFailure`], [`FailureDecision`] |
//! | start of a tree | [`Start`], [`FirstStart`] |
//! | end of a supervisor with its children | [`AutoShutdown`] |
//! | children that can't be aborted | [`OnLeak`] |
//!
//! A [`RestartPolicy`] combines the settings of a child. With the feature `serde`, it can be read from a
//! file, like each of its parts. A [`Preset`] has the settings of a different supervision system.
//! [`EffectivePolicy`] is the policy of a running child, with the source of each value.
//!
//! ```
//! use std::time::Duration;
//!
//! use verger::policy::{OnExhausted, RestartPolicy};
//! use verger::{Backoff, Context, RestartType, Supervisor, worker};
//!
//! async fn poll(ctx: Context) {
//!     ctx.cancelled().await;
//! }
//!
//! // Restarts after failures, at most three times a minute, and then leaves the child down.
//! let policy = RestartPolicy::new()
//!     .restart(RestartType::Transient)
//!     .backoff(Backoff::constant(Duration::from_secs(1)))
//!     .own_restarts(3, Duration::from_secs(60))
//!     .on_exhausted(OnExhausted::Park);
//!
//! let app = Supervisor::builder("app")
//!     .child(worker("north", poll).policy(policy.clone()))
//!     .child(worker("south", poll).policy(policy))
//!     .build()?;
//! # drop(app);
//! # Ok::<_, verger::BuildError>(())
//! ```

// Everything here is data with total functions over it. There are no tasks, timers or clocks; instants
// and random numbers are arguments. The supervisor's core decides by these values.

pub(crate) mod backoff;
mod child_rules;
pub(crate) mod dead_letter_log;
mod effective;
mod failure;
mod failure_log;
mod health;
mod limits;
#[cfg(feature = "config")]
pub(crate) mod option_table;
mod options;
mod presets;
mod random;
mod reach;
mod restart_policy;
#[cfg(feature = "serde")]
pub(crate) mod serde;
mod setters;
pub(crate) mod shutdown;
pub(crate) mod start;
pub(crate) mod strategy;
pub(crate) mod trigger;
mod window;

pub(crate) use self::backoff::{Backoff, CurvePosition, RunningIterator};
pub use self::backoff::{BackoffProblem, BinarySlots, Curve, Delays, Jitter, Reset};
pub(crate) use self::child_rules::{ChildRules, Layers, Resolver};
pub(crate) use self::dead_letter_log::{DeadLetterLog, LetterLine, Throttle};
pub use self::effective::{Effective, EffectivePolicy, PolicySource, PolicySources};
pub use self::failure::{ChildFailure, FailureAnswer, FailureDecision, FailureOutcome};
pub(crate) use self::failure::{FailureCallback, Resolution};
pub use self::failure_log::{FailureLog, LogLevel};
pub(crate) use self::health::{HealthCounter, HealthSettings};
pub(crate) use self::limits::{DefaultLimit, Limits, SetTwice, WrittenLimits, set};
pub use self::limits::{OnExhausted, OnLeak};
pub(crate) use self::options::{
    ChildLayer, ChildOptions, ForWorkers, Places, Revival, Rules, SpecFacts, SpecKind,
    SupervisorLayer, Withheld, WrittenAt,
};
pub use self::presets::Preset;
pub use self::random::Random;
pub(crate) use self::random::{RandomFactory, RandomSource};
pub(crate) use self::reach::{FailsAfter, Unreachable, unreachable};
pub use self::restart_policy::RestartPolicy;
#[cfg(feature = "serde")]
pub use self::serde::duration::UnknownShutdown;
pub(crate) use self::setters::{child_setters, policy_setters};
pub(crate) use self::shutdown::{AbortKind, Shutdown};
pub(crate) use self::start::Readiness;
pub use self::start::{FirstStart, Start, StartCause};
pub use self::strategy::AutoShutdown;
pub(crate) use self::strategy::Strategy;
pub(crate) use self::trigger::{Exceptions, RestartType, RetryAfter};
pub use self::trigger::{OnExit, Trigger};
pub use self::window::Intensity;
pub(crate) use self::window::RestartWindow;
pub use crate::string_enum::UnknownWord;
