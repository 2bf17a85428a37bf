//! Records metrics from the effects. It doesn't know their labels: the module `metrics` does.
//!
//! Each function first checks whether a recorder is installed, and does the rest out of line.
//! perf: budgets row "restart-error"

use std::time::Instant;

use super::state::Driver;
use crate::clock::now;
use crate::core::{Decision, Key, Report};
use crate::exit::ExitKind;
use crate::lifecycle::Lifecycle;
use crate::metrics::is_installed;
use crate::policy::StartCause;

impl Driver {
    pub(super) fn measure_start(&mut self, key: Key, cause: StartCause) {
        if is_installed() {
            self.record_start(key, cause);
        }
    }

    /// Counts an edge that ends an incarnation, and records how long the child took to stop.
    pub(super) fn measure_edge(&mut self, report: &Report, now: Instant) {
        if let Some(kind) = report.ending
            && is_installed()
        {
            self.record_end(report, kind, now);
        }
    }

    pub(super) fn measure_decision(&mut self, key: Key, decision: Decision) {
        if is_installed() {
            self.record_decision(key, decision);
        }
    }

    /// Records how long a root took to stop. Every other supervisor is a child, whose stop is measured.
    pub(super) fn measure_end(&self) {
        if self.shared.above.is_none()
            && let Some(since) = self.shared.progress.stopping_since()
        {
            self.metrics.root_stopped(now().saturating_duration_since(since));
        }
    }

    #[cold]
    fn record_start(&mut self, key: Key, cause: StartCause) {
        if let Some(entry) = self.children.entry(key) {
            self.metrics.started(entry.factory.name(), cause);
        }
    }

    #[cold]
    fn record_end(&mut self, report: &Report, kind: &'static str, now: Instant) {
        let Some(entry) = self.children.entry(report.key) else { return };
        let child = entry.factory.name();
        self.metrics.exited(child, kind);
        // A child that returns by itself passes through the same state, and so does one that declines.
        let by_itself = kind == ExitKind::Normal.word() || kind == "ignored";
        if report.from == Lifecycle::Deactivating && !by_itself {
            self.metrics.stopped(child, report.after(now));
        }
    }

    #[cold]
    fn record_decision(&mut self, key: Key, decision: Decision) {
        if let Decision::Restart { delay, .. } = decision
            && let Some(entry) = self.children.entry(key)
        {
            self.metrics.restarting(entry.factory.name(), delay);
        }
    }
}
