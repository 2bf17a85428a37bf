//! Children: what a supervisor runs.
//!
//! | file | what it is |
//! | --- | --- |
//! | `incarnation`, `cell` | what a child's task, its contexts and its supervisor share |
//! | `context` | what a child is given |
//! | `task` | the task of one incarnation, and which one is being polled |
//! | `busy`, `busy_guard`, `cpu` | how long polls take, what has that measured, and the CPU time of threads |
//! | `workers`, `value` | children made from functions and from values |
//! | `own_thread`, `clock_hold` | children that have a separate thread |
//! | `adopt` | children that are tasks which were spawned elsewhere |
//! | `helpers`, `closures` | tasks and closures that a child spawns, and that end with its incarnation |
//! | `spec`, `options`, `health` | how incarnations are made, and how a child is supervised |
//! | `check` | whether a spec is valid, and how a nested spec becomes runnable |
//! | `mailbox` | the mailbox of a child, whatever the type of its messages |

mod adopt;
pub(crate) mod awaiting;
mod busy;
#[cfg(any(feature = "console", feature = "metrics"))]
mod busy_guard;
mod cell;
mod check;
mod clock_hold;
pub(crate) mod closures;
mod context;
mod cpu;
mod health;
pub(crate) mod helpers;
pub(crate) mod incarnation;
pub(crate) mod mailbox;
mod options;
mod own_thread;
#[cfg(feature = "serde")]
mod serde;
pub(crate) mod spec;
pub(crate) mod task;
mod value;
mod workers;

pub use self::adopt::adopt;
pub(crate) use self::busy::BusySwitch;
#[cfg(any(feature = "console", feature = "metrics"))]
pub(crate) use self::busy_guard::BusyGuard;
#[cfg(feature = "service")]
pub(crate) use self::cell::GuardId;
pub(crate) use self::cell::StopLevel;
pub(crate) use self::check::{
    check_intensity, check_limits, check_mailboxes, check_on_exhausted, check_policy, check_twice,
};
pub(crate) use self::clock_hold::BusyWatch;
pub use self::closures::BlockingHelper;
pub use self::context::{Cancelled, Context, FencingToken, Waiting};
pub use self::health::HealthCheck;
pub use self::helpers::{DetachedErrors, Helper};
pub(crate) use self::incarnation::Incarnation;
#[cfg(test)]
pub(crate) use self::incarnation::orphan;
pub(crate) use self::mailbox::{
    ChildBinding, ChildId, DefaultDrain, LeftMessages, LoanHolder, MailboxControl, MailboxLoad,
    MailboxLoan, MailboxOwner,
};
pub use self::options::ChildDefaults;
pub use self::own_thread::{BlockingContext, blocking, local};
pub use self::spec::ChildSpec;
#[cfg(feature = "testing")]
pub(crate) use self::spec::WrapFactory;
pub(crate) use self::spec::{
    ChildFactory, ChildMeta, ConfigSpec, ExplicitGraces, FactoryKind, Nested, Phases, Resolved,
    ShownProperty, outside,
};
pub(crate) use self::task::{PollWatch, RunningPoll, note_question, spawn, waits_for_thread};
pub(crate) use self::value::value_kind;
pub use self::value::{Child, ChildConstructor, Component, child, component};
pub(crate) use self::workers::{TypeMeta, function_kind};
pub use self::workers::{once, worker, worker_with};
