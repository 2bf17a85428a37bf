//! What an application notifies systemd of: that its tree is ready, what is wrong with it, and that it stops.

use std::pin::pin;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::{sleep, timeout};

use super::notifier::Notifier;
use super::reporter::Notice;
use crate::app::companion::{Companion, MaybeCompanion, RunStart, companion};
use crate::handle::SupervisorHandle;
use crate::owned_task::OwnedTask;
use crate::status::Status;

/// How often the status is looked at.
const PERIOD: Duration = Duration::from_secs(5);
/// How long that may take.
const SNAPSHOT: Duration = Duration::from_secs(2);

/// The tasks that notify systemd. They end when this is dropped.
#[derive(Debug)]
struct SystemdTasks {
    notices: UnboundedSender<Notice>,
    notifier: OwnedTask<()>,
    watcher: OwnedTask<()>,
}

/// The notifications of an application. `None` before the start, and if systemd waits for none.
#[derive(Default)]
struct Systemd(Option<SystemdTasks>);

pub(super) fn systemd() -> MaybeCompanion {
    companion(Systemd::default())
}

#[async_trait]
impl Companion for Systemd {
    fn start(&mut self, run: &mut RunStart<'_>) {
        let Some(notifier) = Notifier::from_env() else { return };
        let alive = std::mem::take(&mut run.alive);
        let (notices, received) = unbounded_channel();
        // Weak, so that it doesn't keep the notifier from ending.
        let of_reload = notices.downgrade();
        run.on_reload.push(Box::new(move |status| {
            let Some(notices) = of_reload.upgrade() else { return };
            let _ =
                notices.send(status.map_or(Notice::Reloading, |status| Notice::Ready { status }));
        }));
        let watcher = OwnedTask::spawn("verger notices", watch(run.handle(), notices.clone()));
        let notify = notifier.run(received, move || alive.iter().all(|alive| alive()));
        let notifier = OwnedTask::spawn("verger notifier", notify);
        self.0 = Some(SystemdTasks { notices, notifier, watcher });
    }

    fn stage(&mut self, cause: &str, stage: &str, within: Duration) {
        if let Some(tasks) = &self.0 {
            let status = format!("stopping because of {cause}: {stage}");
            let _ = tasks.notices.send(Notice::Stopping { status, within });
        }
    }

    /// Waits until systemd has received all notifications.
    async fn finish(self: Box<Self>) {
        let Some(SystemdTasks { notices, mut notifier, watcher }) = self.0 else { return };
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
