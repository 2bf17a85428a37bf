//! What shows how long polls take, and has them measured meanwhile.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::task::Observers;
use crate::runtime::SupervisorShared;

/// While it exists, the tree of a supervisor is measured.
pub(crate) struct BusyGuard {
    supervisor: Arc<SupervisorShared>,
    _observers: Observers,
}

impl BusyGuard {
    /// `None` if the builder of the root has switched it off.
    pub(crate) fn new(supervisor: &Arc<SupervisorShared>) -> Option<Self> {
        let root = supervisor.upward().last()?;
        if root.blueprint().busy_time == Some(false) {
            return None;
        }
        supervisor.tree.busy.users.fetch_add(1, Ordering::Relaxed);
        Some(Self { supervisor: Arc::clone(supervisor), _observers: Observers::of_times() })
    }
}

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.supervisor.tree.busy.users.fetch_sub(1, Ordering::Relaxed);
    }
}
