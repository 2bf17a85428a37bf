//! The serialised form of `RestartPolicy`: a table with a key for each part.

use std::time::Duration;

use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

use super::duration::HumanDuration;
use super::intensity::OwnRestarts;
use crate::policy::{Backoff, FailureLog, Intensity, OnExhausted, RestartPolicy, Trigger};

#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default, expecting = "a table with a restart policy")]
struct PolicyTable {
    #[serde(skip_serializing_if = "Option::is_none")]
    restart: Option<Trigger>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backoff: Option<Backoff>,
    #[serde(skip_serializing_if = "Option::is_none")]
    own_restarts: Option<OwnRestarts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    intensity: Option<Intensity>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unlimited_restarts: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    consecutive_restarts: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failing_for: Option<FailingFor>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_exhausted: Option<OnExhausted>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_log: Option<FailureLog>,
}

/// How long a child may keep failing: a duration above zero.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct FailingFor(pub(crate) HumanDuration);

impl<'de> Deserialize<'de> for FailingFor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match HumanDuration::deserialize(deserializer)? {
            HumanDuration(Duration::ZERO) => Err(de::Error::custom(
                "`failing_for` is zero, so no failure would be followed by a restart; write \
                 failing_for = \"60s\", or consecutive_restarts = 0",
            )),
            max => Ok(Self(max)),
        }
    }
}

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

impl Serialize for RestartPolicy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let limits = self.limits.get();
        let table = PolicyTable {
            restart: self.restart.clone(),
            backoff: self.backoff.clone(),
            own_restarts: limits.intensity.filter(|it| it.slides()).map(OwnRestarts),
            intensity: limits.intensity.filter(|it| !it.slides()),
            unlimited_restarts: limits.unlimited,
            consecutive_restarts: limits.consecutive,
            failing_for: limits.failing_for.map(|max| FailingFor(HumanDuration(max))),
            on_exhausted: self.on_exhausted,
            failure_log: self.failure_log,
        };
        table.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RestartPolicy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        PolicyTable::deserialize(deserializer)?.try_into().map_err(de::Error::custom)
    }
}
