//! The serialised forms of `DeadLetterLog` and `FailureLog`: a word or a table, and a table with one for repeated failures.

use std::convert::Infallible;

use serde::{Deserialize, Serialize, Serializer};

use super::one_of::{WordOrTable, WordsAndTable};
use crate::human_duration::HumanDuration;
use crate::policy::dead_letter_log::Logged;
use crate::policy::failure_log::Critical;
use crate::policy::{DeadLetterLog, FailureLog, LogLevel, UnknownWord};
use crate::serde::{deserialize, serialize};

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
struct ThrottleTable {
    first: u32,
    pause: HumanDuration,
}

impl Default for ThrottleTable {
    fn default() -> Self {
        Self { first: DeadLetterLog::FIRST, pause: HumanDuration(DeadLetterLog::PAUSE) }
    }
}

impl WordsAndTable for ThrottleTable {
    const EXPECTED: &'static str =
        "\"off\", \"every\" or a table such as { first = 10, pause = \"5m\" }";
}

impl Serialize for DeadLetterLog {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Logged::Off => serializer.serialize_str("off"),
            Logged::Every => serializer.serialize_str("every"),
            Logged::Some { first, pause } => {
                ThrottleTable { first, pause: HumanDuration(pause) }.serialize(serializer)
            }
        }
    }
}

impl TryFrom<WordOrTable<ThrottleTable>> for DeadLetterLog {
    type Error = String;

    fn try_from(written: WordOrTable<ThrottleTable>) -> Result<Self, String> {
        let word = match written {
            WordOrTable::Table(table) => {
                return Ok(Self::default().first(table.first).pause(table.pause.0));
            }
            WordOrTable::Word(word) => word,
        };
        match &*word {
            "off" => Ok(Self::off()),
            "every" => Ok(Self::every()),
            "first" | "pause" => Err(format!(
                "`{word}` needs a value; write {{ first = 10, pause = \"5m\" }}, for example"
            )),
            _ => Err(UnknownWord::new("log of dead letters", &word, &["off", "every"]).to_string()),
        }
    }
}

deserialize!(DeadLetterLog: |written: WordOrTable<ThrottleTable>| written.try_into());

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a failure log such as { level = \"info\" }")]
struct FailureLogTable {
    level: LogLevel,
    critical: Option<CriticalTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a level such as { level = \"error\", after = 3 }")]
struct CriticalTable {
    level: LogLevel,
    after: u32,
}

serialize!(FailureLog { level, critical unless Option::is_none });
serialize!(Critical { level, after });
deserialize!(FailureLog: |table: FailureLogTable| {
    let log = Self::at(table.level);
    Ok::<_, Infallible>(table.critical.map_or(log, |it| log.critical(it.level, it.after)))
});

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
    fn what_is_written_can_be_read() {
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
    fn an_endless_pause_can_be_written_and_read() {
        let log = DeadLetterLog::default().pause(Duration::MAX);
        let text = toml::to_string(&File { log }).unwrap();
        assert_eq!(read(&text), Ok(log), "{text}");
    }

    #[test]
    fn errors_say_what_to_write() {
        let table = [
            ("log = \"on\"", "unknown log of dead letters `on`; write `off` or `every`"),
            (
                "log = \"pause\"",
                "`pause` needs a value; write { first = 10, pause = \"5m\" }, for example",
            ),
            ("log = { limit = 3 }", "unknown field `limit`, expected `first` or `pause`"),
            (
                "log = { pause = 5 }",
                "invalid type: integer `5`, expected a duration with a unit in quotes, such as \
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

    #[test]
    fn what_is_written_of_a_failure_log_can_be_read() {
        let log = FailureLog::at(LogLevel::Info).critical(LogLevel::Error, 3);
        let text = "level = \"info\"\n\n[critical]\nlevel = \"error\"\nafter = 3\n";
        assert_eq!(toml::to_string(&log).unwrap(), text);
        assert_eq!(toml::from_str::<FailureLog>(text).unwrap(), log);
    }
}
