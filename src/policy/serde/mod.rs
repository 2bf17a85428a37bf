//! Reading and writing of policies.
//!
//! Deserialising a policy also checks it: a value that is invalid, or that has no effect, is an
//! error that says what to write instead. Code (predicates about errors, custom curves, iterators)
//! is written as its name, and can't be read.

mod backoff;
mod dead_letter_log;
pub(super) mod duration;
pub(crate) mod intensity;
pub(crate) mod one_of;
pub(crate) mod restart_policy;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::time::Duration;

use super::{
    AutoShutdown, Effective, EffectivePolicy, FirstStart, LogLevel, OnExit, OnLeak, PolicySource,
    PolicySources, Preset, Readiness, RestartType, Start, StartCause, Strategy,
};
use crate::human_duration::HumanDuration;
use crate::serde::{deserialize, serialize, words};

words!(AutoShutdown, FirstStart, LogLevel, OnExit, OnLeak, PolicySource, Readiness);
words!(RestartType, Start, StartCause, Strategy);

serialize!(Effective<T: ::serde::Serialize> { value, source });
serialize!(|policy: EffectivePolicy| {
    restart = policy.restart(),
    backoff = policy.backoff(),
    intensity unless Option::is_none = policy.intensity(),
    consecutive_restarts unless Option::is_none = policy.consecutive_restarts(),
    failing_for unless Option::is_none = policy.failing_for().map(human),
    on_exhausted = policy.on_exhausted(),
    failure_log = policy.failure_log(),
});
serialize!(PolicySources {
    restart,
    backoff,
    intensity,
    consecutive_restarts,
    failing_for,
    on_exhausted,
    failure_log,
});

fn human(duration: Effective<Duration>) -> Effective<HumanDuration> {
    Effective { value: HumanDuration(duration.value), source: duration.source }
}

serialize!(|preset: Preset| preset.name());
deserialize!(Preset: |name: Cow<'de, str>| name.parse());
