//! Running supervisors: the loop, the tasks it starts, and the handles to it.
//!
//! | file | what it is |
//! | --- | --- |
//! | `driver` | the loop: wait, ask the machine, do what it says |
//! | `task` | a supervisor's own task, until it has told how it ended |
//! | `tasks` | the children's tasks |
//! | `turns` | who drives: the supervisor's task, or whoever brings it news |
//! | `hub`, `inbox` | what a supervisor shares with its children and its handles |
//! | `channel` | a broadcast channel, for events and for dead letters |
//! | `dead_letters` | where dead letters go: stores, subscribers, log |
//! | `orphaned_mailboxes`, `mailbox_owner` | mailboxes whose supervisor has ended, and what a mailbox knows of its supervisor |
//! | `request` | what callers ask for, and how they are answered |
//! | `line` | children that ask each other to stop, in order |
//! | `phase`, `end` | how far it is, and how it ended |
//! | `few`, `queue` | what only few children or supervisors have |

pub(crate) mod blueprint;
mod channel;
mod dead_letters;
mod driver;
mod end;
mod few;
pub(crate) mod hub;
pub(crate) mod inbox;
mod line;
mod mailbox_owner;
mod orphaned_mailboxes;
pub(crate) mod phase;
mod queue;
pub(crate) mod request;
mod room;
mod subscription;
mod task;
mod tasks;
mod trace;
mod turns;

use std::fmt;
use std::sync::Arc;

pub(crate) use self::blueprint::Blueprint;
pub(crate) use self::end::End;
pub(crate) use self::hub::{Hub, Tree};
pub use self::subscription::Subscription;
pub(crate) use self::task::supervise;

use self::driver::Driver;
use self::turns::BoxedDriver;
use crate::child::Context;
use crate::core::{Dynamic, Machine, Ordered};
use crate::policy::Rules;

/// Runs a supervisor with a machine of some kind.
///
/// A pointer, since what is named in generic code alone, as this is in the builder of a dynamic
/// supervisor, is compiled where that is used: a program without one does without a tenth of all
/// that there is to compile.
#[derive(Clone, Copy)]
pub(crate) struct Drive(fn(Arc<Rules>, Arc<Hub>, Option<Context>) -> BoxedDriver);

impl Drive {
    pub(crate) const DYNAMIC: Self = Self(dynamic);
}

impl fmt::Debug for Drive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Drive")
    }
}

fn ordered(rules: Arc<Rules>, hub: Arc<Hub>, above: Option<Context>) -> BoxedDriver {
    drive(Ordered::new(rules, hub.began, fastrand::u64(..)), hub, above)
}

#[inline]
fn dynamic(rules: Arc<Rules>, hub: Arc<Hub>, above: Option<Context>) -> BoxedDriver {
    drive(Dynamic::new(rules, hub.began, fastrand::u64(..)), hub, above)
}

fn drive<M>(machine: M, hub: Arc<Hub>, above: Option<Context>) -> BoxedDriver
where
    M: Machine + Send + 'static,
{
    Box::new(Driver::new(machine, hub, above))
}
