//! Running supervisors: the loop, the tasks of the children, and what handles reach.
//!
//! | file | what it is |
//! | --- | --- |
//! | `attach` | what a supervisor has beside its machine and its children's tasks: mailboxes, leases, log, … |
//! | `driver` | the future of one supervisor and its loop: wait, ask the machine, apply its effects |
//! | `children` | which task belongs to which child |
//! | `settings` | the values of a configuration, by path |
//! | `shared` | what a supervisor shares with its children, its handles and the supervisors above |
//! | `tree`, `registry` | what all supervisors of a tree share |
//! | `inbox`, `request` | events, calls, and how calls are answered |
//! | `channel` | a broadcast channel, for events and for dead letters |
//! | `dead_letters` | where dead letters go: stores, subscribers, log |
//! | `stop_chain` | children of an ordered stop that cancel each other |
//! | `outcome` | how far a supervisor is, and how it ended |
//! | `blueprint` | a checked supervisor, ready to run |
//! | `log` | one line for each decision |
//! | `watch` | the thread that keeps promises about time while children block worker threads |

mod attach;
pub(crate) mod blueprint;
mod channel;
mod children;
mod dead_letters;
mod driver;
pub(crate) mod inbox;
mod log;
pub(crate) mod log_bounds;
mod outcome;
mod registry;
pub(crate) mod request;
pub(crate) mod settings;
mod shared;
mod stop_chain;
pub(crate) mod tree;
pub(crate) mod watch;

pub(crate) use self::blueprint::{
    Blueprint, Ineffective, RegistrationListener, check_grace, check_restarts,
};
pub(crate) use self::channel::EarlyEvents;
pub(crate) use self::driver::{CHILDREN_PER_REQUEST, supervise};
pub(crate) use self::outcome::{End, SupervisorPhase};
pub(crate) use self::shared::SupervisorShared;
