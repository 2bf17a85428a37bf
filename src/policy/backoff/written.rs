//! How a backoff is written in a file.
//!
//! A table with the curve's name and what the curve needs. What doesn't belong to that curve is an
//! error, and so are values without a meaning: whoever reads a [`Backoff`] has one that can work.
//! Curves of one's own and iterators are code, and can't be read.

use std::fmt;
use std::time::Duration;

use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::curve::Shape;
use super::{Backoff, BinarySlots, Jitter, Reset};
use crate::policy::duration::Human;
use crate::policy::word::{UnknownWord, words};

/// The curves that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    None,
    Constant,
    Linear,
    Exponential,
    Geometric,
    Fibonacci,
    BinarySlots,
}

words!(
    Kind, "backoff curve":
    None = "none",
    Constant = "constant",
    Linear = "linear",
    Exponential = "exponential",
    Geometric = "geometric",
    Fibonacci = "fibonacci",
    BinarySlots = "binary_slots",
);

/// A backoff as it is written, all that it may say.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
struct Written {
    #[serde(skip_serializing_if = "Option::is_none")]
    curve: Option<Kind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay: Option<Human>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min: Option<Human>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<Human>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<Human>,
    #[serde(skip_serializing_if = "Option::is_none")]
    factor: Option<f64>,
    #[serde(skip_serializing_if = "is_false")]
    compounding: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slot: Option<Human>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ceiling: Option<u32>,
    #[serde(skip_serializing_if = "is_false")]
    stay_at_ceiling: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    jitter: Option<Jitter>,
    #[serde(skip_serializing_if = "is_false")]
    jitter_before_cap: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cap: Option<Human>,
    #[serde(skip_serializing_if = "is_false")]
    soft_cap: bool,
    #[serde(skip_serializing_if = "is_false")]
    hard_floor: bool,
    #[serde(skip_serializing_if = "is_false")]
    first_at_once: bool,
    #[serde(skip_serializing_if = "is_false")]
    at_once_after_reset: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reset: Vec<Reset>,
    /// Short for the most common reset.
    #[serde(skip_serializing)]
    reset_after: Option<Human>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl Written {
    /// The keys that only some curves have, and whether they are there.
    fn parts(&self) -> [(&'static str, bool); 10] {
        [
            ("delay", self.delay.is_some()),
            ("min", self.min.is_some()),
            ("step", self.step.is_some()),
            ("max", self.max.is_some()),
            ("factor", self.factor.is_some()),
            ("compounding", self.compounding),
            ("steps", self.steps.is_some()),
            ("slot", self.slot.is_some()),
            ("ceiling", self.ceiling.is_some()),
            ("stay_at_ceiling", self.stay_at_ceiling),
        ]
    }

    fn shape(&self, kind: Kind) -> Result<Shape, String> {
        let needs = |key: &str, value: Option<Human>| {
            value.map(|Human(duration)| duration).ok_or_else(|| {
                format!("the curve `{kind}` needs `{key}`; write {key} = \"5s\", for example")
            })
        };
        Ok(match kind {
            Kind::None => Shape::Constant(Duration::ZERO),
            Kind::Constant => Shape::Constant(needs("delay", self.delay)?),
            Kind::Linear => {
                let min = needs("min", self.min)?;
                let step = self.step.map_or(min, |Human(step)| step);
                Shape::Linear { min, step, max: needs("max", self.max)? }
            }
            Kind::Exponential => Shape::Exponential {
                min: needs("min", self.min)?,
                factor: self.factor.unwrap_or(2.0),
                max: needs("max", self.max)?,
                compounding: self.compounding,
            },
            Kind::Geometric => Shape::Geometric {
                min: needs("min", self.min)?,
                steps: self.steps.ok_or("the curve `geometric` needs `steps`; write steps = 5")?,
                max: needs("max", self.max)?,
            },
            Kind::Fibonacci => {
                Shape::Fibonacci { min: needs("min", self.min)?, max: needs("max", self.max)? }
            }
            Kind::BinarySlots => {
                let mut slots = BinarySlots::new(needs("slot", self.slot)?);
                if let Some(ceiling) = self.ceiling {
                    slots = slots.ceiling(ceiling);
                }
                Shape::Slots(if self.stay_at_ceiling { slots.stay_at_ceiling() } else { slots })
            }
        })
    }
}

impl Kind {
    /// What a curve can be told.
    fn keys(self) -> &'static [&'static str] {
        match self {
            Self::None => &[],
            Self::Constant => &["delay"],
            Self::Linear => &["min", "step", "max"],
            Self::Exponential => &["min", "max", "factor", "compounding"],
            Self::Geometric => &["min", "max", "steps"],
            Self::Fibonacci => &["min", "max"],
            Self::BinarySlots => &["slot", "ceiling", "stay_at_ceiling"],
        }
    }
}

impl TryFrom<Written> for Backoff {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let kind = written.curve.unwrap_or(Kind::Exponential);
        if let Some((key, _)) =
            written.parts().iter().find(|(key, there)| *there && !kind.keys().contains(key))
        {
            let keys = match kind.keys() {
                [] => "nothing".to_owned(),
                keys => format!("`{}`", keys.join("`, `")),
            };
            return Err(format!("the curve `{kind}` has no `{key}`; it takes {keys}"));
        }
        let mut backoff = Self::with(written.shape(kind)?);
        backoff.jitter = written.jitter.unwrap_or_default();
        backoff.jitter_first = written.jitter_before_cap;
        backoff.cap = written.cap.map(|Human(cap)| cap);
        backoff.soft_cap = written.soft_cap;
        backoff.hard_floor = written.hard_floor;
        backoff.first_at_once = written.first_at_once;
        backoff.at_once_after_reset = written.at_once_after_reset;
        backoff.resets = written.reset;
        if let Some(Human(active)) = written.reset_after {
            backoff.resets.push(Reset::ActiveFor(active));
        }
        backoff.check().map_err(|problem| problem.to_string())?;
        Ok(backoff)
    }
}

