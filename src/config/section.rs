//! Sections: the values of one path, as layers over the values of the code.
//!
//! It knows the keys of a section and their values. It doesn't know which children exist.
//!
//! # Invariants
//!
//! 1. A value that is refused when a tree is built is a mistake here, too.
//! 2. Each value that has a location has a place, by the name of its field.
//! 3. The keys of elfo have the meaning that elfo's documentation gives them.
//! 4. The place of a value of `restart` is that of the key that sets it, by whatever name.

use std::num::NonZeroUsize;
use std::sync::LazyLock;
use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::de::decode;
use super::mistake::Mistake;
use super::node::{Value, ValueNode, join};
use super::rules;
use crate::human_duration::HumanDuration;
use crate::policy::option_table::OPTIONS;
use crate::policy::serde::intensity::{OwnRestarts, Period};
use crate::policy::serde::one_of::{WordOrTable, WordsAndTable};
use crate::policy::serde::restart_policy::FailingFor;
use crate::policy::{
    AutoShutdown, Backoff, ChildLayer, FailureLog, ForWorkers, Intensity, Jitter, OnExhausted,
    OnLeak, Places, RestartPolicy, RestartType, Shutdown, Start, Strategy, SupervisorLayer,
    Trigger, WrittenAt,
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
    drain: Option<HumanDuration>,
    activation_timeout: Option<Positive>,
    watchdog: Option<Positive>,
    run_time_limit: Option<Positive>,
    on_leak: Option<OnLeak>,
    mailbox: Option<MailboxTable>,
    #[serde(rename = "config")]
    _config: Option<IgnoredAny>,
}

impl Section {
    /// Reads a section. `path` is its path as it is written, without quotes.
    ///
    /// # Errors
    ///
    /// All mistakes of the section, in no particular order. The child's own section isn't read.
    pub(crate) fn read(merged: &ValueNode, path: &str) -> Result<Self, Vec<Mistake>> {
        let mut node = merged.clone();
        let table = values(&mut node, path);
        let mut mistakes = rules::check(&node, path);
        match table.map_err(|more| mistakes.extend(more)) {
            Ok(table) if mistakes.is_empty() => {
                table.section(&node, path).map_err(|mistake| vec![mistake])
            }
            _ => Err(mistakes),
        }
    }
}

/// Reads each value of a section by itself.
pub(super) fn values(node: &mut ValueNode, path: &str) -> Result<SectionTable, Vec<Mistake>> {
    let mut mistakes = rules::unify(node, path);
    let (of_supervisors, of_children) = keys();
    let known = [of_supervisors, of_children].concat();
    mistakes.extend(rules::take_nested(node, path, &known));
    mistakes.extend(rules::take_shared_limit(node, path));
    unquote(node, &["restart", "backoff", "jitter"]);
    let decoded = decode::<SectionTable>(node, &join("", path));
    match decoded.map_err(|more| mistakes.extend(more)) {
        Ok(decoded) if mistakes.is_empty() => Ok(decoded.value),
        _ => Err(mistakes),
    }
}

