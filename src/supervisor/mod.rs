//! Running supervisors: the loop, the tasks it starts, and the handles to it.
//!
//! | file | what it is |
//! | --- | --- |
//! | `driver` | the loop: wait, ask the machine, do what it says |
//! | `tasks` | the children's tasks |
//! | `hub`, `inbox` | what a supervisor shares with its children and its handles |
//! | `letters`, `wards` | where dead letters go, and mailboxes whose supervisor has ended |
//! | `handle`, `request` | what callers ask for, and how they are answered |
//! | `phase`, `outcome` | how far it is, and how it ended |

mod blueprint;
mod driver;
mod handle;
mod hub;
mod inbox;
mod letters;
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
use crate::clock::now;
use crate::machine::{Dynamic, Machine, Ordered};
use crate::policy::Rules;

/// Runs a supervisor to its end, and tells whoever waits for that.
///
/// If the future is dropped before, polled or not, every child is aborted, and the end is that it
/// was aborted.
pub(crate) fn supervise(
    blueprint: Arc<Blueprint>,
    hub: Arc<Hub>,
    above: Option<Context>,
) -> impl Future<Output = Outcome> + Send {
    hub.tree.registry.insert(Arc::clone(&hub));
    let ending = Ending { hub: Arc::clone(&hub), outcome: None };
    async move {
        let rules = Rules { asks: hub.callback.is_some(), ..Rules::clone(&blueprint.rules) };
        let seed = fastrand::u64(..);
        if blueprint.dynamic {
            drive(Dynamic::new(rules, now(), seed), blueprint, hub, above, ending).await
        } else {
            drive(Ordered::new(rules, now(), seed), blueprint, hub, above, ending).await
        }
    }
}

async fn drive<M: Machine + Send>(
    machine: M,
    blueprint: Arc<Blueprint>,
    hub: Arc<Hub>,
    above: Option<Context>,
    mut ending: Ending,
) -> Outcome {
    let outcome = Driver::new(machine, blueprint, hub, above).run().await;
    ending.outcome = Some(outcome.clone());
    outcome
}

/// Tells everybody how the supervisor ended, also if nobody let it come to an end.
struct Ending {
    hub: Arc<Hub>,
    outcome: Option<Outcome>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let aborted = || Outcome { end: End::Aborted, leaked: Vec::new() };
        self.hub.close(self.outcome.take().unwrap_or_else(aborted));
    }
}
