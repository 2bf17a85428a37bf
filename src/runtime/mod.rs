//! Running supervisors: the loop, the tasks it starts, and the handles to it.
//!
//! | file | what it is |
//! | --- | --- |
//! | `driver` | the loop: wait, ask the machine, do what it says |
//! | `task` | a supervisor's own task, until it has told how it ended |
//! | `tasks` | the children's tasks |
//! | `turns` | who drives: the supervisor's task, or whoever brings it news |
//! | `hub`, `inbox` | what a supervisor shares with its children and its handles |
//! | `channels` | who listens |
//! | `letters`, `wards` | where dead letters go, and mailboxes whose supervisor has ended |
//! | `request` | what callers ask for, and how they are answered |
//! | `line` | children that ask each other to stop, in order |
//! | `phase`, `end` | how far it is, and how it ended |
//! | `few`, `queue` | what only few children or supervisors have |

pub(crate) mod blueprint;
mod channels;
mod driver;
mod end;
mod few;
pub(crate) mod hub;
pub(crate) mod inbox;
mod letters;
mod line;
pub(crate) mod phase;
mod queue;
pub(crate) mod request;
mod room;
mod subscription;
mod task;
mod tasks;
mod trace;
mod turns;
mod wards;

pub(crate) use self::blueprint::Blueprint;
pub(crate) use self::end::End;
pub(crate) use self::hub::{Hub, Tree};
pub(crate) use self::letters::LetterOptions;
pub use self::subscription::Subscription;
pub(crate) use self::task::supervise;
