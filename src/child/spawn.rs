//! Spawning the task of one incarnation.

use std::sync::Arc;

use tokio::task::AbortHandle;
use tracing::Span;

use super::context::Context;
use super::incarnation::Incarnation;
use super::span::InSpan;
use super::spec::{ChildFactory, Phases};
use super::task::ChildTask;
use crate::{named_task, subscriber};

/// Spawns the task of an incarnation, in a span of its own if that is enabled.
///
/// A supervisor has no span, because its log lines contain its path.
pub(crate) fn spawn(
    incarnation: &Arc<Incarnation>,
    factory: &ChildFactory,
    phases: Phases,
) -> AbortHandle {
    let span = if phases.is_supervisor {
        Span::none()
    } else {
        subscriber::info_span!(
            target: "verger::child",
            parent: None,
            "child",
            path = %incarnation.path(),
            incarnation = incarnation.number,
        )
    };
    let mut future = factory.life(Context::new(Arc::clone(incarnation)), phases);
    if !span.is_disabled() {
        future = Box::pin(InSpan::new(future, span));
    }
    let task = ChildTask::new(Arc::clone(incarnation), future);
    #[expect(clippy::disallowed_methods, reason = "this is the one place that starts children")]
    let task = named_task::spawn(|| incarnation.path().to_string(), task);
    task.abort_handle()
}
