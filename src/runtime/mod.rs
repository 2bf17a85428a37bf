//! Running supervisors: the loop, the tasks of the children, and what handles reach.
//!
//! | file | what it is |
//! | --- | --- |
//! | `attach` | what a supervisor has beside its machine and its children's tasks: mailboxes, leases, log, … |
//! | `driver` | the loop of one supervisor: wait, ask the machine, apply its effects |
//! | `task` | the future of one supervisor, which announces how it ended |
//! | `children` | which task belongs to which child |
//! | `settings` | the values of a configuration, by path |
//! | `shared` | what a supervisor shares with its children, its handles and the supervisors above |
//! | `tree`, `registry`, `leaks` | what all supervisors of a tree share |
//! | `inbox`, `request` | events, calls, and how calls are answered |
//! | `channel` | a broadcast channel, for events and for dead letters |
//! | `dead_letters` | where dead letters go: stores, subscribers, log |
//! | `stop_chain` | children of an ordered stop that cancel each other |
//! | `phase`, `outcome` | how far a supervisor is, and how it ended |
//! | `blueprint` | a checked supervisor, ready to run |
//! | `log` | one line for each decision |

mod attach;
pub(crate) mod blueprint;
mod channel;
mod children;
mod counters;
mod dead_letters;
mod driver;
mod early_events;
pub(crate) mod inbox;
mod leaks;
mod log;
pub(crate) mod log_bounds;
mod outcome;
pub(crate) mod phase;
mod registry;
pub(crate) mod request;
pub(crate) mod settings;
mod shared;
mod stop_chain;
mod task;
pub(crate) mod tree;

pub(crate) use self::blueprint::{Blueprint, Ineffective, Registration};
pub(crate) use self::blueprint::{check_grace, check_restarts};
pub(crate) use self::driver::CHILDREN_PER_REQUEST;
pub(crate) use self::early_events::EarlyEvents;
pub(crate) use self::outcome::End;
pub(crate) use self::shared::SupervisorShared;
pub(crate) use self::task::supervise;
