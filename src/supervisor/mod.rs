//! Running supervisors: the loop, the tasks it starts, and the handles to it.
//!
//! | file | what it is |
//! | --- | --- |
//! | `driver` | the loop: wait, ask the machine, do what it says |
//! | `tasks` | the children's tasks |
//! | `turns` | who drives: the supervisor's task, or whoever brings it news |
//! | `hub`, `inbox` | what a supervisor shares with its children and its handles |
//! | `letters`, `wards` | where dead letters go, and mailboxes whose supervisor has ended |
//! | `handle`, `request` | what callers ask for, and how they are answered |
//! | `line` | children that ask each other to stop, in order |
//! | `phase`, `outcome` | how far it is, and how it ended |
//! | `few`, `queue` | what only few children or supervisors have |

mod blueprint;
mod driver;
mod few;
mod handle;
mod hub;
mod inbox;
mod letters;
mod line;
mod outcome;
mod phase;
mod queue;
mod request;
mod subscription;
mod tasks;
mod trace;
mod turns;
mod wards;

use std::fmt;
use std::future::Future;
use std::sync::Arc;

pub(crate) use self::blueprint::Blueprint;
pub use self::handle::{ChildRef, StatusChange, StatusStream, SupervisorHandle};
pub(crate) use self::handle::{ask_to_stop, root, until_up};
pub(crate) use self::hub::{Hub, Tree};
pub(crate) use self::letters::LetterOptions;
pub(crate) use self::outcome::{End, Outcome};
pub use self::subscription::Subscription;

use self::driver::Driver;
use self::turns::BoxedDriver;
use crate::child::Context;
use crate::machine::{Dynamic, Machine, Ordered};
use crate::policy::Rules;

/// Runs a supervisor to its end, and tells whoever waits for that.
///
/// If the future is dropped before, polled or not, every child is aborted, and the end is that it
/// was aborted.
///
/// It returns what the outcome means to the caller. A future around this one that found that out
/// would hold it twice.
pub(crate) fn supervise<T>(
    hub: Arc<Hub>,
    above: Option<Context>,
    meaning: impl FnOnce(&Outcome) -> T + Send,
) -> impl Future<Output = T> + Send {
    hub.tree.registry.insert(Arc::clone(&hub));
    let mut ending = Ending { hub, told: false };
    async move {
        let hub = Arc::clone(&ending.hub);
        let asks = hub.callback.is_some();
        let blueprint = &hub.blueprint;
        let rules = match &blueprint.rules {
            rules if rules.asks == asks => Arc::clone(rules),
            rules => Arc::new(Rules { asks, ..Rules::clone(rules) }),
        };
        let Drive(drive) = blueprint.dynamic.unwrap_or(Drive(ordered));
        let driver = drive(rules, Arc::clone(&hub), above);
        let outcome = turns::to_the_end(hub, driver).await;
        let meaning = meaning(&outcome);
        ending.tell(outcome);
        meaning
    }
}

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

/// Tells everybody how the supervisor ended, also if nobody let it come to an end.
struct Ending {
    hub: Arc<Hub>,
    told: bool,
}

impl Ending {
    fn tell(&mut self, outcome: Outcome) {
        self.told = true;
        self.hub.close(outcome);
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if !self.told {
            self.tell(Outcome { end: End::Aborted, leaked: Vec::new() });
        }
    }
}
