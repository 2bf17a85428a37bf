//! What follows when a limit is hit: a word, or a table of one key for what has a value.

use std::fmt;
use std::time::Duration;

use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use crate::policy::OnExhausted;
use crate::policy::duration::Human;
use crate::policy::word::UnknownWord;

const WAYS: &[&str] = &["escalate", "park", "stop_child", "pause", "exit"];

impl Serialize for OnExhausted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = match self {
            Self::Escalate => return serializer.serialize_str("escalate"),
            Self::Park => return serializer.serialize_str("park"),
            Self::StopChild => return serializer.serialize_str("stop_child"),
            Self::Pause(_) | Self::Exit(_) => serializer.serialize_map(Some(1))?,
        };
        match self {
            Self::Pause(length) => map.serialize_entry("pause", &Human(*length))?,
            Self::Exit(code) => map.serialize_entry("exit", code)?,
            Self::Escalate | Self::Park | Self::StopChild => {}
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for OnExhausted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = OnExhausted;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "\"escalate\", \"park\", \"stop_child\", { pause = \"15s\" } or { exit = 3 }",
                )
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<OnExhausted, E> {
                let needs = |key: &str, example: &str| {
                    let table = format!("{{ {key} = {example} }}");
                    E::custom(format!("`{key}` needs a value; write {table}, for example"))
                };
                match word {
                    "escalate" => Ok(OnExhausted::Escalate),
                    "park" => Ok(OnExhausted::Park),
                    "stop_child" => Ok(OnExhausted::StopChild),
                    "pause" => Err(needs("pause", "\"15s\"")),
                    "exit" => Err(needs("exit", "3")),
                    _ => Err(E::custom(UnknownWord::new("answer to a limit", word, WAYS))),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OnExhausted, A::Error> {
                let Some(key) = map.next_key::<String>()? else {
                    let message = "what follows is missing; write { pause = \"15s\" }, for example";
                    return Err(de::Error::custom(message));
                };
                let what = match &*key {
                    "pause" => {
                        let Human(length) = map.next_value()?;
                        OnExhausted::Pause(length)
                    }
                    "exit" => OnExhausted::Exit(map.next_value()?),
                    "escalate" | "park" | "stop_child" => {
                        let message = format!("`{key}` has no value; write \"{key}\" instead");
                        return Err(de::Error::custom(message));
                    }
                    _ => {
                        let unknown = UnknownWord::new("answer to a limit", &key, WAYS);
                        return Err(de::Error::custom(unknown));
                    }
                };
                if let Some(second) = map.next_key::<String>()? {
                    return Err(de::Error::custom(format!(
                        "one thing follows, `{key}` or `{second}`; remove the other"
                    )));
                }
                match what {
                    OnExhausted::Pause(Duration::ZERO) => Err(de::Error::custom(
                        "a pause of zero is none; write { pause = \"15s\" }, for example",
                    )),
                    what => Ok(what),
                }
            }
        }

        deserializer.deserialize_any(Any)
    }
}
