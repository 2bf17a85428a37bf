//! What a crate has to be able to do so that it can be asked.

use std::time::Duration;

use crate::board::Order;
use crate::probe::{Probe, Verdict};
use crate::script;

/// A supervisor with children, in words that every crate has or lacks.
#[derive(Clone, Debug)]
pub struct Plan {
    pub strategy: Strategy,
    /// At most this many restarts ..
    pub restarts: usize,
    /// .. within this time.
    pub period: Duration,
    pub children: Vec<ChildPlan>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    OneForOne,
    OneForAll,
}

#[derive(Clone, Copy, Debug)]
pub struct ChildPlan {
    pub name: &'static str,
    /// How long the child needs before it is ready.
    pub set_up: Duration,
    /// Whether it stays down once it has ended well.
    pub transient: bool,
}

/// Which clock a crate is measured by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// tokio's, paused: waits cost no time and are exact.
    Paused,
    /// The real one, because the crate reads `std`'s, or has threads of its own.
    Real,
}

/// A crate that supervises.
///
/// There is one method for each probe, which runs the script that all crates share. A crate in
/// which it takes something else to ask may override it. What is judged stays in [`script`].
pub trait Peer {
    /// The package, as the lockfile has it, and others that it can't be used without.
    const PACKAGES: &[&str];
    const CLOCK: Clock;
    /// What it takes to stop what was started.
    type Tree;

    /// Starts a supervisor with children, in the way that the crate says is the one to wait for.
    async fn start(plan: Plan) -> Self::Tree;

    /// Stops it, in the gentlest way that the crate has.
    async fn stop(tree: Self::Tree);

    /// Starts a supervisor that has this one as its child, and grants it ten restarts.
    async fn start_nested(inner: Plan) -> Self::Tree;

    /// What there is no way to ask, or no use in asking, in the crate's own terms.
    fn declines(_probe: Probe) -> Option<Verdict> {
        None
    }

    /// What can be asked, but is not claimed, in the crate's own terms: a no isn't counted then.
    fn disclaims(_probe: Probe) -> Option<&'static str> {
        None
    }

    /// A child panics.
    async fn panic() -> Verdict {
        script::restarted::<Self>(Order::Panic).await
    }

    /// A child panics, and everything that users are shown is searched for the text.
    async fn text() -> Verdict {
        script::text::<Self>().await
    }

    /// A child returns an error.
    async fn error() -> Verdict {
        script::restarted::<Self>(Order::Fail).await
    }

    /// A child fails whenever it has been started, under a limit.
    async fn limit() -> Verdict {
        script::limit::<Self>().await
    }

    /// A child fails again and again, but never often enough for the limit.
    async fn window() -> Verdict {
        script::window::<Self>().await
    }

    /// One of three children of a `one_for_all` fails.
    async fn group() -> Verdict {
        script::group::<Self>(script::Sibling::Idle).await
    }

    /// The same while a sibling blocks its thread.
    async fn busy() -> Verdict {
        script::group::<Self>(script::Sibling::Busy).await
    }

    /// The same after a sibling has ended well.
    async fn finished() -> Verdict {
        script::group::<Self>(script::Sibling::Finished).await
    }

    /// The same while a sibling hangs.
    async fn hung() -> Verdict {
        script::group::<Self>(script::Sibling::Hung).await
    }

    /// Two of three fail at once.
    async fn twice() -> Verdict {
        script::group::<Self>(script::Sibling::FailsToo).await
    }

    /// A child fails more often than its supervisor allows, and that supervisor has a parent.
    async fn escalation() -> Verdict {
        script::escalation::<Self>().await
    }

    /// What has started when the start returns.
    async fn start_awaited() -> Verdict {
        script::start::<Self>().await
    }

    /// In which order children start and get ready.
    async fn start_order() -> Verdict {
        script::order::<Self>().await
    }

    /// What has been cleaned up when the stop returns.
    async fn clean_up() -> Verdict {
        script::clean_up::<Self>().await
    }

    /// In which order children stop.
    async fn reverse() -> Verdict {
        script::reverse::<Self>().await
    }

    /// Calls the method for a probe, unless the crate declines.
    async fn ask(probe: Probe) -> Verdict {
        if let Some(verdict) = Self::declines(probe) {
            return verdict;
        }
        let verdict = match probe {
            Probe::Panic => Self::panic().await,
            Probe::Text => Self::text().await,
            Probe::Error => Self::error().await,
            Probe::Limit => Self::limit().await,
            Probe::Window => Self::window().await,
            Probe::Group => Self::group().await,
            Probe::Busy => Self::busy().await,
            Probe::Finished => Self::finished().await,
            Probe::Hung => Self::hung().await,
            Probe::Twice => Self::twice().await,
            Probe::Escalation => Self::escalation().await,
            Probe::Start => Self::start_awaited().await,
            Probe::Order => Self::start_order().await,
            Probe::CleanUp => Self::clean_up().await,
            Probe::Reverse => Self::reverse().await,
        };
        match (verdict, Self::disclaims(probe)) {
            (Verdict::No(seen), Some(said)) => {
                Verdict::NotClaimed(format!("{said} (seen: {seen})"))
            }
            (verdict, _) => verdict,
        }
    }
}
