//! What the children of all crates do.

use std::future::Future;
use std::ops::ControlFlow;
use std::pin::pin;
use std::time::Duration;

use tokio::sync::mpsc;

/// An order to a running child.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    Panic,
    Fail,
    /// End without an error.
    Finish,
    /// Wait forever at an `await`.
    Hang,
    /// Block the thread for this long, then go on.
    Block(Duration),
}

/// The error of a child that was ordered to fail.
#[derive(Debug, thiserror::Error)]
#[error("out of luck")]
pub struct Failure;

/// One incarnation of a child, which ends when this is dropped.
///
/// An actor calls [`begin`](Self::begin), then [`obey`](Self::obey) for each message, and
/// [`clean_up`](Self::clean_up) when it is stopped. A child that is an async function is
/// [`live`](Self::live).
pub trait Life: Sized + Send + Sync + 'static {
    /// Whether the answers to a probe depend on it: the start waits as the crate's documentation says.
    const PROBED: bool = false;
    /// Whether the children differ only in their names.
    const ALIKE: bool = false;
    /// Whether children are added later.
    const GROWS: bool = false;

    /// Whether the child stays down after it has ended without an error.
    fn is_transient(_index: usize) -> bool {
        false
    }

    /// Starts an incarnation, and sets it up. `send` sends it an order, whatever that returns.
    fn begin<R>(
        index: usize,
        send: impl Fn(Order) -> R + Send + 'static,
    ) -> impl Future<Output = Self> + Send;

    /// Carries out an order. A child that has finished breaks.
    fn obey(order: Order) -> impl Future<Output = Result<ControlFlow<()>, Failure>> + Send;

    fn clean_up(&self) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// The whole incarnation. `ready` is called after the set-up; `stop` completes when it is cancelled.
    fn live(
        index: usize,
        ready: impl FnOnce() + Send,
        stop: impl Future<Output = ()> + Send,
    ) -> impl Future<Output = Result<(), Failure>> + Send {
        async move {
            let (sender, mut orders) = mpsc::unbounded_channel();
            let life = Self::begin(index, move |order| sender.send(order)).await;
            ready();
            let mut stop = pin!(stop);
            loop {
                tokio::select! {
                    () = &mut stop => break,
                    Some(order) = orders.recv() => if Self::obey(order).await?.is_break() {
                        return Ok(());
                    },
                }
            }
            life.clean_up().await;
            Ok(())
        }
    }
}
