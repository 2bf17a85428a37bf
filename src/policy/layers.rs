//! Values that replace those of the code: from a configuration file, or from a call.
//!
//! A layer knows the values and where each was written. It knows neither files nor trees.
//!
//! # Invariants
//!
//! 1. A value that a layer doesn't set is the one beneath it: file over code, call over file.
//! 2. Two layers are equal if their values are, wherever those were written.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{
    AutoShutdown, Intensity, OnExhausted, OnLeak, RestartPolicy, Shutdown, Start, Strategy,
};

/// Where values were written, such as `feed.toml:12`, by the name of the setting.
pub(crate) type Places = BTreeMap<&'static str, Arc<str>>;

/// The values of one child.
#[derive(Clone, Debug, Default)]
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
    pub(crate) places: Places,
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
#[derive(Clone, Debug, Default)]
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
    pub(crate) places: Places,
}

impl PartialEq for ChildLayer {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            for_workers,
            enabled,
            policy,
            shutdown,
            activation_timeout,
            watchdog,
            run_time_limit,
            on_leak,
            places: _,
        } = self;
        *for_workers == other.for_workers
            && *enabled == other.enabled
            && *policy == other.policy
            && *shutdown == other.shutdown
            && *activation_timeout == other.activation_timeout
            && *watchdog == other.watchdog
            && *run_time_limit == other.run_time_limit
            && *on_leak == other.on_leak
    }
}

impl PartialEq for SupervisorLayer {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            strategy,
            auto_shutdown,
            start,
            intensity,
            count_failed_starts,
            on_exhausted,
            leak_timeout,
            stop_deadline,
            max_children,
            places: _,
        } = self;
        *strategy == other.strategy
            && *auto_shutdown == other.auto_shutdown
            && *start == other.start
            && *intensity == other.intensity
            && *count_failed_starts == other.count_failed_starts
            && *on_exhausted == other.on_exhausted
            && *leak_timeout == other.leak_timeout
            && *stop_deadline == other.stop_deadline
            && *max_children == other.max_children
    }
}
