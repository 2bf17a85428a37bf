//! The rules of supervision, each as a transcript of what a machine did.

mod asking;
mod counts;
mod dynamic;
mod explore;
mod health;
mod ledger;
mod limits;
mod line;
mod mail;
mod otp_scale;
mod own_policy;
mod properties;
mod requests;
mod scenarios;
mod traffic;
mod triggers;
mod waits;

use std::time::Duration;

use super::{ChildRequest, Decision};

/// All that can be asked.
const REQUESTS: [ChildRequest; 8] = [
    ChildRequest::Start,
    ChildRequest::Terminate,
    ChildRequest::RestartStopped,
    ChildRequest::RestartRunning,
    ChildRequest::Kill,
    ChildRequest::Delete,
    ChildRequest::Retry,
    ChildRequest::Wake,
];

#[test]
fn what_has_failed_for_good_is_accounted_for_and_an_end_of_the_program() {
    let told = [
        Decision::Restart { attempt: 1, delay: Duration::ZERO },
        Decision::Leave,
        Decision::EndSupervisor,
        Decision::FallBack,
        Decision::Pause { length: Duration::ZERO },
    ];
    let failed =
        [Decision::GiveUp, Decision::FailSupervisor, Decision::Decline, Decision::Escalate];
    assert!(told.iter().all(|it| !it.fails() && !it.is_accounted_for()));
    assert!(failed.iter().all(|it| it.fails() && it.is_accounted_for()));
    assert!(!Decision::Exit.fails() && Decision::Exit.is_accounted_for());
}
