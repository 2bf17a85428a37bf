//! A supervisor's own task: it begins, drives whenever it is its turn, and tells everybody how it
//! ended.
//!
//! Written by hand, because a supervisor is to be small: what waits here is two words and the driver,
//! where two async functions, one in the other, kept each of these twice.
//!
//! # Invariants
//!
//! 1. However the task goes, polled or not, its end is told, once; and all children were aborted
//!    before, unless [somebody else](super::turns) drives just then.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use super::driver::Driver;
use super::end::End;
use super::hub::Hub;
use super::turns::{BoxedDriver, Next};
use crate::child::Context;
use crate::contain::contained;
use crate::core::Machine;
use crate::policy::Rules;

/// Runs a supervisor to its end, and tells whoever waits for that.
///
/// If the future is dropped before, polled or not, every child is aborted, and the end is that it
/// was aborted.
///
/// It returns what the end means to the caller. A future around this one that found that out
/// would hold it twice.
pub(crate) fn supervise<T>(
    hub: Arc<Hub>,
    above: Option<Context>,
    meaning: impl Fn(&End) -> T + Send + Unpin,
) -> impl Future<Output = T> + Send {
    hub.tree.registry.insert(Arc::clone(&hub));
    OwnTask { hub, stage: Stage::New(above), meaning }
}

/// See the [module](self).
struct OwnTask<F> {
    hub: Arc<Hub>,
    stage: Stage,
    meaning: F,
}

enum Stage {
    /// It has not been polled. What it is to its own supervisor.
    New(Option<Context>),
    /// Between two of its turns.
    Drives(BoxedDriver),
    /// The driver lies in the inbox, or somebody else drives.
    Waits,
    Over,
}

impl<T, F: Fn(&End) -> T + Unpin> Future for OwnTask<F> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<T> {
        let Poll::Ready(end) = self.drive(cx) else { return Poll::Pending };
        let meaning = (self.meaning)(&end);
        self.tell(end);
        Poll::Ready(meaning)
    }
}

impl<F> OwnTask<F> {
    fn drive(&mut self, cx: &mut TaskContext<'_>) -> Poll<End> {
        assert!(!matches!(self.stage, Stage::Over), "polled after its end");
        let inbox = &self.hub.inbox;
        let own = match std::mem::replace(&mut self.stage, Stage::Waits) {
            Stage::New(above) => Some(begin(&self.hub, above)),
            Stage::Drives(driver) => Some(driver),
            Stage::Waits | Stage::Over => None,
        };
        let mut driver = match own {
            Some(mut driver) => {
                inbox.take(&mut driver);
                driver
            }
            None => match inbox.take_reader(cx) {
                Some(driver) => driver,
                None => return Poll::Pending,
            },
        };
        loop {
            match driver.poll(cx) {
                Next::Wait => match inbox.wait(driver, cx) {
                    Ok(()) => return Poll::Pending,
                    Err(back) => driver = back,
                },
                Next::Yield => {
                    // It wakes whoever has polled it once.
                    let _ = pin!(tokio::task::yield_now()).poll(cx);
                    break;
                }
                Next::GiveWay => {
                    cx.waker().wake_by_ref();
                    break;
                }
                Next::End(end) => {
                    self.stage = Stage::Drives(driver);
                    return Poll::Ready(end);
                }
            }
        }
        self.stage = Stage::Drives(driver);
        Poll::Pending
    }

    fn tell(&mut self, end: End) {
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        let driver = self.hub.inbox.dismiss();
        // What children are made from goes with it, and may panic.
        contained(|| drop((stage, driver)));
        self.hub.close(end);
    }
}

impl<F> Drop for OwnTask<F> {
    fn drop(&mut self) {
        if !matches!(self.stage, Stage::Over) {
            self.tell(End::Aborted);
        }
    }
}

fn begin(hub: &Arc<Hub>, above: Option<Context>) -> BoxedDriver {
    let asks = hub.callback.is_some();
    let rules = match &hub.blueprint.rules {
        rules if rules.asks == asks => Arc::clone(rules),
        rules => Arc::new(Rules { asks, ..Rules::clone(rules) }),
    };
    let seed = fastrand::u64(..);
    let machine = match hub.blueprint.dynamic {
        true => Machine::dynamic(rules, hub.began, seed),
        false => Machine::ordered(rules, hub.began, seed),
    };
    Box::new(Driver::new(machine, Arc::clone(hub), above))
}