/// Makes a number of a text that is one, for a value that can be of several types.
fn unquote(node: &mut ValueNode, path: &[&str]) {
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
    fn section(self, node: &ValueNode, path: &str) -> Result<Section, Mistake> {
        let mut places = Places::new();
        let policy = match (self.restart, node.get("restart")) {
            (Some(Restart(table)), Some(node)) => {
                table.policy(node, &join(&join("", path), "restart"), &mut places)?
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
            shutdown: self
                .drain
                .map_or(self.shutdown, |HumanDuration(grace)| Some(Shutdown::Drain(grace))),
            activation_timeout: self.activation_timeout.map(|Positive(timeout)| timeout),
            watchdog: self.watchdog.map(|Positive(interval)| interval),
            run_time_limit: self.run_time_limit.map(|Positive(limit)| limit),
            on_leak: self.on_leak,
            mailbox_capacity: self
                .mailbox
                .map(|MailboxTable { capacity: Capacity(capacity) }| capacity),
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
                let restarts = self.max_restarts.zip(self.period);
                let sliding = restarts.map(|(max, Period(period))| Intensity::sliding(max, period));
                sliding.or(self.intensity).map(Some)
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

/// The value of `mailbox`.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { capacity = 1000 }")]
struct MailboxTable {
    capacity: Capacity,
}

/// How many messages a mailbox has room for.
#[derive(Clone, Copy)]
struct Capacity(NonZeroUsize);

deserialize!(Capacity: |capacity: usize| match NonZeroUsize::new(capacity) {
    None => Err("a mailbox without room takes no message; write at least 1"),
    Some(capacity) => Ok(Self(capacity)),
});

/// A duration above zero.
#[derive(Clone, Copy)]
struct Positive(Duration);

deserialize!(Positive: |duration: HumanDuration| match duration {
    HumanDuration(Duration::ZERO) => {
        Err("the duration is zero; write a longer one, such as \"10s\"")
    }
    HumanDuration(duration) => Ok(Self(duration)),
});

/// The value of `restart`. A word is a table with a restart type.
struct Restart(Box<RestartTable>);

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table with a restart policy")]
pub(super) struct RestartTable {
    #[serde(alias = "restart")]
    when: Option<Trigger>,
    min_backoff: Option<HumanDuration>,
    max_backoff: Option<HumanDuration>,
    factor: Option<f64>,
    max_retries: Option<u32>,
    auto_reset: Option<HumanDuration>,
    backoff: Option<Backoff>,
    own_restarts: Option<OwnRestarts>,
    intensity: Option<Intensity>,
    unlimited_restarts: Option<bool>,
    consecutive_restarts: Option<u32>,
    failing_for: Option<FailingFor>,
    on_exhausted: Option<OnExhausted>,
    failure_log: Option<FailureLog>,
}

impl RestartTable {
    /// Returns the policy. `node` is the value that was read, and `key` its key.
    fn policy(
        self,
        node: &ValueNode,
        key: &str,
        places: &mut Places,
    ) -> Result<RestartPolicy, Mistake> {
        let mut policy = RestartPolicy::new();
        policy.restart = self.when;
        policy.backoff = self.backoff;
        if let (Some(HumanDuration(min)), Some(HumanDuration(max))) =
            (self.min_backoff, self.max_backoff)
        {
            let HumanDuration(reset) = self.auto_reset.unwrap_or(HumanDuration(min));
            let backoff = Backoff::exponential(min, max).factor(self.factor.unwrap_or(2.0));
            // elfo has no jitter.
            let backoff = backoff.jitter(Jitter::None).reset_after(reset).at_once_after_reset();
            let mistake = |name: &str, message: String| {
                let location = node.get(name).and_then(|node| node.location.as_ref());
                Mistake::new(location, join(key, name), message)
            };
            if min.is_zero() {
                let message = "`min_backoff` is zero; write a longer delay, such as \"5s\", or backoff \
                               = { curve = \"none\" } for no delay";
                return Err(mistake("min_backoff", message.to_owned()));
            }
            if max < min {
                let (min, max) = (HumanDuration(min), HumanDuration(max));
                let message = format!(
                    "`max_backoff` is {max}, and `min_backoff` is {min}; write at least {min}"
                );
                return Err(mistake("max_backoff", message));
            }
            // Only the factor is left to be wrong.
            backoff.check().map_err(|_| {
                let factor = self.factor.unwrap_or_default();
                let message = format!(
                    "`factor` is {factor}; write a finite number of at least 1, such as 2.0"
                );
                mistake("factor", message)
            })?;
            policy.backoff = Some(backoff);
        }
        if self.unlimited_restarts == Some(true) {
            policy.limits.unlimited();
        }
        let own_restarts = self.own_restarts.map(|OwnRestarts(intensity)| intensity);
        let intensity = own_restarts.or(self.intensity);
        intensity.into_iter().for_each(|intensity| policy.limits.intensity(intensity));
        let consecutive = self.max_retries.or(self.consecutive_restarts);
        consecutive.into_iter().for_each(|max| policy.limits.consecutive(max));
        let failing_for = self.failing_for.map(|FailingFor(HumanDuration(max))| max);
        failing_for.into_iter().for_each(|max| policy.limits.failing_for(max));
        policy.on_exhausted = self.on_exhausted;
        if self.max_retries.is_some() {
            // elfo leaves an actor down that has used up its retries.
            policy.on_exhausted.get_or_insert(OnExhausted::StopChild);
        }
        policy.failure_log = self.failure_log;
        places.extend(policy_places(node));
        Ok(policy)
    }
}

/// Returns the places of the values of a policy, each by the first of its keys that is written.
fn policy_places(node: &ValueNode) -> Places {
    const KEYS: [(&str, &[&str]); 7] = [
        ("restart", &["when"]),
        ("backoff", &["backoff", "min_backoff"]),
        ("intensity", &["intensity", "own_restarts", "unlimited_restarts"]),
        ("consecutive_restarts", &["consecutive_restarts", "max_retries"]),
        ("failing_for", &["failing_for"]),
        ("on_exhausted", &["on_exhausted", "max_retries"]),
        ("failure_log", &["failure_log"]),
    ];
    let place = |keys: &[&str]| {
        let written = keys.iter().find(|key| node.entry(key).is_some())?;
        node.place(written)
    };
    KEYS.iter().filter_map(|(name, keys)| Some((*name, place(keys)?))).collect()
}

impl WordsAndTable for RestartTable {
    const EXPECTED: &'static str = "a restart type such as \"on_failure\", or a table such as { when = \
                                    \"on_failure\", min_backoff = \"5s\", max_backoff = \"30s\" }";
}

deserialize!(Restart: |written: WordOrTable<RestartTable>| match written {
    WordOrTable::Word(word) => word.parse::<RestartType>().map(|word| {
        Self(Box::new(RestartTable { when: Some(word.into()), ..RestartTable::default() }))
    }),
    WordOrTable::Table(table) => Ok(Self(Box::new(table))),
});

/// The keys that only supervisors have.
static OF_SUPERVISORS: LazyLock<Vec<&str>> = LazyLock::new(|| of(true));
/// The keys of children, which supervisors are as well.
static OF_CHILDREN: LazyLock<Vec<&str>> = LazyLock::new(|| of(false));

/// The keys below `restart`.
pub(super) const OF_RESTART: [&str; 19] = [
    "when",
    "restart",
    "min_backoff",
    "max_backoff",
    "factor",
    "auto_reset",
    "max_retries",
    "backoff",
    "own_restarts",
    "consecutive_restarts",
    "failing_for",
    "failure_log",
    "curve",
    "min",
    "max",
    "delay",
    "jitter",
    "reset_after",
    "attempts",
];

/// Returns the keys of supervisors, and those of children.
pub(crate) fn keys() -> (&'static [&'static str], &'static [&'static str]) {
    (&OF_SUPERVISORS, &OF_CHILDREN)
}

fn of(supervisors: bool) -> Vec<&'static str> {
    let options = OPTIONS.iter().filter(|it| it.of.is_of_supervisor() == supervisors);
    options.map(|option| option.key).collect()
}
