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
