//! Snapshots of the tree, which all requests share.
//!
//! # Invariants
//!
//! 1. At most one snapshot is being taken.
//! 2. A snapshot is rendered at most once.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::problem::{HttpProblem, json_text};
use crate::clock::now;
use crate::handle::SupervisorHandle;
use crate::status::Status;

/// How old a snapshot may be.
pub(super) const FRESH: Duration = Duration::from_millis(500);
/// How long a request waits for one.
const PATIENCE: Duration = Duration::from_secs(8);

#[derive(Default)]
pub(super) struct Snapshots {
    last: Mutex<Option<Arc<Snapshot>>>,
}

pub(super) struct Snapshot {
    pub(super) status: Status,
    taken: Instant,
    /// How long it took to take the snapshot.
    took: Duration,
    json: OnceLock<Bytes>,
}

impl Snapshots {
    /// Returns a snapshot that is at most half a second old.
    pub(super) async fn fresh(
        &self,
        tree: &SupervisorHandle,
    ) -> Result<Arc<Snapshot>, HttpProblem> {
        self.get(tree, |_| FRESH).await
    }

    /// Returns a snapshot that is older the longer snapshots take.
    ///
    /// So snapshots take at most a twentieth of a thread.
    pub(super) async fn cheap(
        &self,
        tree: &SupervisorHandle,
    ) -> Result<Arc<Snapshot>, HttpProblem> {
        self.get(tree, |took| FRESH.max(took * 20)).await
    }

    /// Discards the last snapshot after a change of the tree.
    pub(super) async fn outdate(&self) {
        *self.last.lock().await = None;
    }

    async fn get(
        &self,
        tree: &SupervisorHandle,
        may_be_old: impl Fn(Duration) -> Duration,
    ) -> Result<Arc<Snapshot>, HttpProblem> {
        let taken = timeout(PATIENCE, async {
            let mut last = self.last.lock().await;
            let began = now();
            let is_fresh = |it: &&Arc<Snapshot>| {
                began.saturating_duration_since(it.taken) < may_be_old(it.took)
            };
            if let Some(snapshot) = last.as_ref().filter(is_fresh) {
                return Ok(Arc::clone(snapshot));
            }
            let status = tree.status().await?;
            let taken = now();
            let took = taken.saturating_duration_since(began);
            let snapshot = Arc::new(Snapshot { status, taken, took, json: OnceLock::new() });
            *last = Some(Arc::clone(&snapshot));
            Ok(snapshot)
        });
        let busy = || format!("`{}` has not answered within {PATIENCE:?}", tree.path());
        taken.await.unwrap_or_else(|_| Err(HttpProblem::unavailable("busy", busy())))
    }
}

impl Snapshot {
    /// Returns the snapshot as JSON. Rendering takes time in proportion to the tree.
    pub(super) fn json(&self) -> Bytes {
        self.json.get_or_init(|| json_text(&self.status).into()).clone()
    }
}
