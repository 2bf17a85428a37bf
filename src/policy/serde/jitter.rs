//! The serialised form of `Jitter`: a fraction, a word, or a table with one key.

use serde::de::{Deserializer, MapAccess};
use serde::{Deserialize, Serialize, Serializer};

use super::duration::HumanDuration;
use super::one_of::{self, OneOf};
use crate::policy::Jitter;

impl Serialize for Jitter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => serializer.serialize_str("none"),
            Self::Full => serializer.serialize_str("full"),
            Self::Equal => serializer.serialize_str("equal"),
            Self::Symmetric(fraction) => one_of::serialize_entry(serializer, "symmetric", fraction),
            Self::Additive(fraction) => one_of::serialize_entry(serializer, "additive", fraction),
            Self::AdditiveAbs(most) => {
                one_of::serialize_entry(serializer, "additive_abs", &HumanDuration(*most))
            }
        }
    }
}

impl OneOf for Jitter {
    const WHAT: &'static str = "jitter";
    const WORDS: &'static [&'static str] =
        &["symmetric", "additive", "additive_abs", "none", "full", "equal"];
    const EXPECTED: &'static str = "a jitter: a fraction such as 0.2, `full`, `equal`, `none`, \
                                    or a table with `symmetric`, `additive` or `additive_abs`";
    const EXAMPLES: &'static [(&'static str, &'static str)] =
        &[("additive", "0.2"), ("symmetric", "0.2"), ("additive_abs", "\"1s\"")];

    fn from_word(word: &str) -> Option<Self> {
        match word {
            "none" => Some(Self::None),
            "full" => Some(Self::Full),
            "equal" => Some(Self::Equal),
            _ => None,
        }
    }

    fn from_entry<'de, A: MapAccess<'de>>(
        key: &str,
        map: &mut A,
    ) -> Result<Option<Self>, A::Error> {
        Ok(match key {
            "symmetric" => Some(Self::Symmetric(map.next_value()?)),
            "additive" => Some(Self::Additive(map.next_value()?)),
            "additive_abs" => {
                let HumanDuration(most) = map.next_value()?;
                Some(Self::AdditiveAbs(most))
            }
            _ => None,
        })
    }

    fn from_number(fraction: f64) -> Option<Self> {
        Some(fraction.into())
    }
}

impl<'de> Deserialize<'de> for Jitter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        one_of::deserialize(deserializer)
    }
}
