//! Children: what a supervisor runs.
//!
//! | file | what it is |
//! | --- | --- |
//! | `identity` | what all incarnations of a child have in common |
//! | `incarnation`, `cell` | what a child's task, its contexts and its supervisor share |
//! | `context`, `cancelled`, `waiting`, `own_policy` | what a child is given |
//! | `child_trait`, `component`, `workers`, `value` | children made from functions and values |
//! | `blocking`, `local`, `own_thread`, `clock_hold`, `busy` | children that have a thread of their own |
//! | `adopt` | children that are tasks which were spawned elsewhere |
//! | `helper`, `helpers`, `blocking_helper`, `closures` | tasks and closures that a child spawns, and that end with its incarnation |
//! | `task`, `span`, `message_span`, `spawn`, `polls` | the task of one incarnation, and which one is being polled |
//! | `spec`, `options`, `defaults`, `health` | how incarnations are made, and how a child is supervised |
//! | `check`, `mailbox_owners`, `graces` | whether a spec is valid, and how long it may take to stop |
//! | `resolve` | how a nested spec becomes runnable |

mod adopt;
mod blocking;
mod blocking_helper;
mod busy;
mod cancelled;
mod cell;
mod check;
mod child_trait;
mod clock_hold;
pub(crate) mod closures;
mod component;
mod config_spec;
mod context;
mod defaults;
mod fencing_token;
mod graces;
#[cfg(feature = "service")]
pub(crate) mod guards;
mod health;
mod helper;
pub(crate) mod helpers;
mod identity;
pub(crate) mod incarnation;
mod local;
mod mailbox;
mod mailbox_owners;
pub(crate) mod message_span;
mod options;
mod own_policy;
mod own_thread;
mod polls;
mod resolve;
#[cfg(feature = "serde")]
mod serde;
mod span;
mod spawn;
pub(crate) mod spec;
pub(crate) mod task;
mod value;
mod waiting;
mod workers;

pub use self::adopt::adopt;
pub use self::blocking::{BlockingContext, blocking};
pub use self::blocking_helper::BlockingHelper;
pub(crate) use self::busy::BusyWatch;
pub use self::cancelled::Cancelled;
pub(crate) use self::cell::StopLevel;
pub(crate) use self::check::check_policy;
pub(crate) use self::check::{check_intensity, check_limits, check_on_exhausted, check_twice};
pub use self::child_trait::Child;
pub use self::component::{Component, component};
pub(crate) use self::config_spec::ConfigSpec;
pub use self::context::Context;
pub use self::defaults::ChildDefaults;
pub use self::fencing_token::FencingToken;
pub(crate) use self::graces::ExplicitGraces;
pub use self::health::HealthCheck;
pub use self::helper::{DetachedErrors, Helper};
#[cfg(test)]
pub(crate) use self::incarnation::orphan;
pub(crate) use self::incarnation::{Incarnation, Parent};
pub use self::local::local;
pub(crate) use self::mailbox::{
    ChildBinding, ChildId, DefaultDrain, LeftMessages, LoanHolder, MailboxControl, MailboxLoan,
    MailboxOwner,
};
pub(crate) use self::mailbox_owners::check_mailboxes;
pub(crate) use self::polls::{PollWatch, RunningPoll};
pub(crate) use self::spawn::spawn;
pub use self::spec::ChildSpec;
pub(crate) use self::spec::{
    ChildFactory, ChildMeta, FactoryKind, Nested, Phases, Resolved, ShownProperty, outside,
};
pub use self::waiting::Waiting;
pub(crate) use self::workers::{TypeMeta, function_kind, value_kind};
pub use self::workers::{child, once, worker, worker_with};
