//! Serialisation of instants and durations as whole milliseconds.
//!
//! An instant counts from the Unix epoch; an earlier one is zero. The name of each such field ends in
//! `_ms`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Serialize, Serializer};

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

pub(crate) fn since_epoch<S: Serializer>(
    at: &SystemTime,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(millis(at.duration_since(UNIX_EPOCH).unwrap_or_default()))
}

pub(crate) fn optional_since_epoch<S: Serializer>(
    at: &Option<SystemTime>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    at.map(|at| millis(at.duration_since(UNIX_EPOCH).unwrap_or_default())).serialize(serializer)
}

pub(crate) fn duration<S: Serializer>(
    duration: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(millis(*duration))
}

pub(crate) fn optional<S: Serializer>(
    duration: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    duration.map(millis).serialize(serializer)
}

/// An attempt and the delay before it.
pub(crate) fn wait<S: Serializer>(
    wait: &Option<(u32, Duration)>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Wait {
        attempt: u32,
        delay_ms: u64,
    }

    let wait = wait.map(|(attempt, delay)| Wait { attempt, delay_ms: millis(delay) });
    wait.serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_milliseconds_since_the_epoch() {
        #[derive(Serialize)]
        struct At(#[serde(serialize_with = "since_epoch")] SystemTime);

        let json = |at| serde_json::to_value(At(at)).unwrap();
        assert_eq!(json(UNIX_EPOCH + Duration::from_micros(1_500_999)), 1500);
        assert_eq!(json(UNIX_EPOCH - Duration::from_secs(1)), 0);
    }

    #[test]
    fn a_duration_is_milliseconds() {
        #[derive(Serialize)]
        struct For(#[serde(serialize_with = "duration")] Duration);

        let json = |duration| serde_json::to_value(For(duration)).unwrap();
        assert_eq!(json(Duration::from_micros(1_999)), 1);
        assert_eq!(json(Duration::MAX), u64::MAX, "more than fits");
    }
}
