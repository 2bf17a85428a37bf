//! The serialised form of `OnExhausted`: a word, or a table with one key.

use std::time::Duration;

use serde::de::{self, Deserializer, MapAccess};
use serde::{Deserialize, Serialize, Serializer};

use super::duration::HumanDuration;
use super::one_of::{self, OneOf};
use crate::policy::OnExhausted;

impl Serialize for OnExhausted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Escalate => serializer.serialize_str("escalate"),
            Self::Park => serializer.serialize_str("park"),
            Self::StopChild => serializer.serialize_str("stop_child"),
            Self::Remove => serializer.serialize_str("remove"),
            Self::Pause(length) => {
                one_of::serialize_entry(serializer, "pause", &HumanDuration(*length))
            }
            Self::Exit(code) => one_of::serialize_entry(serializer, "exit", code),
        }
    }
}

impl OneOf for OnExhausted {
    const WHAT: &'static str = "answer to a limit";
    const WORDS: &'static [&'static str] =
        &["escalate", "park", "stop_child", "remove", "pause", "exit"];
    const EXPECTED: &'static str =
        "\"escalate\", \"park\", \"stop_child\", \"remove\", { pause = \"15s\" } or { exit = 3 }";
    const EXAMPLES: &'static [(&'static str, &'static str)] =
        &[("pause", "\"15s\""), ("exit", "3")];

    fn from_word(word: &str) -> Option<Self> {
        match word {
            "escalate" => Some(Self::Escalate),
            "park" => Some(Self::Park),
            "stop_child" => Some(Self::StopChild),
            "remove" => Some(Self::Remove),
            _ => None,
        }
    }

    fn from_entry<'de, A: MapAccess<'de>>(
        key: &str,
        map: &mut A,
    ) -> Result<Option<Self>, A::Error> {
        match key {
            "pause" => match map.next_value()? {
                HumanDuration(Duration::ZERO) => Err(de::Error::custom(
                    "the `pause` is zero; write { pause = \"15s\" }, for example",
                )),
                HumanDuration(length) => Ok(Some(Self::Pause(length))),
            },
            "exit" => map.next_value().map(|code| Some(Self::Exit(code))),
            _ => Ok(None),
        }
    }
}

impl<'de> Deserialize<'de> for OnExhausted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        one_of::deserialize(deserializer)
    }
}
