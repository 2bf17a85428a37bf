//! What a crate implements so that it can be measured.

use std::future::Future;
use std::time::Duration;

use super::child::Life;

/// A crate, driven in the configuration that suits each work best. The page of the book describes it.
pub trait Peer: 'static {
    /// The name of the column, also on the command line.
    const NAME: &'static str;
    /// The package, as in the lockfile, and the packages that it can't be used without.
    const PACKAGES: &'static [&'static str];
    /// How the names of work begin that the crate can't do. Its methods need no implementation.
    const LACKS: &'static [&'static str] = &[];
    /// What it takes to stop what was started.
    type Tree: Send + Sync + 'static;

    /// Starts `n` children under one supervisor, in the quickest way that the crate has. They are
    /// restarted without a limit and without a delay.
    fn start<L: Life>(n: usize, one_for_all: bool) -> impl Future<Output = Self::Tree> + Send;

    /// Stops it, in the gentlest way that the crate has.
    fn stop(tree: Self::Tree) -> impl Future<Output = ()> + Send;

    /// Starts supervisors below supervisors, with idle children on the last level.
    fn nest(_widths: &'static [usize]) -> impl Future<Output = Self::Tree> + Send {
        lacks()
    }

    /// Adds a child to a running supervisor.
    fn add<L: Life>(_tree: &Self::Tree, _index: usize) -> impl Future<Output = ()> + Send {
        lacks()
    }

    /// Sends messages from one task to one child, until the child has received all of them.
    fn send(_messages: u64) -> impl Future<Output = Duration> + Send {
        lacks()
    }

    /// Asks a child questions, one after the other. Returns the time of each, in nanoseconds.
    fn ask(_questions: usize) -> impl Future<Output = Vec<u64>> + Send {
        lacks()
    }

    /// Starts children with the names that [`name`] makes.
    fn register(_names: usize) -> impl Future<Output = Self::Tree> + Send {
        lacks()
    }

    /// Looks names up, and returns how many exist.
    fn look_up(_tree: &Self::Tree, _names: &[String]) -> impl Future<Output = usize> + Send {
        lacks()
    }
}

/// The name of a child, the same for all crates.
pub fn name(index: usize) -> String {
    format!("child-{index}")
}

async fn lacks<T>() -> T {
    unreachable!("the work is in `LACKS`")
}
