//! How loudly failures are logged, with a level for many in a row or without.

use verger::{FailureLog, LogLevel, Supervisor, SupervisorBuilder, supervisor, worker};

const QUIET: FailureLog = FailureLog::at(LogLevel::Trace);

macro_rules! same {
    ($($log:tt is $value:expr),+ $(,)?) => {$({
        #[worker(failure_log $log)]
        async fn idle() {}

        let by_hand = worker("idle", async |_| {}).failure_log($value);
        assert_eq!(format!("{:?}", idle()), format!("{by_hand:?}"));
    })+};
}

#[supervisor(defaults(failure_log = QUIET))]
struct Quiet {}

fn main() {
    same! {
        (level = "info") is FailureLog::at(LogLevel::Info),
        (critical = "error", after = 3) is FailureLog::default().critical(LogLevel::Error, 3),
        (after = 0, level = LogLevel::Debug, critical = "warn",)
            is FailureLog::at(LogLevel::Debug).critical(LogLevel::Warn, 0),
    }
    let by_hand: SupervisorBuilder =
        Supervisor::builder("quiet").defaults(|child| child.failure_log(QUIET));
    assert_eq!(format!("{:?}", Quiet {}.builder()), format!("{by_hand:?}"));
}
