//! Verifying the rules: a simulation of the outside world, invariants that are checked at every
//! event, and an exploration of all orders of events.
//!
//! | file | what |
//! | --- | --- |
//! | `simulation` | a supervisor with scripted children and a clock that only tests move |
//! | `invariants` | what must hold at every event, checked against an independent account |
//! | `exploration` | every order of events, from every configuration of a few children |
//! | `properties` | random configurations and scripts |
//! | `fingerprint` | the state of a machine in 128 bits, so that the exploration can merge states |

mod exploration;
mod fingerprint;
mod invariants;
mod properties;
mod recording;
pub(super) mod simulation;

use super::ChildRequest;

/// All requests.
pub(super) const REQUESTS: [ChildRequest; 15] = [
    ChildRequest::StartNew { keep: false },
    ChildRequest::StartNew { keep: true },
    ChildRequest::Terminate,
    ChildRequest::Stop,
    ChildRequest::Remove,
    ChildRequest::RESTART_CHILD,
    ChildRequest::RESTART,
    ChildRequest::Kill,
    ChildRequest::Delete,
    ChildRequest::RESUME,
    ChildRequest::Find { wait: true },
    ChildRequest::Find { wait: false },
    ChildRequest::Reset,
    ChildRequest::Hold,
    ChildRequest::Release,
];
