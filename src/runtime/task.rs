//! The future of one supervisor.
//!
//! # Invariants
//!
//! 1. However the future goes, polled or not, its end is announced exactly once. All children were
//!    aborted before.

use std::future::Future;
use std::sync::Arc;

use super::driver::Driver;
use super::outcome::End;
use super::shared::SupervisorShared;
use crate::child::Context;
use crate::core::Machine;
use crate::panic::catch_panic;

/// Runs a supervisor to its end, and returns what `meaning` makes of that.
///
/// If the future is dropped before it is ready, polled or not, every child is aborted, and the
/// supervisor has ended as aborted.
pub(crate) fn supervise<T: Send>(
    shared: Arc<SupervisorShared>,
    above: Option<Context>,
    meaning: fn(&End) -> T,
) -> impl Future<Output = T> + Send {
    shared.register();
    let mut running = EndGuard { shared, driver: None, end: End::Aborted };
    async move {
        // Boxed: the driver would be moved into the future, and the future into its task.
        let driver = Box::new(Driver::new(machine(&running.shared), &running.shared, above));
        running.end = running.driver.insert(driver).run().await;
        meaning(&running.end)
    }
}

fn machine(shared: &SupervisorShared) -> Machine {
    let (rules, blueprint) = (shared.rules(), shared.blueprint());
    match blueprint.is_dynamic() {
        true => Machine::dynamic(rules, shared.began),
        false => Machine::ordered(rules, blueprint.children.len(), shared.began),
    }
}

/// Announces the end of the supervisor when it is dropped.
struct EndGuard {
    shared: Arc<SupervisorShared>,
    driver: Option<Box<Driver>>,
    end: End,
}

impl Drop for EndGuard {
    fn drop(&mut self) {
        let driver = self.driver.take();
        // Child factories are dropped with the driver, and may panic.
        catch_panic(|| drop(driver));
        self.shared.close(std::mem::replace(&mut self.end, End::Aborted));
    }
}
