//! The serialised form of `Backoff`: a table with the name of a curve and its parameters.
//!
//! A parameter of a different curve is an error. Custom curves and iterators are written as their
//! names, and can't be read.

use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};

use super::one_of::serialize_entry;
use crate::human_duration::HumanDuration;
use crate::policy::backoff::{Growth, Shape};
use crate::policy::{Backoff, BinarySlots, Jitter, Reset};
use crate::serde::{deserialize, is_default, serialize, words};
use crate::string_enum::string_enum;

/// The curves that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CurveKind {
    None,
    Constant,
    Linear,
    Exponential,
    Geometric,
    Fibonacci,
    BinarySlots,
}

string_enum!(
    CurveKind, "backoff curve":
    None = "none",
    Constant = "constant",
    Linear = "linear",
    Exponential = "exponential",
    Geometric = "geometric",
    Fibonacci = "fibonacci",
    BinarySlots = "binary_slots",
);
words!(CurveKind);

/// The parameters of all curves.
#[derive(Debug, Default, Deserialize)]
#[serde(
    deny_unknown_fields,
    default,
    expecting = "a backoff such as { min = \"200ms\", max = \"30s\" }"
)]
struct BackoffTable {
    curve: Option<CurveKind>,
    delay: Option<HumanDuration>,
    min: Option<HumanDuration>,
    step: Option<HumanDuration>,
    max: Option<HumanDuration>,
    factor: Option<f64>,
    compounding: bool,
    steps: Option<u32>,
    slot: Option<HumanDuration>,
    ceiling: Option<u32>,
    stay_at_ceiling: bool,
    jitter: Option<Jitter>,
    jitter_before_cap: bool,
    cap: Option<HumanDuration>,
    soft_cap: bool,
    hard_floor: bool,
    first_at_once: bool,
    at_once_after_reset: bool,
    reset: Vec<Reset>,
    /// The short form of the most common reset.
    reset_after: Option<HumanDuration>,
}

serialize!(BackoffTable unless is_default {
    curve, delay, min, step, max, factor, compounding, steps, slot, ceiling, stay_at_ceiling, jitter,
    jitter_before_cap, cap, soft_cap, hard_floor, first_at_once, at_once_after_reset, reset;
    reset_after
});

