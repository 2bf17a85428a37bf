//! Each key of a supervisor is a call of its builder.

use std::time::Duration;

use verger::policy::{AutoShutdown, ChildFailure, FirstStart, OnExhausted, OnLeak, Preset, Start};
use verger::{Backoff, RestartType, Strategy, Supervisor, supervisor};

const SECOND: Duration = Duration::from_secs(1);

#[supervisor(
    strategy = "rest_for_one",
    max_restarts = 7,
    period = "1m 30s",
    count_failed_starts = true,
    auto_shutdown = "all_significant",
    start = "concurrent",
    first_start = "fail",
    on_exhausted = "park",
    on_child_failure = Self::failed,
    leak_timeout = "2s",
    stop_deadline = "30s",
    self_check = false,
    busy_time = true,
    preset = Preset::otp(),
    defaults(
        restart = "transient",
        shutdown = "20s",
        backoff(constant, delay = "3s"),
        activation_timeout = "4s",
        watchdog = "30s",
        run_time_limit = "5m",
        on_leak = "park"
    ),
    name = "root",
    crate = ::verger
)]
struct Everything {}

impl Everything {
    async fn failed(_: ChildFailure) -> bool {
        true
    }
}

#[supervisor(unlimited_restarts, backoff(none))]
struct Unlimited {}

pub(crate) fn main() {
    let by_builder = Supervisor::builder("root")
        .strategy(Strategy::RestForOne)
        .restarts(7, 90 * SECOND)
        .count_failed_starts(true)
        .auto_shutdown(AutoShutdown::AllSignificant)
        .start(Start::Concurrent)
        .first_start(FirstStart::Fail)
        .on_exhausted(OnExhausted::Park)
        .on_child_failure(Everything::failed)
        .leak_timeout(2 * SECOND)
        .stop_deadline(30 * SECOND)
        .self_check(false)
        .busy_time(true)
        .preset(Preset::otp())
        .defaults(|child| {
            child
                .restart(RestartType::Transient)
                .shutdown(20 * SECOND)
                .backoff(Backoff::constant(3 * SECOND))
                .activation_timeout(4 * SECOND)
                .watchdog(30 * SECOND)
                .run_time_limit(300 * SECOND)
                .on_leak(OnLeak::Park)
        });
    assert_eq!(format!("{:?}", Everything {}.builder()), format!("{by_builder:?}"));

    let by_builder = Supervisor::builder("unlimited")
        .unlimited_restarts()
        .defaults(|child| child.backoff(Backoff::none()));
    assert_eq!(format!("{:?}", Unlimited {}.builder()), format!("{by_builder:?}"));
}
