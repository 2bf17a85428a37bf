//! The serialised forms of durations, in humantime's notation such as `5s` or `1m 30s`, and of `Shutdown`, the text that it
//! displays.
//!
//! The errors of humantime name characters and offsets. The errors here say what to write.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use humantime_serde::re::humantime;
use serde::de::{self, Deserialize, Deserializer, Visitor};

use super::duration;
use crate::human_duration::HumanDuration;
use crate::policy::Shutdown;
use crate::serde::serialize;

/// Parses a duration.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    if is_too_long(text) {
        return Err(format!(
            "`{text}` is too long for a duration; write a shorter one, such as \"30s\""
        ));
    }
    humantime::parse_duration(text).map_err(|_| {
        let number = text.parse::<f64>().is_ok_and(|number| number.is_finite() && number >= 0.0);
        let example = if number { format!("{text}s") } else { "5s".to_owned() };
        format!(
            "`{text}` isn't a duration; write it with a unit, such as \"{example}\" or \"1m 30s\""
        )
    })
}

/// Whether the parts of a duration are too long together. humantime panics for some of these.
fn is_too_long(text: &str) -> bool {
    let (mut rest, mut sum) = (text, Some(Duration::ZERO));
    while !rest.is_empty() {
        // A part ends with its unit.
        let unit = rest.find(char::is_alphabetic).unwrap_or(rest.len());
        let length = rest[unit..].find(|letter: char| !letter.is_alphabetic());
        let (part, next) = rest.split_at(length.map_or(rest.len(), |length| unit + length));
        let part = humantime::parse_duration(part).unwrap_or_default();
        (rest, sum) = (next, sum.and_then(|sum| sum.checked_add(part)));
    }
    sum.is_none()
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

serialize!(|shutdown: Shutdown| shutdown.to_string());

impl FromStr for Shutdown {
    type Err = UnknownShutdown;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "brutal_kill" => Ok(Self::BrutalKill),
            "infinity" => Ok(Self::Infinity),
            _ => {
                let grace = text.strip_prefix("drain ");
                let shutdown = if grace.is_some() { Self::Drain } else { Self::Timeout };
                duration::parse(grace.unwrap_or(text))
                    .map(shutdown)
                    .map_err(|_| UnknownShutdown { text: text.to_owned() })
            }
        }
    }
}

impl<'de> Deserialize<'de> for Shutdown {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "a time with a unit in quotes, such as \"5s\", \"drain 5s\", \"brutal_kill\" or \"infinity\"";
        duration::parsed(deserializer, expected, str::parse)
    }
}

/// A string that can't be parsed as a [`Shutdown`].
///
/// ```
/// use std::time::Duration;
///
/// use verger::Shutdown;
///
/// assert_eq!("1m 30s".parse(), Ok(Shutdown::Timeout(Duration::from_secs(90))));
/// let error = "soon".parse::<Shutdown>().unwrap_err();
/// let advice = "unknown shutdown `soon`; write a time such as `5s`, `drain 5s`, `brutal_kill` or `infinity`";
/// assert_eq!(error.to_string(), advice);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown shutdown `{text}`; write a time such as `5s`, `drain 5s`, `brutal_kill` or `infinity`"
)]
pub struct UnknownShutdown {
    text: String,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_duration_above_the_longest_one_is_a_mistake_and_no_panic() {
        let longest = "18446744073709551615s 999999999ns";
        assert_eq!(parse(longest), Ok(Duration::MAX));
        for text in ["18446744073709551615s 1000000000ns", "18446744073709551615s 1s"] {
            let expected = format!(
                "`{text}` is too long for a duration; write a shorter one, such as \"30s\""
            );
            assert_eq!(parse(text), Err(expected));
        }
    }

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
        fn a_shutdown_that_is_written_can_be_read(duration: Duration) {
            let json = serde_json::to_string(&HumanDuration(duration)).unwrap();
            let same = humantime::format_duration(duration).to_string();
            proptest::prop_assert_eq!(HumanDuration(duration).to_string(), same);
            proptest::prop_assert_eq!(serde_json::from_str::<HumanDuration>(&json).unwrap(), HumanDuration(duration));
        }
    }

    #[test]
    fn what_is_written_can_be_read() {
        for (text, shutdown) in [
            ("brutal_kill", Shutdown::BrutalKill),
            ("infinity", Shutdown::Infinity),
            ("0s", Shutdown::Timeout(Duration::ZERO)),
            ("5s", Shutdown::DEFAULT),
            ("1s 500ms", Shutdown::Timeout(Duration::from_millis(1_500))),
            ("1m 30s", Shutdown::Timeout(Duration::from_secs(90))),
            ("drain 1m 30s", Shutdown::Drain(Duration::from_secs(90))),
        ] {
            assert_eq!(text.parse(), Ok(shutdown));
            let json = serde_json::to_value(shutdown).unwrap();
            assert_eq!(json, text);
            assert_eq!(serde_json::from_value::<Shutdown>(json).unwrap(), shutdown);
        }
        let error = serde_json::from_str::<Shutdown>("\"5\"").unwrap_err().to_string();
        let expected = "unknown shutdown `5`; write a time such as `5s`, `drain 5s`, `brutal_kill` or \
                        `infinity`";
        assert!(error.starts_with(expected), "{error}");
    }
}
