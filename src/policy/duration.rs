//! How durations are written in files: as people write them, such as `5s` or `1m 30s`.
//!
//! The notation is humantime's. What humantime says of a text that is no duration speaks of
//! characters and offsets; here it is what to write instead.

use std::fmt;
use std::time::Duration;

use humantime_serde::re::humantime;
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// A duration that is written like that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Human(pub(crate) Duration);

/// Reads a duration.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| {
        let number = text.parse::<f64>().is_ok_and(|number| number.is_finite() && number >= 0.0);
        let example = if number { format!("{text}s") } else { "5s".to_owned() };
        format!(
            "`{text}` is no duration; write it with its unit, such as \"{example}\" or \"1m 30s\""
        )
    })
}

impl fmt::Display for Human {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

impl Serialize for Human {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Human {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Human;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration with its unit in quotes, such as \"5s\" or \"1m 30s\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Human, E> {
                parse(text).map(Human).map_err(E::custom)
            }
        }

        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_read_as_people_write_it() {
        for (text, millis) in [("5s", 5_000), ("200ms", 200), ("1m 30s", 90_000), ("2h", 7_200_000)]
        {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_answered_with_what_to_write() {
        let table = [
            ("\"5\"", "`5` is no duration; write it with its unit, such as \"5s\" or \"1m 30s\""),
            (
                "\"12\"",
                "`12` is no duration; write it with its unit, such as \"12s\" or \"1m 30s\"",
            ),
            // To write `-5s` would be no help, nor `infs`.
            ("\"-5\"", "`-5` is no duration; write it with its unit, such as \"5s\" or \"1m 30s\""),
            (
                "\"inf\"",
                "`inf` is no duration; write it with its unit, such as \"5s\" or \"1m 30s\"",
            ),
            (
                "\"soon\"",
                "`soon` is no duration; write it with its unit, such as \"5s\" or \"1m 30s\"",
            ),
            (
                "\"-5s\"",
                "`-5s` is no duration; write it with its unit, such as \"5s\" or \"1m 30s\"",
            ),
            (
                "5",
                "invalid type: integer `5`, expected a duration with its unit in quotes, such as \
                 \"5s\" or \"1m 30s\"",
            ),
        ];
        for (json, expected) in table {
            let error = serde_json::from_str::<Human>(json).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_written_is_read(duration: Duration) {
            let json = serde_json::to_string(&Human(duration)).unwrap();
            proptest::prop_assert_eq!(serde_json::from_str::<Human>(&json).unwrap(), Human(duration));
        }
    }
}
