//! What a snapshot shows of the whole tree.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde::Serialize;

use crate::lifecycle::Lifecycle;
use crate::millis;

/// The program that a tree runs in.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ProgramInfo {
    /// The version of this crate.
    pub verger: &'static str,
    /// The number of the process.
    pub pid: u32,
    /// When the tree was started.
    #[serde(rename = "started_at_ms", serialize_with = "millis::since_epoch")]
    pub started_at: SystemTime,
    /// How long ago the tree was started.
    #[serde(rename = "uptime_ms", serialize_with = "millis::duration")]
    pub uptime: Duration,
}

/// Numbers about a tree.
///
/// The counters never decrease while the tree runs, and count the whole tree, whatever part of it the
/// snapshot is of. A rate, such as restarts a minute, is the difference of two snapshots.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Totals {
    /// How many children are in the snapshot, at all levels, without its root.
    pub children: u32,
    /// How many of those are in each state. States without children are left out.
    pub lifecycle: BTreeMap<Lifecycle, u32>,
    /// How many incarnations were started.
    pub starts: u64,
    /// How many of those were not the first of their child.
    pub restarts: u64,
    /// How many incarnations failed.
    pub failures: u64,
    /// How many [dead letters](crate::dead_letter) there were, suppressed ones included.
    pub dead_letters: u64,
}
