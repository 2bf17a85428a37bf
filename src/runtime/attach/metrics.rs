//! Records metrics of what happens. It doesn't know their labels: the module `metrics` does.

use std::sync::Arc;

use super::{Attachment, StepView};
use crate::child::BusyGuard;
use crate::clock::now;
use crate::core::{Decision, Effect, Ending, Report};
use crate::exit::ExitKind;
use crate::lifecycle::Lifecycle;
use crate::metrics::ChildMetrics;
use crate::runtime::shared::SupervisorShared;

/// See the [module](self).
pub(super) struct Metrics {
    children: ChildMetrics,
    _busy: Option<BusyGuard>,
}

impl Metrics {
    pub(super) fn new(shared: &Arc<SupervisorShared>) -> Self {
        let children = ChildMetrics::new(&shared.dead_letters.scope);
        Self { children, _busy: BusyGuard::new(shared) }
    }

    /// Counts an edge that ends an incarnation, and records how long the child took to stop.
    fn record_end(&mut self, report: &Report, ending: Ending, view: &StepView<'_>) {
        let Some(entry) = view.children.entry(report.key) else { return };
        let child = entry.factory.name();
        self.children.exited(child, ending.word());
        // A child that returns by itself passes through the same state, and so does one that declines.
        let by_itself = matches!(ending, Ending::Exit(ExitKind::Normal) | Ending::Declined);
        if report.from == Lifecycle::Deactivating && !by_itself {
            self.children.stopped(child, report.after(view.now));
        }
    }
}

impl Attachment for Metrics {
    /// Records how long a root took to stop. Every other supervisor is a child, whose stop is measured.
    async fn finish(&mut self, shared: &SupervisorShared) {
        if shared.above.is_none()
            && let Some(since) = shared.progress.stopping_since()
        {
            self.children.root_stopped(now().saturating_duration_since(since));
        }
    }

    fn before(&mut self, effect: &Effect, view: &StepView<'_>) {
        match effect {
            Effect::Start { key, cause, .. } => {
                if let Some(entry) = view.children.entry(*key) {
                    self.children.started(entry.factory.name(), *cause);
                }
            }
            Effect::Report(report) => {
                if let Some(ending) = report.ending {
                    self.record_end(report, ending, view);
                }
            }
            Effect::Decided { key, decision: Decision::Restart { delay, .. }, .. } => {
                if let Some(entry) = view.children.entry(*key) {
                    self.children.restarting(entry.factory.name(), *delay);
                }
            }
            _ => {}
        }
    }
}
