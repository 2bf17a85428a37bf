//! What an application notifies systemd of: that its tree is ready, what is wrong with it, and that it stops.

use std::pin::pin;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::{sleep, timeout};

use super::root::Root;
use super::self_check::SelfCheck;
use super::systemd::{Notice, Notifier};
use crate::handle::SupervisorHandle;
use crate::owned_task::OwnedTask;
use crate::status::Status;

/// How often the status is looked at.
const PERIOD: Duration = Duration::from_secs(5);
/// How long that may take.
const SNAPSHOT: Duration = Duration::from_secs(2);

/// The tasks that notify systemd. They end when this is dropped.
#[derive(Debug)]
pub(super) struct SystemdTasks {
    notices: UnboundedSender<Notice>,
    notifier: OwnedTask<()>,
    watcher: OwnedTask<()>,
}

/// Notifies systemd of a reload.
#[cfg(feature = "config")]
pub(super) struct Notices(UnboundedSender<Notice>);

#[cfg(feature = "config")]
impl Notices {
    pub(super) fn reloading(&self) {
        let _ = self.0.send(Notice::Reloading);
    }

    pub(super) fn reloaded(&self, status: String) {
        let _ = self.0.send(Notice::Ready { status });
    }
}

impl SystemdTasks {
    #[cfg(feature = "config")]
    pub(super) fn notices(&self) -> Notices {
        Notices(self.notices.clone())
    }

    /// Starts the tasks, if systemd waits for notifications. Its watchdog is pinged while the tree's loop turns.
    pub(super) fn start(root: &Root, check: Option<&SelfCheck>) -> Option<Self> {
        let notifier = Notifier::from_env()?;
        let turns = check.map(SelfCheck::turning);
        let turns = move || turns.as_ref().is_none_or(|turns| turns());
        let (notices, received) = unbounded_channel();
        let watcher = OwnedTask::spawn("verger notices", watch(root.handle(), notices.clone()));
        let notifier = OwnedTask::spawn("verger notifier", notifier.run(received, turns));
        Some(Self { notices, notifier, watcher })
    }

    /// A stop begins, or its next stage does. It takes at most `within` from now on.
    pub(super) fn stopping(&self, cause: &str, stage: &str, within: Duration) {
        let status = format!("stopping because of {cause}: {stage}");
        let _ = self.notices.send(Notice::Stopping { status, within });
    }

    /// Waits until systemd has received all notifications.
    pub(super) async fn finish(self) {
        let Self { notices, mut notifier, watcher } = self;
        drop(watcher);
        // The notifier ends once it has sent the rest.
        drop(notices);
        let _ = notifier.join().await;
    }
}

/// Notifies of what the start waits for, of its end, and then of each change between ready and not ready.
async fn watch(tree: SupervisorHandle, notices: UnboundedSender<Notice>) {
    let mut last = String::new();
    let mut started = pin!(tree.until_started());
    loop {
        tokio::select! {
            biased;
            true = &mut started => break,
            () = sleep(PERIOD) => {}
        }
        let starting = snapshot(&tree).await.map(|status| format!("starting: {}", text(&status)));
        if let Some(starting) = starting.filter(|starting| *starting != last) {
            last.clone_from(&starting);
            let _ = notices.send(Notice::Status(starting));
        }
    }
    let _ = notices.send(Notice::Ready { status: "started".to_owned() });
    loop {
        if let Some(status) = snapshot(&tree).await
            && let text = text(&status)
            && text != last
        {
            last.clone_from(&text);
            let _ = notices.send(match status.is_ready() {
                true => Notice::Ready { status: text },
                false => Notice::Unready { status: text },
            });
        }
        sleep(PERIOD).await;
    }
}

async fn snapshot(tree: &SupervisorHandle) -> Option<Status> {
    timeout(SNAPSHOT, tree.status()).await.ok()?.ok()
}

/// The state of a tree in a line.
fn text(status: &Status) -> String {
    let problems = status.problems();
    let mut problems = problems.iter().filter(|problem| problem.essential);
    match (problems.next(), problems.count()) {
        (None, _) => "ready".to_owned(),
        (Some(first), 0) => first.to_string(),
        (Some(first), more) => format!("{first} (and {more} more)"),
    }
}

#[cfg(all(test, not(verger_loom)))]
mod tests {
    use std::future::pending;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn dropping_it_ends_its_tasks() {
        let task = || {
            let (held, ended) = oneshot::channel::<()>();
            let task = OwnedTask::spawn("test", async move {
                let _held = held;
                pending().await
            });
            (task, ended)
        };
        let ((notifier, notifier_ended), (watcher, watcher_ended)) = (task(), task());
        drop(SystemdTasks { notices: unbounded_channel().0, notifier, watcher });
        assert!(notifier_ended.await.is_err());
        assert!(watcher_ended.await.is_err());
    }
}
