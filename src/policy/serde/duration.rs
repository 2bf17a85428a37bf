//! The serialised form of durations: humantime's notation, such as `5s` or `1m 30s`.
//!
//! The errors of humantime name characters and offsets. The errors here say what to write.

use std::fmt;
use std::time::Duration;

use humantime_serde::re::humantime;
use serde::de::{self, Deserialize, Deserializer, Visitor};

use crate::human_duration::HumanDuration;
use crate::serde::serialize;

/// Parses a duration.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| {
        let number = text.parse::<f64>().is_ok_and(|number| number.is_finite() && number >= 0.0);
        let example = if number { format!("{text}s") } else { "5s".to_owned() };
        format!(
            "`{text}` isn't a duration; write it with a unit, such as \"{example}\" or \"1m 30s\""
        )
    })
}

serialize!(|duration: HumanDuration| duration.to_string());

impl<'de> Deserialize<'de> for HumanDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "a duration with a unit in quotes, such as \"5s\" or \"1m 30s\"";
        parsed(deserializer, expected, parse).map(Self)
    }
}

/// Reads and parses a text. `expected` describes it, for values that are no text.
pub(super) fn parsed<'de, D: Deserializer<'de>, T, P: fmt::Display>(
    deserializer: D,
    expected: &str,
    parse: impl FnOnce(&str) -> Result<T, P>,
) -> Result<T, D::Error> {
    struct Text<'a, F>(&'a str, F);

    impl<T, P: fmt::Display, F: FnOnce(&str) -> Result<T, P>> Visitor<'_> for Text<'_, F> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
            (self.1)(text).map_err(E::custom)
        }
    }

    deserializer.deserialize_str(Text(expected, parse))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_parsed_with_units() {
        for (text, millis) in [("5s", 5_000), ("200ms", 200), ("1m 30s", 90_000), ("2h", 7_200_000)]
        {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn errors_say_what_to_write() {
        let table = [
            ("\"5\"", "`5` isn't a duration; write it with a unit, such as \"5s\" or \"1m 30s\""),
            (
                "\"12\"",
                "`12` isn't a duration; write it with a unit, such as \"12s\" or \"1m 30s\"",
            ),
            // `-5s` and `infs` are no valid suggestions.
            ("\"-5\"", "`-5` isn't a duration; write it with a unit, such as \"5s\" or \"1m 30s\""),
            (
                "\"inf\"",
                "`inf` isn't a duration; write it with a unit, such as \"5s\" or \"1m 30s\"",
            ),
            (
                "\"soon\"",
                "`soon` isn't a duration; write it with a unit, such as \"5s\" or \"1m 30s\"",
            ),
            (
                "\"-5s\"",
                "`-5s` isn't a duration; write it with a unit, such as \"5s\" or \"1m 30s\"",
            ),
            (
                "5",
                "invalid type: integer `5`, expected a duration with a unit in quotes, such as \
                 \"5s\" or \"1m 30s\"",
            ),
        ];
        for (json, expected) in table {
            let error = serde_json::from_str::<HumanDuration>(json).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    proptest::proptest! {
        #![proptest_config(crate::random_cases::cases(64))]

        #[test]
        fn what_is_written_can_be_read(duration: Duration) {
            let json = serde_json::to_string(&HumanDuration(duration)).unwrap();
            let same = humantime::format_duration(duration).to_string();
            proptest::prop_assert_eq!(HumanDuration(duration).to_string(), same);
            proptest::prop_assert_eq!(serde_json::from_str::<HumanDuration>(&json).unwrap(), HumanDuration(duration));
        }
    }
}
