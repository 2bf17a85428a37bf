//! Running supervisors: the loop, the tasks it starts, and the handles to it.
//!
//! | file | what it is |
//! | --- | --- |
//! | `driver` | the loop: wait, ask the machine, do what it says |
//! | `tasks` | the children's tasks |
//! | `hub`, `inbox` | what a supervisor shares with its children and its handles |
//! | `letters`, `wards` | where dead letters go, and mailboxes whose supervisor has ended |
//! | `handle`, `request` | what callers ask for, and how they are answered |
//! | `line` | children that ask each other to stop, in order |
//! | `phase`, `outcome` | how far it is, and how it ended |
//! | `few` | what only few children or supervisors have |

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
mod request;
mod subscription;
mod tasks;
mod trace;
mod wards;

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
use crate::child::Context;
use crate::machine::{Dynamic, Ordered};
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
        let seed = fastrand::u64(..);
        let outcome = if blueprint.dynamic {
            Driver::new(Dynamic::new(rules, hub.began, seed), hub, above).run().await
        } else {
            Driver::new(Ordered::new(rules, hub.began, seed), hub, above).run().await
        };
        let meaning = meaning(&outcome);
        ending.tell(outcome);
        meaning
    }
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
