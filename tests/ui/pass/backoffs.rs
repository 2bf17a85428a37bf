//! Each curve, with what belongs to it and with what it is without.

use std::time::Duration;

use verger::{Backoff, BinarySlots, Jitter, Reset, worker};

const SECOND: Duration = Duration::from_secs(1);
const MILLI: Duration = Duration::from_millis(1);
const FRACTION: f64 = 0.1;
const STEPS: u32 = 3;

macro_rules! same {
    ($($backoff:tt is $value:expr),+ $(,)?) => {$({
        #[worker(backoff $backoff)]
        async fn idle() {}

        let by_hand = worker("idle", async |_| {}).backoff($value);
        assert_eq!(format!("{:?}", idle()), format!("{by_hand:?}"));
    })+};
}

#[worker(backoff = Backoff::default())]
async fn any() {}

fn main() {
    same! {
        (none) is Backoff::none(),
        (constant, delay = "5s") is Backoff::constant(5 * SECOND),
        (constant, delay = "5s", jitter = 1) is Backoff::constant(5 * SECOND).jitter(1.0),
        (exponential) is Backoff::exponential(200 * MILLI, 30 * SECOND),
        (exponential, min = "1s") is Backoff::exponential(SECOND, 30 * SECOND),
        (exponential, max = "1m") is Backoff::exponential(200 * MILLI, 60 * SECOND),
        (exponential, factor = 3) is Backoff::exponential(200 * MILLI, 30 * SECOND).factor(3.0),
        (exponential, max = "9s", factor = 1.5, min = "1s", jitter = FRACTION, reset_after = "1m",)
            is Backoff::exponential(SECOND, 9 * SECOND)
                .factor(1.5)
                .jitter(0.1)
                .reset_after(60 * SECOND),
        (linear, base = "2s") is Backoff::linear(2 * SECOND, 2 * SECOND, 30 * SECOND),
        (linear, base = SECOND, step = SECOND / 2, max = 9 * SECOND)
            is Backoff::linear(SECOND, SECOND / 2, 9 * SECOND),
        (linear, base = "1s", reset_after = "0s", jitter = 0.5)
            is Backoff::linear(SECOND, SECOND, 30 * SECOND).reset_after(Duration::ZERO).jitter(0.5),
        (exponential, compounding, first_at_once, at_once_after_reset)
            is Backoff::exponential(200 * MILLI, 30 * SECOND)
                .compounding()
                .first_at_once()
                .at_once_after_reset(),
        (geometric, steps = 5) is Backoff::geometric(200 * MILLI, 30 * SECOND, 5),
        (geometric, max = "8s", steps = STEPS, min = "1s")
            is Backoff::geometric(SECOND, 8 * SECOND, 3),
        (fibonacci) is Backoff::fibonacci(200 * MILLI, 30 * SECOND),
        (fibonacci, min = SECOND, max = "13s") is Backoff::fibonacci(SECOND, 13 * SECOND),
        (binary_slots, slot = "10ms") is Backoff::binary_slots(BinarySlots::new(10 * MILLI)),
        (binary_slots, jitter = 0.5, stay_at_ceiling, slot = "10ms", cap = "1s", ceiling = 6)
            is Backoff::binary_slots(BinarySlots::new(10 * MILLI).ceiling(6).stay_at_ceiling())
                .jitter(0.5)
                .cap(SECOND),
        (binary_slots, slot = "10ms", ceiling = 1, stay_at_ceiling)
            is Backoff::binary_slots(BinarySlots::new(10 * MILLI).ceiling(1).stay_at_ceiling()),
        (fibonacci, jitter = "none") is Backoff::fibonacci(200 * MILLI, 30 * SECOND),
        (fibonacci, jitter = "full")
            is Backoff::fibonacci(200 * MILLI, 30 * SECOND).jitter(Jitter::Full),
        (fibonacci, jitter = "equal")
            is Backoff::fibonacci(200 * MILLI, 30 * SECOND).jitter(Jitter::Equal),
        (fibonacci, jitter = Jitter::Equal)
            is Backoff::fibonacci(200 * MILLI, 30 * SECOND).jitter(Jitter::Equal),
        (fibonacci, jitter(symmetric = 0.2))
            is Backoff::fibonacci(200 * MILLI, 30 * SECOND).jitter(Jitter::Symmetric(0.2)),
        (fibonacci, jitter(additive = 1))
            is Backoff::fibonacci(200 * MILLI, 30 * SECOND).jitter(1.0),
        (fibonacci, jitter(symmetric = FRACTION),)
            is Backoff::fibonacci(200 * MILLI, 30 * SECOND).jitter(Jitter::Symmetric(0.1)),
        (fibonacci, jitter(additive_abs = "1s",))
            is Backoff::fibonacci(200 * MILLI, 30 * SECOND).jitter(Jitter::AdditiveAbs(SECOND)),
        (constant, delay = "5s", cap = "6s", soft_cap, hard_floor, jitter_before_cap)
            is Backoff::constant(5 * SECOND).cap(6 * SECOND).soft_cap().hard_floor().jitter_before_cap(),
        (fibonacci, reset = "never")
            is Backoff::fibonacci(200 * MILLI, 30 * SECOND).reset(Reset::Never),
        (none, reset = "by_hand") is Backoff::none().reset(Reset::ByHand),
        (none, reset = ["on_ready", "on_ack"], half_life = "30s", reset_after = "1m")
            is Backoff::none()
                .reset(Reset::OnReady)
                .reset(Reset::OnAck)
                .reset(Reset::Decay { half_life: 30 * SECOND })
                .reset_after(60 * SECOND),
    }
    let by_hand = worker("any", async |_| {}).backoff(Backoff::default());
    assert_eq!(format!("{:?}", any()), format!("{by_hand:?}"));
}
