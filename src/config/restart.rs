//! The key `restart` of a section: a word, or a table with the keys of a restart policy and those of elfo.
//!
//! It knows the values of the table. Which keys exclude each other is checked by `rules`.
//!
//! # Invariants
//!
//! 1. The keys of elfo have the meaning that elfo's documentation gives them.
//! 2. The place of a value is that of the key that sets it, by whatever name.

use serde::Deserialize;

use super::mistake::Mistake;
use super::node::{Node, join};
use crate::human_duration::HumanDuration;
use crate::policy::{
    Backoff, FailingFor, FailureLog, Intensity, Jitter, OnExhausted, OwnRestarts, Places,
    RestartPolicy, RestartType, Trigger, WordOrTable, WordsAndTable,
};
use crate::serde::deserialize;

/// The value of `restart`.
pub(super) enum Restart {
    Word(Trigger),
    Table(Box<RestartTable>),
}

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

impl Restart {
    /// Returns the policy. `node` is the value that was read, and `key` its key.
    pub(super) fn policy(
        self,
        node: &Node,
        key: &str,
        places: &mut Places,
    ) -> Result<RestartPolicy, Mistake> {
        match self {
            Self::Word(trigger) => Ok(RestartPolicy::new().restart(trigger)),
            Self::Table(table) => table.policy(node, key, places),
        }
    }
}

impl RestartTable {
    fn policy(self, node: &Node, key: &str, places: &mut Places) -> Result<RestartPolicy, Mistake> {
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
fn policy_places(node: &Node) -> Places {
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
    WordOrTable::Word(word) => word.parse::<RestartType>().map(|word| Self::Word(word.into())),
    WordOrTable::Table(table) => Ok(Self::Table(Box::new(table))),
});
