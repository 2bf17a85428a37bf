//! The rules of supervision, each as a transcript of what a machine did.

mod callback;
mod conditions;
mod configure;
mod counts;
mod delivery;
mod dynamic;
mod health;
mod history;
mod hold;
mod leases;
mod limits;
mod messages;
mod otp_scale;
mod overrides;
mod requests;
mod run_time;
mod scenarios;
mod stop_chain;
mod triggers;
mod waits;
mod watchdog;

use std::time::Duration;

use crate::core::{Decision, ExceededLimit};
use crate::policy::{OnExhausted, PolicySource};

#[test]
fn what_has_failed_for_good_is_accounted_for_and_an_end_of_the_program() {
    let handled = [
        Decision::Restart { attempt: 1, delay: Duration::ZERO },
        Decision::Leave,
        Decision::EndSupervisor,
        Decision::FallBack,
        Decision::Pause { length: Duration::ZERO },
    ];
    let failed = [
        Decision::GiveUp {
            limit: ExceededLimit::Consecutive { max: 0, restarts: 0 },
            source: PolicySource::Default,
            failing: Duration::ZERO,
            then: OnExhausted::Escalate,
        },
        Decision::FailStart,
        Decision::FailSupervisor,
        Decision::Decline,
        Decision::Escalate,
    ];
    assert!(handled.iter().all(|it| !it.fails() && !it.gives_up()));
    assert!(failed.iter().all(|it| it.fails() && it.gives_up()));
    assert!(!Decision::Exit.fails() && Decision::Exit.gives_up());
}
