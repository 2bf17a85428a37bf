//! The serialised form of `Reset`: a word, or a table with one key.

use serde::de::{Deserializer, MapAccess};
use serde::{Deserialize, Serialize, Serializer};

use super::duration::HumanDuration;
use super::one_of::{self, OneOf};
use crate::policy::Reset;

impl Serialize for Reset {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Never => serializer.serialize_str("never"),
            Self::Manual => serializer.serialize_str("manual"),
            Self::OnReady => serializer.serialize_str("on_ready"),
            Self::OnAck => serializer.serialize_str("on_ack"),
            Self::ActiveFor(time) => {
                one_of::serialize_entry(serializer, "active_for", &HumanDuration(*time))
            }
            Self::Decay { half_life } => {
                one_of::serialize_entry(serializer, "half_life", &HumanDuration(*half_life))
            }
        }
    }
}

impl OneOf for Reset {
    const WHAT: &'static str = "reset";
    const WORDS: &'static [&'static str] =
        &["never", "manual", "on_ready", "on_ack", "active_for", "half_life"];
    const EXPECTED: &'static str = "`never`, `manual`, `on_ready`, `on_ack`, or a table with \
                                    `active_for` or `half_life`";
    const EXAMPLES: &'static [(&'static str, &'static str)] =
        &[("active_for", "\"60s\""), ("half_life", "\"60s\"")];

    fn from_word(word: &str) -> Option<Self> {
        match word {
            "never" => Some(Self::Never),
            "manual" => Some(Self::Manual),
            "on_ready" => Some(Self::OnReady),
            "on_ack" => Some(Self::OnAck),
            _ => None,
        }
    }

    fn from_entry<'de, A: MapAccess<'de>>(
        key: &str,
        map: &mut A,
    ) -> Result<Option<Self>, A::Error> {
        Ok(match key {
            "active_for" => {
                let HumanDuration(time) = map.next_value()?;
                Some(Self::ActiveFor(time))
            }
            "half_life" => {
                let HumanDuration(half_life) = map.next_value()?;
                Some(Self::Decay { half_life })
            }
            _ => None,
        })
    }
}

impl<'de> Deserialize<'de> for Reset {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        one_of::deserialize(deserializer)
    }
}
