//! The serialised form of `RestartPolicy`: a table with a key for each part.

use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

use super::duration::HumanDuration;
use super::intensity::Period;
use crate::policy::{Backoff, FailureLog, Intensity, OnExhausted, RestartPolicy, Trigger};

#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default, expecting = "a table with a restart policy")]
struct PolicyTable {
    #[serde(skip_serializing_if = "Option::is_none")]
    restart: Option<Trigger>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backoff: Option<Backoff>,
    /// With `period`, the short form of a sliding intensity.
    #[serde(skip_serializing)]
    max_restarts: Option<u32>,
    #[serde(skip_serializing)]
    period: Option<Period>,
    #[serde(skip_serializing_if = "Option::is_none")]
    intensity: Option<Intensity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    consecutive_restarts: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failing_for: Option<HumanDuration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_exhausted: Option<OnExhausted>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_log: Option<FailureLog>,
}

impl PolicyTable {
    /// Converts the short form of an intensity.
    fn restarts(&self) -> Result<Option<Intensity>, &'static str> {
        match (self.max_restarts, self.period) {
            (None, None) => Ok(None),
            (Some(_), None) => {
                Err("`max_restarts` needs a `period`; add period = \"60s\", for example")
            }
            (None, Some(_)) => {
                Err("`period` needs `max_restarts`; add max_restarts = 5, for example")
            }
            (Some(_), Some(_)) if self.intensity.is_some() => {
                Err("`max_restarts` and `intensity` set the same limit; remove one of them")
            }
            (Some(_), Some(Period(period))) if period.is_zero() => {
                Err("`period` is zero, so no restart would count; write period = \"60s\"")
            }
            (Some(max), Some(Period(period))) => Ok(Some(Intensity::sliding(max, period))),
        }
    }
}

impl TryFrom<PolicyTable> for RestartPolicy {
    type Error = &'static str;

    fn try_from(table: PolicyTable) -> Result<Self, Self::Error> {
        let restarts = table.restarts()?;
        let mut policy = Self::new();
        policy.restart = table.restart;
        policy.backoff = table.backoff;
        if let Some(intensity) = restarts.or(table.intensity) {
            policy.limits.intensity(intensity);
        }
        if let Some(max) = table.consecutive_restarts {
            policy.limits.consecutive(max);
        }
        if let Some(HumanDuration(max)) = table.failing_for {
            if max.is_zero() {
                return Err(
                    "`failing_for` is zero, so no failure would be followed by a restart; \
                            write failing_for = \"60s\", or consecutive_restarts = 0",
                );
            }
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
            max_restarts: None,
            period: None,
            intensity: limits.intensity,
            consecutive_restarts: limits.consecutive,
            failing_for: limits.failing_for.map(HumanDuration),
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
