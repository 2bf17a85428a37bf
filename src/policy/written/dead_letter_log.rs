//! How many dead letters are logged: a word for none and for each, a table for some.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::policy::DeadLetterLog;
use crate::policy::dead_letter_log::Logged;
use crate::policy::duration::Human;
use crate::policy::word::UnknownWord;

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
struct Table {
    first: u32,
    pause: Human,
}

impl Default for Table {
    fn default() -> Self {
        Self { first: DeadLetterLog::FIRST, pause: Human(DeadLetterLog::PAUSE) }
    }
}

impl Serialize for DeadLetterLog {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Logged::Off => serializer.serialize_str("off"),
            Logged::Every => serializer.serialize_str("every"),
            Logged::Some { first, pause } => {
                Table { first, pause: Human(pause) }.serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for DeadLetterLog {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = DeadLetterLog;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"off\", \"every\" or a table such as { first = 10, pause = \"5m\" }")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<DeadLetterLog, E> {
                match word {
                    "off" => Ok(DeadLetterLog::off()),
                    "every" => Ok(DeadLetterLog::every()),
                    "first" | "pause" => Err(E::custom(format!(
                        "`{word}` needs a value; write {{ first = 10, pause = \"5m\" }}, for example"
                    ))),
                    _ => {
                        let known = &["off", "every"];
                        Err(E::custom(UnknownWord::new("log of dead letters", word, known)))
                    }
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<DeadLetterLog, A::Error> {
                let table = Table::deserialize(MapAccessDeserializer::new(map))?;
                Ok(DeadLetterLog::default().first(table.first).pause(table.pause.0))
            }
        }

        deserializer.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq, Serialize)]
    struct File {
        log: DeadLetterLog,
    }

    fn read(text: &str) -> Result<DeadLetterLog, String> {
        let file = toml::from_str::<File>(text).map(|file| file.log);
        file.map_err(|error| error.message().to_owned())
    }

    #[test]
    fn it_is_read_as_it_is_written() {
        let default = DeadLetterLog::default();
        let table = [
            ("log = \"off\"\n", DeadLetterLog::off()),
            ("log = \"every\"\n", DeadLetterLog::every()),
            ("[log]\nfirst = 10\npause = \"5m\"\n", default),
            (
                "[log]\nfirst = 4\npause = \"1m 30s\"\n",
                default.first(4).pause(Duration::from_secs(90)),
            ),
        ];
        for (text, log) in table {
            assert_eq!(toml::to_string(&File { log }).unwrap(), text);
            assert_eq!(read(text), Ok(log), "{text}");
        }
        assert_eq!(read("log = { first = 3 }"), Ok(default.first(3)));
        let second = Duration::from_secs(1);
        assert_eq!(read("log = { pause = \"1s\" }"), Ok(default.pause(second)));
        assert_eq!(read("log = {}"), Ok(default));
    }

    #[test]
    fn for_ever_can_be_written_and_read() {
        let log = DeadLetterLog::default().pause(Duration::MAX);
        let text = toml::to_string(&File { log }).unwrap();
        assert_eq!(read(&text), Ok(log), "{text}");
    }

    #[test]
    fn what_can_not_be_read_is_answered_with_what_to_write() {
        let table = [
            ("log = \"on\"", "unknown log of dead letters `on`; write `off` or `every`"),
            (
                "log = \"pause\"",
                "`pause` needs a value; write { first = 10, pause = \"5m\" }, for example",
            ),
            ("log = { limit = 3 }", "unknown field `limit`, expected `first` or `pause`"),
            (
                "log = { pause = 5 }",
                "invalid type: integer `5`, expected a duration with its unit in quotes, such as \
                 \"5s\" or \"1m 30s\"",
            ),
            (
                "log = true",
                "invalid type: boolean `true`, expected \"off\", \"every\" or a table such as \
                 { first = 10, pause = \"5m\" }",
            ),
        ];
        for (text, expected) in table {
            assert_eq!(read(text), Err(expected.to_owned()), "{text}");
        }
    }
}