impl BackoffTable {
    /// Lists the keys that only some curves have, and whether they are set.
    fn curve_keys(&self) -> [(&'static str, bool); 10] {
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

    fn shape(&self, kind: CurveKind) -> Result<Shape, String> {
        let needs = |key: &str, value: Option<HumanDuration>| {
            value.map(|HumanDuration(duration)| duration).ok_or_else(|| {
                format!("the curve `{kind}` needs `{key}`; write {key} = \"5s\", for example")
            })
        };
        let growing = |growth: Result<Growth, String>| {
            let (min, max) = (needs("min", self.min)?, needs("max", self.max)?);
            Ok(Shape::Growing { min, max, growth: growth? })
        };
        match kind {
            CurveKind::None => Ok(Shape::Constant(Duration::ZERO)),
            CurveKind::Constant => Ok(Shape::Constant(needs("delay", self.delay)?)),
            CurveKind::Linear => {
                growing(needs("min", self.step.or(self.min)).map(|step| Growth::Linear { step }))
            }
            CurveKind::Exponential => {
                let (factor, compounding) = (self.factor.unwrap_or(2.0), self.compounding);
                growing(Ok(Growth::Exponential { factor, compounding }))
            }
            CurveKind::Geometric => {
                let steps =
                    self.steps.ok_or("the curve `geometric` needs `steps`; write steps = 5");
                growing(steps.map(|steps| Growth::Geometric { steps }).map_err(str::to_owned))
            }
            CurveKind::Fibonacci => growing(Ok(Growth::Fibonacci)),
            CurveKind::BinarySlots => {
                let mut slots = BinarySlots::new(needs("slot", self.slot)?);
                if let Some(ceiling) = self.ceiling {
                    slots = slots.ceiling(ceiling);
                }
                Ok(Shape::Slots(if self.stay_at_ceiling { slots.stay_at_ceiling() } else { slots }))
            }
        }
    }
}

impl CurveKind {
    /// Lists the keys of a curve.
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

impl TryFrom<BackoffTable> for Backoff {
    type Error = String;

    fn try_from(table: BackoffTable) -> Result<Self, String> {
        let kind = table.curve.unwrap_or(CurveKind::Exponential);
        if let Some((key, _)) =
            table.curve_keys().iter().find(|(key, there)| *there && !kind.keys().contains(key))
        {
            let keys = match kind.keys() {
                [] => "nothing".to_owned(),
                keys => format!("`{}`", keys.join("`, `")),
            };
            return Err(format!("the curve `{kind}` has no `{key}`; it takes {keys}"));
        }
        let mut backoff = Self::with(table.shape(kind)?);
        backoff.jitter = table.jitter.unwrap_or(backoff.jitter);
        backoff.jitter_first = table.jitter_before_cap;
        backoff.cap = table.cap.map(|HumanDuration(cap)| cap);
        backoff.soft_cap = table.soft_cap;
        backoff.hard_floor = table.hard_floor;
        backoff.first_at_once = table.first_at_once;
        backoff.at_once_after_reset = table.at_once_after_reset;
        backoff.resets = table.reset;
        if let Some(HumanDuration(active)) = table.reset_after {
            backoff.resets.push(Reset::ActiveFor(active));
        }
        backoff.check().map_err(|problem| problem.to_string())?;
        Ok(backoff)
    }
}

impl Serialize for Backoff {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Curves that have jitter by default are always written with theirs: without one, the file would
        // be read with the default, and a reader of the status would have to know it.
        let may_be_left_out = self.shape.default_jitter() == Jitter::None;
        let mut table = BackoffTable {
            jitter: (self.jitter != Jitter::None || !may_be_left_out).then_some(self.jitter),
            jitter_before_cap: self.jitter_first,
            cap: self.cap.map(HumanDuration),
            soft_cap: self.soft_cap,
            hard_floor: self.hard_floor,
            first_at_once: self.first_at_once,
            at_once_after_reset: self.at_once_after_reset,
            reset: self.resets.clone(),
            ..BackoffTable::default()
        };
        let human = |duration: &Duration| Some(HumanDuration(*duration));
        table.curve = Some(match &self.shape {
            Shape::Constant(Duration::ZERO) => CurveKind::None,
            Shape::Constant(delay) => {
                table.delay = human(delay);
                CurveKind::Constant
            }
            Shape::Growing { min, max, growth } => {
                (table.min, table.max) = (human(min), human(max));
                match growth {
                    Growth::Linear { step } => {
                        table.step = human(step);
                        CurveKind::Linear
                    }
                    Growth::Exponential { factor, compounding } => {
                        (table.factor, table.compounding) = (Some(*factor), *compounding);
                        CurveKind::Exponential
                    }
                    Growth::Geometric { steps } => {
                        table.steps = Some(*steps);
                        CurveKind::Geometric
                    }
                    Growth::Fibonacci => CurveKind::Fibonacci,
                }
            }
            Shape::Slots(slots) => {
                (table.slot, table.ceiling) = (human(&slots.slot_time), Some(slots.ceiling));
                table.stay_at_ceiling = slots.stays;
                CurveKind::BinarySlots
            }
            Shape::Custom(_) | Shape::Iterator(_) => {
                return serialize_entry(serializer, "curve", &self.shape.name());
            }
        });
        table.serialize(serializer)
    }
}

deserialize!(Backoff: |table: BackoffTable| table.try_into());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_written_name_of_a_curve_is_its_displayed_name() {
        let second = Some(HumanDuration(Duration::from_secs(1)));
        for &kind in CurveKind::ALL {
            let table = BackoffTable {
                delay: second,
                min: second,
                max: second,
                steps: Some(1),
                slot: second,
                ..BackoffTable::default()
            };
            assert_eq!(table.shape(kind).unwrap().name(), kind.to_string());
        }
    }
}
