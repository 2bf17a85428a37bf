//! The serialised form of `Shutdown`: the text that it displays.

use std::str::FromStr;

use serde::de::{Deserialize, Deserializer};

use super::duration;
use crate::policy::Shutdown;
use crate::serde::serialize;

serialize!(|shutdown: Shutdown| shutdown.to_string());

impl FromStr for Shutdown {
    type Err = UnknownShutdown;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "brutal_kill" => Ok(Self::BrutalKill),
            "infinity" => Ok(Self::Infinity),
            _ => duration::parse(text)
                .map(Self::Timeout)
                .map_err(|_| UnknownShutdown { text: text.to_owned() }),
        }
    }
}

impl<'de> Deserialize<'de> for Shutdown {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected =
            "a time with a unit in quotes, such as \"5s\", \"brutal_kill\" or \"infinity\"";
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
/// let advice = "unknown shutdown `soon`; write a time such as `5s`, `brutal_kill` or `infinity`";
/// assert_eq!(error.to_string(), advice);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown shutdown `{text}`; write a time such as `5s`, `brutal_kill` or `infinity`")]
pub struct UnknownShutdown {
    text: String,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        for (text, shutdown) in [
            ("brutal_kill", Shutdown::BrutalKill),
            ("infinity", Shutdown::Infinity),
            ("0s", Shutdown::Timeout(Duration::ZERO)),
            ("5s", Shutdown::DEFAULT),
            ("1s 500ms", Shutdown::Timeout(Duration::from_millis(1_500))),
            ("1m 30s", Shutdown::Timeout(Duration::from_secs(90))),
        ] {
            assert_eq!(text.parse(), Ok(shutdown));
            let json = serde_json::to_value(shutdown).unwrap();
            assert_eq!(json, text);
            assert_eq!(serde_json::from_value::<Shutdown>(json).unwrap(), shutdown);
        }
        let error = serde_json::from_str::<Shutdown>("\"5\"").unwrap_err().to_string();
        let expected = "unknown shutdown `5`; write a time such as `5s`, `brutal_kill` or \
                        `infinity`";
        assert!(error.starts_with(expected), "{error}");
    }
}