/// As it is read. A curve of one's own and an iterator have a name only, and can't be read.
impl Serialize for Backoff {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut written = Written {
            jitter: (self.jitter != Jitter::None).then_some(self.jitter),
            jitter_before_cap: self.jitter_first,
            cap: self.cap.map(Human),
            soft_cap: self.soft_cap,
            hard_floor: self.hard_floor,
            first_at_once: self.first_at_once,
            at_once_after_reset: self.at_once_after_reset,
            reset: self.resets.clone(),
            ..Written::default()
        };
        written.curve = match &self.shape {
            Shape::Constant(delay) => {
                written.delay = (!delay.is_zero()).then_some(Human(*delay));
                Some(if delay.is_zero() { Kind::None } else { Kind::Constant })
            }
            Shape::Linear { min, step, max } => {
                (written.min, written.max) = (Some(Human(*min)), Some(Human(*max)));
                written.step = Some(Human(*step));
                Some(Kind::Linear)
            }
            Shape::Exponential { min, factor, max, compounding } => {
                (written.min, written.max) = (Some(Human(*min)), Some(Human(*max)));
                (written.factor, written.compounding) = (Some(*factor), *compounding);
                Some(Kind::Exponential)
            }
            Shape::Geometric { min, steps, max } => {
                (written.min, written.max) = (Some(Human(*min)), Some(Human(*max)));
                written.steps = Some(*steps);
                Some(Kind::Geometric)
            }
            Shape::Fibonacci { min, max } => {
                (written.min, written.max) = (Some(Human(*min)), Some(Human(*max)));
                Some(Kind::Fibonacci)
            }
            Shape::Slots(slots) => {
                let (slot, ceiling, stays) = slots.settings();
                (written.slot, written.ceiling) = (Some(Human(slot)), Some(ceiling));
                written.stay_at_ceiling = stays;
                Some(Kind::BinarySlots)
            }
            Shape::Custom(_) | Shape::Iterator(_) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("curve", self.shape.name())?;
                return map.end();
            }
        };
        written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Backoff {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Written::deserialize(deserializer)?.try_into().map_err(de::Error::custom)
    }
}

/// The kinds of jitter that are written as a table of one key.
const JITTERS: &[&str] = &["symmetric", "additive", "additive_abs", "none", "full", "equal"];

/// A word for the kinds that need nothing, a table of one key for the others.
impl Serialize for Jitter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let word = match self {
            Self::None => "none",
            Self::Full => "full",
            Self::Equal => "equal",
            Self::Symmetric(fraction) => return one(serializer, "symmetric", fraction),
            Self::Additive(fraction) => return one(serializer, "additive", fraction),
            Self::AdditiveAbs(most) => return one(serializer, "additive_abs", &Human(*most)),
        };
        serializer.serialize_str(word)
    }
}

