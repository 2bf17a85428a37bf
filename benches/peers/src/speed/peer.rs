//! What a crate has to be able to do so that it can be measured.

use std::future::Future;
use std::time::Duration;

use super::child::Life;
use super::work::Work;
use crate::peer::Strategy;

/// A crate, driven in the configuration that suits each work best.
///
/// A crate that can't do a work says so in [`can`](Self::can), and leaves its methods as they are.
pub trait Peer: 'static {
    /// What it takes to stop what was started.
    type Tree: Send + Sync + 'static;

    fn can(work: Work) -> bool;

    /// Starts `n` children under one supervisor, in the quickest way that the crate has: from
    /// specs, if it takes them all at once. They are restarted without a limit and without a wait.
    fn start<L: Life>(n: usize, strategy: Strategy) -> impl Future<Output = Self::Tree> + Send;

    /// Stops it, in the gentlest way that the crate has.
    fn stop(tree: Self::Tree) -> impl Future<Output = ()> + Send;

    /// Starts supervisors below supervisors: each level has so many below each of the level above,
    /// and the last consists of idle children.
    fn nest(_widths: &'static [usize]) -> impl Future<Output = Self::Tree> + Send {
        lacks()
    }

    /// Adds a child to a supervisor that runs.
    fn add<L: Life>(_tree: &Self::Tree, _index: usize) -> impl Future<Output = ()> + Send {
        lacks()
    }

    /// Sends so many messages from one task to one child, and waits until it has had them all.
    fn send(_messages: u64) -> impl Future<Output = Duration> + Send {
        lacks()
    }

    /// Asks a child so many questions, and says how long each answer took, in nanoseconds.
    fn ask(_questions: usize) -> impl Future<Output = Vec<u64>> + Send {
        lacks()
    }

    /// Starts so many children with the names that [`name`] makes.
    fn register(_names: usize) -> impl Future<Output = Self::Tree> + Send {
        lacks()
    }

    /// Looks these names up, and says how many there are.
    fn look_up(_tree: &Self::Tree, _names: &[String]) -> impl Future<Output = usize> + Send {
        lacks()
    }
}

/// The name of a child, the same everywhere.
pub fn name(index: usize) -> String {
    format!("child-{index}")
}

async fn lacks<T>() -> T {
    unreachable!("the crate has said that it can't")
}
