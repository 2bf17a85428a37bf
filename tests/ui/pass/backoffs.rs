//! Each curve with its settings and defaults, and expressions for the other curves.

use std::time::Duration;

use verger::policy::Jitter;
use verger::{Backoff, worker};

const SECOND: Duration = Duration::from_secs(1);
const MILLI: Duration = Duration::from_millis(1);
const FRACTION: f64 = 0.1;

macro_rules! same {
    ($($backoff:tt is $value:expr),+ $(,)?) => {$({
        #[worker(backoff $backoff)]
        async fn idle() {}

        let by_builder = worker("idle", async |_| {}).backoff($value);
        assert_eq!(format!("{:?}", idle()), format!("{by_builder:?}"));
    })+};
}

#[worker(backoff = Backoff::fibonacci(SECOND, 13 * SECOND).jitter(Jitter::Equal).cap(5 * SECOND))]
async fn any() {}

pub(crate) fn main() {
    same! {
        (none) is Backoff::none(),
        (constant, delay = "5s") is Backoff::constant(5 * SECOND),
        (constant, delay = "5s", jitter = 1) is Backoff::constant(5 * SECOND).jitter(1.0),
        (exponential) is Backoff::exponential(200 * MILLI, 30 * SECOND),
        (exponential, min = "1s") is Backoff::exponential(SECOND, 30 * SECOND),
        (exponential, max = "1m") is Backoff::exponential(200 * MILLI, 60 * SECOND),
        (exponential, factor = 3) is Backoff::exponential(200 * MILLI, 30 * SECOND).factor(3.0),
        (exponential, max = "9s", factor = 1.5, min = "1s", jitter = FRACTION,)
            is Backoff::exponential(SECOND, 9 * SECOND).factor(1.5).jitter(0.1),
        (linear, base = "2s") is Backoff::linear(2 * SECOND, 2 * SECOND, 30 * SECOND),
        (linear, base = SECOND, max = 9 * SECOND) is Backoff::linear(SECOND, SECOND, 9 * SECOND),
        (linear, base = "1s", jitter = 0.5)
            is Backoff::linear(SECOND, SECOND, 30 * SECOND).jitter(0.5),
        (constant, delay = "5s", jitter = Jitter::Full)
            is Backoff::constant(5 * SECOND).jitter(Jitter::Full),
    }
    let fibonacci = Backoff::fibonacci(SECOND, 13 * SECOND).jitter(Jitter::Equal).cap(5 * SECOND);
    let by_builder = worker("any", async |_| {}).backoff(fibonacci);
    assert_eq!(format!("{:?}", any()), format!("{by_builder:?}"));
}
