//! The shared state of a root, and of a supervisor that is a child.

use std::sync::Arc;

use super::route::SupervisorHandle;
use crate::child::{Context, StopLevel};
use crate::clock::Clocks;
use crate::runtime::SupervisorPhase;
use crate::runtime::inbox::StopRequest;
use crate::runtime::settings::Settings;
use crate::runtime::{Blueprint, EarlyEvents, End, SupervisorShared};

impl Context {
    /// Returns a handle to the supervisor of this child.
    #[must_use]
    pub fn parent(&self) -> SupervisorHandle {
        SupervisorHandle::new(supervisor_of(self))
    }
}

/// Returns the supervisor of a child.
pub(crate) fn supervisor_of(ctx: &Context) -> Arc<SupervisorShared> {
    Arc::clone(&ctx.incarnation.parent).supervisor()
}

/// Creates the shared state of a supervisor that is this child, or that this child has started as a worker.
pub(crate) fn supervisor_below(
    ctx: &Context,
    blueprint: &Arc<Blueprint>,
    is_of_worker: bool,
) -> Arc<SupervisorShared> {
    let (segment, token) = (ctx.incarnation.segment(), ctx.token_of_lease());
    supervisor_of(ctx).below(&segment, Arc::clone(blueprint), token, is_of_worker)
}

/// Creates the shared state of a root.
pub(crate) fn root(
    blueprint: Arc<Blueprint>,
    settings: Arc<Settings>,
    early_events: EarlyEvents,
) -> Arc<SupervisorShared> {
    SupervisorShared::root(blueprint, settings, early_events, Clocks::read())
}

/// Waits until a root is up. Returns its end if it has ended before.
pub(crate) async fn until_up(root: &SupervisorShared) -> Option<End> {
    match root.progress.reached(|phase| !matches!(phase, SupervisorPhase::Starting)).await {
        SupervisorPhase::Ended { end, was_up: false } => Some(end),
        _ => None,
    }
}

/// Stops a supervisor, as urgently as `level`.
pub(crate) fn request_stop(
    supervisor: &SupervisorShared,
    reason: impl Into<Arc<str>>,
    level: StopLevel,
) {
    supervisor.inbox.push_stop(StopRequest { reason: reason.into(), level });
}
