//! The serialised forms of `RestartPolicy`, a table with a key for each part, and of `Trigger`, the word of a restart type or
//! a table with exceptions to it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::de::{self, Deserializer, IgnoredAny};
use serde::{Deserialize, Serialize, Serializer};

use super::intensity::OwnRestarts;
use super::one_of::{WordOrTable, WordsAndTable};
use crate::exit::ExitKind;
use crate::human_duration::HumanDuration;
use crate::policy::{
    Backoff, FailureLog, Intensity, OnExhausted, OnExit, RestartPolicy, RestartType, Trigger,
    UnknownWord,
};
use crate::serde::{deserialize, is_default, serialize};

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table with a restart policy")]
struct PolicyTable {
    restart: Option<Trigger>,
    backoff: Option<Backoff>,
    own_restarts: Option<OwnRestarts>,
    intensity: Option<Intensity>,
    unlimited_restarts: bool,
    consecutive_restarts: Option<u32>,
    failing_for: Option<FailingFor>,
    on_exhausted: Option<OnExhausted>,
    failure_log: Option<FailureLog>,
}

/// How long a child may keep failing: a duration above zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FailingFor(pub(crate) HumanDuration);

deserialize!(FailingFor: |max: HumanDuration| match max {
    HumanDuration(Duration::ZERO) => Err(
        "`failing_for` is zero, so no failure would be followed by a restart; write failing_for = \"60s\", or \
         consecutive_restarts = 0",
    ),
    max => Ok(Self(max)),
});

impl TryFrom<PolicyTable> for RestartPolicy {
    type Error = &'static str;

    fn try_from(table: PolicyTable) -> Result<Self, Self::Error> {
        let mut policy = Self::new();
        policy.restart = table.restart;
        policy.backoff = table.backoff;
        let own_restarts = table.own_restarts.map(|OwnRestarts(intensity)| intensity);
        if own_restarts.is_some() && table.intensity.is_some() {
            return Err("`own_restarts` and `intensity` set the same limit; remove one of them");
        }
        if let Some(intensity) = own_restarts.or(table.intensity) {
            if table.unlimited_restarts {
                return Err(
                    "`unlimited_restarts` excludes `own_restarts` and `intensity`; remove one of them",
                );
            }
            policy.limits.intensity(intensity);
        }
        if table.unlimited_restarts {
            policy.limits.unlimited();
        }
        if let Some(max) = table.consecutive_restarts {
            policy.limits.consecutive(max);
        }
        if let Some(FailingFor(HumanDuration(max))) = table.failing_for {
            policy.limits.failing_for(max);
        }
        policy.on_exhausted = table.on_exhausted;
        policy.failure_log = table.failure_log;
        Ok(policy)
    }
}

serialize!(|policy: RestartPolicy| {
    restart unless Option::is_none = policy.restart,
    backoff unless Option::is_none = policy.backoff,
    own_restarts unless Option::is_none = intensity(policy, true).map(OwnRestarts),
    intensity unless Option::is_none = intensity(policy, false),
    unlimited_restarts unless is_default = policy.limits.get().unlimited,
    consecutive_restarts unless Option::is_none = policy.limits.get().consecutive,
    failing_for unless Option::is_none = policy.limits.get().failing_for.map(HumanDuration),
    on_exhausted unless Option::is_none = policy.on_exhausted,
    failure_log unless Option::is_none = policy.failure_log,
});
deserialize!(RestartPolicy: |table: PolicyTable| table.try_into());

/// The limit over time, if its window is a `sliding` one, or if it is another one.
fn intensity(policy: &RestartPolicy, sliding: bool) -> Option<Intensity> {
    policy.limits.get().intensity.filter(|it| it.slides() == sliding)
}

#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
struct TriggerTable {
    #[serde(rename = "type")]
    restart: RestartType,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    activation_only: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    on_exit: BTreeMap<ExitKind, OnExit>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "refuse")]
    on_error: Vec<WrittenPredicate>,
}

/// A predicate about errors, by the name of the error type.
#[derive(Serialize)]
struct WrittenPredicate {
    error: &'static str,
    then: OnExit,
}

impl WordsAndTable for TriggerTable {
    const EXPECTED: &'static str = "a restart type such as \"transient\", or a table such as \
                                    { type = \"transient\", on_exit = { panicked = \
                                    \"fail_supervisor\" } }";
}

fn refuse<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<WrittenPredicate>, D::Error> {
    IgnoredAny::deserialize(deserializer)?;
    Err(de::Error::custom(
        "`on_error` can't be read from a file, because a predicate about errors is code; remove \
         it, and call `Trigger::on_error` where the child is described",
    ))
}

impl Serialize for Trigger {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let of_kind = |&kind| Some((kind, self.exceptions.for_kind(kind)?));
        let table = TriggerTable {
            restart: self.restart,
            activation_only: self.activation_only,
            on_exit: ExitKind::ALL.iter().filter_map(of_kind).collect(),
            on_error: self
                .exceptions
                .by_error()
                .map(|(error, then)| WrittenPredicate { error, then })
                .collect(),
        };
        if !table.activation_only && table.on_exit.is_empty() && table.on_error.is_empty() {
            return table.restart.serialize(serializer);
        }
        table.serialize(serializer)
    }
}

impl TryFrom<WordOrTable<TriggerTable>> for Trigger {
    type Error = UnknownWord;

    fn try_from(written: WordOrTable<TriggerTable>) -> Result<Self, UnknownWord> {
        let table = match written {
            WordOrTable::Word(word) => return word.parse::<RestartType>().map(Self::from),
            WordOrTable::Table(table) => table,
        };
        let mut trigger = Self::from(table.restart);
        trigger.activation_only = table.activation_only;
        let exceptions = table.on_exit.into_iter();
        Ok(exceptions.fold(trigger, |trigger, (kind, then)| trigger.on(kind, then)))
    }
}

deserialize!(Trigger: |written: WordOrTable<TriggerTable>| written.try_into());
