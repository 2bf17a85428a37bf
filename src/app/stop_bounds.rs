//! How long a stop may take, as far as that is declared.

use std::time::Duration;

use super::hooks::bound;
use super::program::Program;
use crate::spec::Supervisor;
use crate::subscriber;

/// The bounds of a termination.
pub(super) struct StopBounds {
    stages: String,
    /// All stages, the abort and the hooks.
    pub(super) total: Duration,
    /// All stages, without the hooks before them and the abort.
    in_stages: Duration,
    /// The graces that were set explicitly, one after the other as far as children stop so. Of children that
    /// are started later, only the default grace of their dynamic supervisor is known.
    graces: Duration,
}

impl StopBounds {
    pub(super) fn of(tree: &Supervisor, program: &Program) -> Self {
        let blueprint = tree.blueprint();
        let stages = &program.stages;
        let drain = stages.drain_length();
        let before = bound(&program.before).saturating_sub(drain);
        let after = bound(&program.after);
        let abort = blueprint.graces.leak_timeout;
        let total = [stages.total(), before, abort, after];
        Self {
            stages: format!("{stages}, abort {abort:?}"),
            total: total.into_iter().fold(Duration::ZERO, Duration::saturating_add),
            in_stages: stages.total().saturating_sub(drain),
            graces: blueprint.graces.sum,
        }
    }

    /// Logs the bounds.
    pub(super) fn announce(&self) {
        let Self { stages, total, graces, .. } = self;
        subscriber::info!(target: "verger::shutdown", at_most = ?total, stages, ?graces, "time for a stop");
    }

    /// Warns of what exceeds the bounds.
    pub(super) fn warn(&self, limit: Option<Duration>) {
        let Self { total, in_stages, graces, .. } = self;
        if graces > in_stages {
            subscriber::warn!(
                target: "verger::shutdown", ?graces, available = ?in_stages,
                "the graces add up to more than the stages: the children that stop last have less than theirs"
            );
        }
        if let Some(limit) = limit.filter(|limit| limit < total) {
            subscriber::warn!(
                target: "verger::shutdown", ?limit, at_most = ?total,
                "a stop may take longer than the service manager waits: it may kill the process"
            );
        }
    }
}
