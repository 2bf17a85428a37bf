//! Durations as text, in humantime's notation.

use std::fmt;
use std::time::Duration;

/// A duration in humantime's notation, such as `5s` or `1m 30s`. Its text can be written in a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HumanDuration(pub(crate) Duration);

impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SECOND: u128 = 1_000_000_000;
        const UNITS: [(&str, u128); 9] = [
            ("year", 31_557_600 * SECOND),
            ("month", 2_630_016 * SECOND),
            ("day", 86_400 * SECOND),
            ("h", 3_600 * SECOND),
            ("m", 60 * SECOND),
            ("s", SECOND),
            ("ms", 1_000_000),
            ("us", 1_000),
            ("ns", 1),
        ];

        let mut rest = self.0.as_nanos();
        if rest == 0 {
            return f.write_str("0s");
        }
        let mut space = "";
        for (unit, length) in UNITS {
            let number = rest / length;
            if number > 0 {
                // Only units that are written as words have a plural.
                let plural = if number > 1 && length >= 86_400 * SECOND { "s" } else { "" };
                write!(f, "{space}{number}{unit}{plural}")?;
                space = " ";
            }
            rest %= length;
        }
        Ok(())
    }
}

/// Rounds to three significant digits.
pub(crate) fn rounded(time: Duration) -> Duration {
    let nanos = time.as_nanos();
    let mut unit = 1;
    while nanos / unit >= 1_000 {
        unit *= 10;
    }
    let rounded = (nanos + unit / 2) / unit * unit;
    u64::try_from(rounded).map_or(time, Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_written_with_the_largest_units() {
        let (year, day) = (31_557_600, 86_400);
        for (duration, text) in [
            (Duration::ZERO, "0s"),
            (Duration::from_nanos(1_002_003), "1ms 2us 3ns"),
            (Duration::from_millis(1_500), "1s 500ms"),
            (Duration::from_secs(90), "1m 30s"),
            (Duration::from_secs(7_200), "2h"),
            (Duration::from_secs(year + 2_630_016 + day), "1year 1month 1day"),
            (Duration::from_secs(2 * (year + 2_630_016 + day)), "2years 2months 2days"),
            (Duration::MAX, "584542046090years 7months 15days 17h 5m 3s 999ms 999us 999ns"),
        ] {
            assert_eq!(HumanDuration(duration).to_string(), text);
        }
    }
}