fn one<S: Serializer>(
    serializer: S,
    key: &'static str,
    value: &impl Serialize,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry(key, value)?;
    map.end()
}

impl<'de> Deserialize<'de> for Jitter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = Jitter;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a jitter: a fraction such as 0.2, `full`, `equal`, `none`, or a table \
                     with `symmetric`, `additive` or `additive_abs`",
                )
            }

            fn visit_f64<E>(self, fraction: f64) -> Result<Jitter, E> {
                Ok(fraction.into())
            }

            fn visit_i64<E>(self, fraction: i64) -> Result<Jitter, E> {
                Ok((fraction as f64).into())
            }

            fn visit_u64<E>(self, fraction: u64) -> Result<Jitter, E> {
                Ok((fraction as f64).into())
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<Jitter, E> {
                match word {
                    "none" => Ok(Jitter::None),
                    "full" => Ok(Jitter::Full),
                    "equal" => Ok(Jitter::Equal),
                    _ => Err(E::custom(UnknownWord::new("jitter", word, JITTERS))),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Jitter, A::Error> {
                let Some(key) = map.next_key::<String>()? else {
                    return Err(de::Error::custom("a jitter is missing; write 0.2, for example"));
                };
                let jitter = match &*key {
                    "symmetric" => Jitter::Symmetric(map.next_value()?),
                    "additive" => Jitter::Additive(map.next_value()?),
                    "additive_abs" => {
                        let Human(most) = map.next_value()?;
                        Jitter::AdditiveAbs(most)
                    }
                    _ => {
                        return Err(de::Error::custom(UnknownWord::new("jitter", &key, JITTERS)));
                    }
                };
                match map.next_key::<String>()? {
                    None => Ok(jitter),
                    Some(second) => Err(de::Error::custom(format!(
                        "a jitter is one of `{key}` and `{second}`; remove the other"
                    ))),
                }
            }
        }

        deserializer.deserialize_any(Any)
    }
}

const RESETS: &[&str] = &["never", "by_hand", "on_ready", "on_ack", "active_for", "half_life"];

/// A word for the rules that need nothing, a table of one key for the others.
impl Serialize for Reset {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let word = match self {
            Self::Never => "never",
            Self::ByHand => "by_hand",
            Self::OnReady => "on_ready",
            Self::OnAck => "on_ack",
            Self::ActiveFor(life) => return one(serializer, "active_for", &Human(*life)),
            Self::Decay { half_life } => return one(serializer, "half_life", &Human(*half_life)),
        };
        serializer.serialize_str(word)
    }
}

impl<'de> Deserialize<'de> for Reset {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = Reset;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "`never`, `by_hand`, `on_ready`, `on_ack`, or a table with \
                     `active_for` or `half_life`",
                )
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<Reset, E> {
                match word {
                    "never" => Ok(Reset::Never),
                    "by_hand" => Ok(Reset::ByHand),
                    "on_ready" => Ok(Reset::OnReady),
                    "on_ack" => Ok(Reset::OnAck),
                    _ => Err(E::custom(UnknownWord::new("reset", word, RESETS))),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Reset, A::Error> {
                let Some((key, Human(time))) = map.next_entry::<String, Human>()? else {
                    let message = "a rule is missing; write `active_for = \"60s\"`, for example";
                    return Err(de::Error::custom(message));
                };
                let reset = match &*key {
                    "active_for" => Reset::ActiveFor(time),
                    "half_life" => Reset::Decay { half_life: time },
                    _ => return Err(de::Error::custom(UnknownWord::new("reset", &key, RESETS))),
                };
                match map.next_key::<String>()? {
                    None => Ok(reset),
                    Some(_) => Err(de::Error::custom(
                        "each rule is a table of its own: reset = [{ … }, { … }]",
                    )),
                }
            }
        }

        deserializer.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_has_the_same_name_in_a_file_as_where_it_is_shown() {
        let second = Some(Human(Duration::from_secs(1)));
        for &kind in Kind::ALL {
            let written = Written {
                delay: second,
                min: second,
                max: second,
                steps: Some(1),
                slot: second,
                ..Written::default()
            };
            assert_eq!(written.shape(kind).unwrap().name(), kind.to_string());
        }
    }
}
