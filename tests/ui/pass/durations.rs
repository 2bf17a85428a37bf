//! Durations are written with units, to the nanosecond.

use std::time::Duration;

use verger::worker;

macro_rules! same {
    ($($text:literal is $duration:expr),+ $(,)?) => {$({
        #[worker(activation_timeout = $text)]
        async fn idle() {}

        let by_builder = worker("idle", async |_| {}).activation_timeout($duration);
        assert_eq!(format!("{:?}", idle()), format!("{by_builder:?}"));
    })+};
}

pub(crate) fn main() {
    same! {
        "1ns" is Duration::from_nanos(1),
        "200ms" is Duration::from_millis(200),
        "1500ms" is Duration::from_millis(1_500),
        "5s" is Duration::from_secs(5),
        "1m 30s" is Duration::from_secs(90),
        "1h2m3s4ms5us6ns" is Duration::new(3_723, 4_005_006),
        "30 days" is Duration::from_secs(30 * 24 * 60 * 60),
    }
}
