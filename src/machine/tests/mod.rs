//! The rules of supervision, each as a transcript of what a machine did.

mod asking;
mod census;
mod dynamic;
mod explore;
mod health;
mod ledger;
mod limits;
mod mail;
mod otp_scale;
mod own_policy;
mod properties;
mod requests;
mod scenarios;
mod traffic;
mod triggers;
mod waits;

use super::{Effect, Request};

/// All that can be asked.
const REQUESTS: [Request; 8] = [
    Request::Start,
    Request::Terminate,
    Request::RestartStopped,
    Request::RestartRunning,
    Request::Kill,
    Request::Delete,
    Request::Retry,
    Request::Wake,
];

#[cfg(target_pointer_width = "64")]
#[test]
fn an_effect_takes_56_bytes() {
    assert_eq!(size_of::<Effect>(), 56);
}
