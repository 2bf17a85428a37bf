//! What is reported of runs: log lines, the health of the child, the metric of failed runs.

use tracing::field;

use super::record::HealthChange;
use crate::child::Context;
use crate::child::task::log_recorded;
use crate::clock::now;
use crate::handle::supervisor_of;
use crate::metrics::is_installed;
use crate::panic::RecordedPanic;
use crate::path::Path;
use crate::policy::LetterLine;
use crate::runtime::log_bounds::LineKind;
use crate::subscriber::warn;

/// Adds to the number of failed runs. Zero registers the metric.
pub(super) fn count_failed(ctx: &Context, count: u64) {
    if is_installed() {
        supervisor_of(ctx).scope.failed_runs(&ctx.path(), count);
    }
}

pub(super) fn report_health(ctx: &Context, change: HealthChange) {
    let problem = match change {
        HealthChange::None => return,
        HealthChange::Healthy => None,
        HealthChange::Unhealthy(problem) => Some(problem),
    };
    supervisor_of(ctx).publish_health(now(), ctx.path(), ctx.incarnation(), problem);
}

/// Logs a failed run, with the panics that it has failed with.
pub(super) fn log_failure(
    ctx: &Context,
    cause: &str,
    failed_in_a_row: u64,
    panics: Vec<RecordedPanic>,
) {
    // The cause of a panic contains its message.
    let (mut own, others): (Vec<_>, Vec<_>) =
        panics.into_iter().partition(|recorded| cause.contains(recorded.panic.message()));
    log_recorded(&ctx.incarnation, others);
    let (child, incarnation) = (ctx.path(), ctx.incarnation());
    let Some(line) = line(ctx, &child, true) else { return };
    let note = line.note();
    let backtrace = own.pop().and_then(|recorded| recorded.backtrace).map(field::display);
    warn!(
        target: "verger::periodic",
        %child, incarnation, cause, failed_in_a_row, backtrace, "a run has failed{note}"
    );
}

/// Logs that runs were skipped.
pub(super) fn log_skipped(ctx: &Context, count: u64, total: u64, cause: &str) {
    let (child, incarnation) = (ctx.path(), ctx.incarnation());
    let Some(line) = line(ctx, &child, false) else { return };
    let note = line.note();
    warn!(
        target: "verger::periodic",
        %child, incarnation, count, total, cause, "skipped planned runs{note}"
    );
}

/// Counts a log line about a run that has failed or was skipped. Returns how it is logged, or `None` if it isn't.
fn line(ctx: &Context, child: &Path, has_failed: bool) -> Option<LetterLine> {
    supervisor_of(ctx).tree.log_bounds.count(child, LineKind::Run { has_failed })
}
