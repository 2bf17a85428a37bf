//! Sections: the values of one path, as layers over the values of the code.
//!
//! It knows the keys of a section and their values. It doesn't know which children exist.
//!
//! # Invariants
//!
//! 1. A value that is refused when a tree is built is a mistake here, too.
//! 2. Each value that has a location has a place, by the name of its field.

use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::de::decode;
use super::keys::keys;
use super::mistake::Mistake;
use super::node::{Node, Value, join};
use super::restart::Restart;
use super::rules;
use crate::human_duration::HumanDuration;
use crate::policy::{
    AutoShutdown, ChildLayer, ForWorkers, Intensity, OnExhausted, OnLeak, Period, Places,
    RestartPolicy, Shutdown, Start, Strategy, SupervisorLayer, WrittenAt,
};
use crate::serde::deserialize;

/// The values of one section.
#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    pub(crate) child: ChildLayer,
    pub(crate) supervisor: SupervisorLayer,
}

/// A section as it is written. `system.restart_policy` is `restart` by now.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table with the values of a section")]
pub(super) struct SectionTable {
    strategy: Option<Strategy>,
    auto_shutdown: Option<AutoShutdown>,
    start: Option<Start>,
    max_restarts: Option<u32>,
    period: Option<Period>,
    intensity: Option<Intensity>,
    unlimited_restarts: Option<bool>,
    count_failed_starts: Option<bool>,
    on_exhausted: Option<OnExhausted>,
    leak_timeout: Option<Positive>,
    stop_deadline: Option<HumanDuration>,
    max_children: Option<usize>,
    min_ready: Option<u32>,
    enabled: Option<bool>,
    restart: Option<Restart>,
    shutdown: Option<Shutdown>,
    activation_timeout: Option<Positive>,
    watchdog: Option<Positive>,
    run_time_limit: Option<Positive>,
    on_leak: Option<OnLeak>,
    #[serde(rename = "config")]
    _config: Option<IgnoredAny>,
}

impl Section {
    /// Reads a section. `path` is its path as it is written, without quotes.
    ///
    /// # Errors
    ///
    /// All mistakes of the section, in no particular order. The child's own section isn't read.
    pub(crate) fn read(merged: &Node, path: &str) -> Result<Self, Vec<Mistake>> {
        let mut node = merged.clone();
        let table = values(&mut node, path);
        let mut mistakes = rules::check(&node, path);
        match table {
            Ok(table) if mistakes.is_empty() => {
                return table.section(&node, path).map_err(|mistake| vec![mistake]);
            }
            Ok(_) => {}
            Err(more) => mistakes.extend(more),
        }
        Err(mistakes)
    }
}

/// Reads each value of a section by itself.
pub(super) fn values(node: &mut Node, path: &str) -> Result<SectionTable, Vec<Mistake>> {
    let mut mistakes = rules::unify(node, path);
    let (of_supervisors, of_children) = keys();
    let known = [of_supervisors, of_children].concat();
    mistakes.extend(rules::take_nested(node, path, &known));
    mistakes.extend(rules::take_shared_limit(node, path));
    unquote(node, &["restart", "backoff", "jitter"]);
    match decode::<SectionTable>(node, &join("", path)) {
        Ok(decoded) if mistakes.is_empty() => Ok(decoded.value),
        Ok(_) => Err(mistakes),
        Err(more) => {
            mistakes.extend(more);
            Err(mistakes)
        }
    }
}

/// Makes a number of a text that is one, for a value that can be of several types.
fn unquote(node: &mut Node, path: &[&str]) {
    let at = path
        .iter()
        .try_fold(node, |node, key| node.table_mut()?.get_mut(*key).map(|entry| &mut entry.node));
    if let Some(node) = at
        && let Value::String(text) = &node.value
        && let Some(number) = text.trim().parse::<f64>().ok().filter(|number| number.is_finite())
    {
        node.value = text.trim().parse().map_or(Value::Float(number), Value::Integer);
    }
}

impl SectionTable {
    fn section(self, node: &Node, path: &str) -> Result<Section, Mistake> {
        let mut places = Places::new();
        let policy = match (self.restart, node.get("restart")) {
            (Some(restart), Some(node)) => {
                restart.policy(node, &join(&join("", path), "restart"), &mut places)?
            }
            _ => RestartPolicy::new(),
        };
        let is_table = node.get("restart").is_some_and(|node| node.table().is_some());
        let (of_supervisors, of_children) = keys();
        let written = of_children.iter();
        let written = written.filter(|key| **key != "config" && (**key != "restart" || !is_table));
        places.extend(written.filter_map(|key| Some((*key, node.place(key)?))));
        let child = ChildLayer {
            for_workers: ForWorkers::default(),
            enabled: self.enabled,
            policy,
            shutdown: self.shutdown,
            activation_timeout: self.activation_timeout.map(|Positive(timeout)| timeout),
            watchdog: self.watchdog.map(|Positive(interval)| interval),
            run_time_limit: self.run_time_limit.map(|Positive(limit)| limit),
            on_leak: self.on_leak,
            places: WrittenAt(places),
        };
        let is_unlimited = self.unlimited_restarts == Some(true);
        let name = |key: &'static str| match key {
            "max_restarts" => Some("intensity"),
            "unlimited_restarts" => is_unlimited.then_some("intensity"),
            "period" => None,
            key => Some(key),
        };
        let place = |key: &&'static str| Some((name(key)?, node.place(key)?));
        let places = of_supervisors.iter().filter_map(place).collect();
        let supervisor = SupervisorLayer {
            strategy: self.strategy,
            auto_shutdown: self.auto_shutdown,
            start: self.start,
            intensity: if is_unlimited {
                Some(None)
            } else {
                intensity(self.max_restarts, self.period, self.intensity).map(Some)
            },
            count_failed_starts: self.count_failed_starts,
            on_exhausted: self.on_exhausted,
            leak_timeout: self.leak_timeout.map(|Positive(timeout)| timeout),
            stop_deadline: self.stop_deadline.map(|HumanDuration(deadline)| deadline),
            max_children: self.max_children,
            min_ready: self.min_ready,
            places: WrittenAt(places),
        };
        Ok(Section { child, supervisor })
    }
}

/// Returns the limit that `max_restarts` and `period` set, or `intensity`.
fn intensity(
    max_restarts: Option<u32>,
    period: Option<Period>,
    intensity: Option<Intensity>,
) -> Option<Intensity> {
    let restarts = max_restarts.zip(period);
    restarts.map(|(max, Period(period))| Intensity::sliding(max, period)).or(intensity)
}

/// A duration above zero.
#[derive(Clone, Copy)]
struct Positive(Duration);

deserialize!(Positive: |duration: HumanDuration| match duration {
    HumanDuration(Duration::ZERO) => {
        Err("the duration is zero; write a longer one, such as \"10s\"")
    }
    HumanDuration(duration) => Ok(Self(duration)),
});
