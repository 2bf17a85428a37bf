//! Every word, synonyms included.

use std::time::Duration;

use verger::policy::{AutoShutdown, FirstStart, OnExhausted, OnLeak, Start};
use verger::{
    Readiness, RestartType, Shutdown, Strategy, Supervisor, SupervisorBuilder, supervisor, worker,
};

/// Asserts that a word makes the same supervisor or worker as the value.
macro_rules! same {
    ($method:ident: $($word:literal is $value:expr),+ => above struct) => {$({
        #[supervisor($method = $word)]
        struct Node {}

        let by_builder: SupervisorBuilder = Supervisor::builder("node").$method($value);
        assert_eq!(format!("{:?}", Node {}.builder()), format!("{by_builder:?}"));
    })+};
    ($method:ident: $($word:literal is $value:expr),+ => above function) => {$({
        #[worker($method = $word)]
        async fn idle() {}

        let by_builder = worker("idle", async |_| {}).$method($value);
        assert_eq!(format!("{:?}", idle()), format!("{by_builder:?}"));
    })+};
}

pub(crate) fn main() {
    same!(strategy:
        "one_for_one" is Strategy::OneForOne,
        "one_for_all" is Strategy::OneForAll,
        "rest_for_one" is Strategy::RestForOne
        => above struct);
    same!(auto_shutdown:
        "never" is AutoShutdown::Never,
        "any_significant" is AutoShutdown::AnySignificant,
        "all_significant" is AutoShutdown::AllSignificant
        => above struct);
    same!(start:
        "sequential" is Start::Sequential,
        "concurrent" is Start::Concurrent
        => above struct);
    same!(first_start: "retry" is FirstStart::Retry, "fail" is FirstStart::Fail => above struct);
    same!(on_exhausted:
        "escalate" is OnExhausted::Escalate,
        "park" is OnExhausted::Park,
        "stop_child" is OnExhausted::StopChild
        => above struct);
    same!(on_exhausted:
        "escalate" is OnExhausted::Escalate,
        "park" is OnExhausted::Park,
        "stop_child" is OnExhausted::StopChild
        => above function);
    same!(restart:
        "permanent" is RestartType::Permanent,
        "transient" is RestartType::Transient,
        "temporary" is RestartType::Temporary,
        "always" is RestartType::Permanent,
        "on_failure" is RestartType::Transient,
        "never" is RestartType::Temporary,
        "no" is RestartType::Temporary,
        "on_stop" is RestartType::OnStop,
        "on_success" is RestartType::OnSuccess,
        "on_abnormal" is RestartType::OnAbnormal,
        "on_abort" is RestartType::OnAbort,
        "on_watchdog" is RestartType::OnWatchdog
        => above function);
    same!(shutdown:
        "brutal_kill" is Shutdown::BrutalKill,
        "infinity" is Shutdown::Infinity,
        "0s" is Duration::ZERO
        => above function);
    same!(readiness:
        "on_start" is Readiness::OnStart,
        "signal" is Readiness::Signal
        => above function);
    same!(on_leak: "restart" is OnLeak::Restart, "park" is OnLeak::Park => above function);
}
