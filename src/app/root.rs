//! The task of a root supervisor.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::child::{PollWatch, StopLevel};
use crate::clock;
use crate::error::{RunError, StartError};
use crate::handle::{self, SupervisorHandle, request_stop, until_up};
use crate::named_task;
use crate::path::Path;
use crate::runtime::settings::Settings;
use crate::runtime::{Blueprint, EarlyEvents, End, SupervisorShared, supervise};

/// How long a poll may take until its child blocks a thread.
const BLOCKED: Duration = Duration::from_secs(1);

/// The task of a root supervisor. Dropping it aborts the task and every child.
#[derive(Debug)]
pub(crate) struct Root {
    pub(super) shared: Arc<SupervisorShared>,
    task: Option<JoinHandle<()>>,
}

impl Root {
    pub(super) fn spawn(
        blueprint: Arc<Blueprint>,
        settings: Arc<Settings>,
        early_events: EarlyEvents,
    ) -> Self {
        // Panics here, in the caller, if the runtime has no timers.
        drop(tokio::time::sleep(Duration::ZERO));
        let shared = handle::root(blueprint, settings, early_events);
        let run = supervise(Arc::clone(&shared), None, |_| ());
        #[expect(clippy::disallowed_methods, reason = "the root's task, aborted when this drops")]
        let task = named_task::spawn(|| shared.path().to_string(), run);
        Self { shared, task: Some(task) }
    }

    pub(crate) fn handle(&self) -> SupervisorHandle {
        SupervisorHandle::new(Arc::clone(&self.shared))
    }

    /// Waits until the tree is up, or has ended by itself without an error.
    pub(crate) async fn up(&self) -> Result<(), StartError> {
        let Some(end) = until_up(&self.shared).await else { return Ok(()) };
        match (&end, end.result(self.shared.path())) {
            (_, Err(RunError::Start(error))) => Err(error),
            (_, Err(error)) => Err(StartError::Ended(Box::new(error))),
            (End::AutoShutdown | End::Exit { .. }, Ok(())) => Ok(()),
            (_, Ok(())) => Err(StartError::Stopped { path: self.shared.path().clone() }),
        }
    }

    /// Notes why the tree is about to stop, so that it isn't ready any more.
    pub(super) fn announce_stop(&self, cause: &Arc<str>) {
        self.shared.note_stop(cause);
    }

    /// Stops the tree, as urgently as `level`.
    pub(super) fn stop(&self, cause: &str, level: StopLevel) {
        request_stop(&self.shared, cause, level);
    }

    /// Returns a function that returns the children that block a thread, or were aborted and still run.
    pub(super) fn blocked(&self) -> impl Fn() -> Vec<Path> + Send + 'static {
        let (shared, watch) = (Arc::clone(&self.shared), PollWatch::new());
        move || {
            let since = clock::real().checked_sub(BLOCKED);
            let polls = watch.running().into_iter().filter(|poll| Some(poll.since) <= since);
            let mut blocked = shared.leaked_below();
            for poll in polls {
                if !blocked.contains(&poll.child) {
                    blocked.push(poll.child);
                }
            }
            blocked
        }
    }

    /// Returns how many children were aborted so far because they missed their grace.
    pub(super) fn missed_graces(&self) -> usize {
        self.shared.tree.missed_graces()
    }

    /// Keeps the task running when this is dropped.
    pub(super) fn detach(mut self) -> SupervisorHandle {
        self.task = None;
        self.handle()
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}
