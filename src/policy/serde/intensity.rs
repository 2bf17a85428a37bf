//! The serialised form of `Intensity`: a table with a period or a half-life.

use std::fmt;
use std::time::Duration;

use serde::de::{Deserializer, Visitor};
use serde::{Deserialize, Serialize};

use super::duration;
use crate::human_duration::HumanDuration;
use crate::policy::window::{Intensity, WindowKind};
use crate::serde::{deserialize, serialize, words};
use crate::string_enum::string_enum;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Window {
    Sliding,
    Tumbling,
}

string_enum!(
    Window, "window":
    Sliding = "sliding",
    Tumbling = "tumbling",
);
words!(Window);

/// A period above zero, where `Duration::MAX` is written as `infinity`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Period(pub(crate) Duration);

serialize!(|period: Period| match period.0 {
    Duration::MAX => "infinity".to_owned(),
    period => HumanDuration(period).to_string(),
});

impl<'de> Deserialize<'de> for Period {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "a duration with a unit in quotes, such as \"60s\", or \"infinity\"";
        duration::parsed(deserializer, expected, |text| match text {
            "infinity" => Ok(Self(Duration::MAX)),
            text => match duration::parse(text)? {
                Duration::ZERO => Err(zero("period")),
                period => Ok(Self(period)),
            },
        })
    }
}

/// A maximum: a whole number for windows, any number for a score.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
enum Max {
    Whole(u32),
    Score(f64),
}

impl<'de> Deserialize<'de> for Max {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;

        impl Visitor<'_> for Number {
            type Value = Max;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number without quotes, such as 5")
            }

            fn visit_u64<E>(self, max: u64) -> Result<Max, E> {
                Ok(u32::try_from(max).map_or(Max::Score(max as f64), Max::Whole))
            }

            fn visit_i64<E>(self, max: i64) -> Result<Max, E> {
                Ok(u32::try_from(max).map_or(Max::Score(max as f64), Max::Whole))
            }

            fn visit_f64<E>(self, max: f64) -> Result<Max, E> {
                Ok(Max::Score(max))
            }
        }

        deserializer.deserialize_f64(Number)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an intensity such as { max = 5, period = \"60s\" }")]
struct IntensityTable {
    max: Max,
    period: Option<Period>,
    window: Option<Window>,
    half_life: Option<HumanDuration>,
}

serialize!(IntensityTable {
    max, period unless Option::is_none, window unless Option::is_none, half_life unless Option::is_none,
});

impl TryFrom<IntensityTable> for Intensity {
    type Error = String;

    fn try_from(table: IntensityTable) -> Result<Self, String> {
        let IntensityTable { max, period, window, half_life } = table;
        let intensity = match (period, half_life) {
            (Some(Period(period)), None) => {
                let max = match max {
                    Max::Whole(max) => max,
                    Max::Score(max) => whole(max)?,
                };
                match window.unwrap_or(Window::Sliding) {
                    Window::Sliding => Self::sliding(max, period),
                    Window::Tumbling => Self::tumbling(max, period),
                }
            }
            (None, Some(_)) if window.is_some() => {
                return Err("an intensity with a `half_life` has no `window`; remove it".to_owned());
            }
            (None, Some(HumanDuration(half_life))) => Self::decaying(
                match max {
                    Max::Whole(max) => f64::from(max),
                    Max::Score(max) => max,
                },
                half_life,
            ),
            (Some(_), Some(_)) => {
                let message = "an intensity has a `period` or a `half_life`; remove one of them";
                return Err(message.to_owned());
            }
            (None, None) => {
                let message = "an intensity needs a `period` or a `half_life`; write \
                               { max = 5, period = \"60s\" }, for example";
                return Err(message.to_owned());
            }
        };
        check(intensity)?;
        Ok(intensity)
    }
}

/// The restarts of one child: a sliding window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnRestarts(pub(crate) Intensity);

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, expecting = "restarts such as { max = 12, period = \"5m\" }")]
struct OwnRestartsTable {
    max: Max,
    period: Period,
}

serialize!(|own: OwnRestarts| OwnRestartsTable {
    max: Max::Whole(own.0.max()),
    period: Period(own.0.period()),
});
deserialize!(OwnRestarts: |table: OwnRestartsTable| {
    let OwnRestartsTable { max, period } = table;
    let table = IntensityTable { max, period: Some(period), window: None, half_life: None };
    table.try_into().map(Self)
});

/// Converts the maximum of a window.
fn whole(max: f64) -> Result<u32, String> {
    let restarts = max as u32;
    if f64::from(restarts) == max {
        return Ok(restarts);
    }
    Err(format!(
        "a `period` counts whole restarts, and `max` is {max}; write max = {}, or a `half_life` \
         instead of the `period`",
        restarts.max(1)
    ))
}

fn check(intensity: Intensity) -> Result<(), String> {
    if let Some(max) = intensity.invalid_max() {
        return Err(format!(
            "`max` is {max}, which isn't a valid score; write max = 5.0, for example"
        ));
    }
    // A period that is zero can't be read.
    if intensity.period().is_zero() { Err(zero("half_life")) } else { Ok(()) }
}

fn zero(key: &str) -> String {
    format!("`{key}` is zero, so no restart would count; write {key} = \"60s\"")
}

serialize!(|intensity: Intensity| {
    let table = |max, period| IntensityTable { max, period, window: None, half_life: None };
    match intensity.0 {
        WindowKind::Sliding { max, period } => table(Max::Whole(max), Some(Period(period))),
        WindowKind::Tumbling { max, period } => {
            let window = Some(Window::Tumbling);
            IntensityTable { window, ..table(Max::Whole(max), Some(Period(period))) }
        }
        WindowKind::Decaying { max, half_life } => {
            let half_life = Some(HumanDuration(half_life));
            IntensityTable { half_life, ..table(Max::Score(max), None) }
        }
    }
});
deserialize!(Intensity: |table: IntensityTable| table.try_into());
