//! The signals that reload the configuration of an application: SIGHUP, and SIGUSR2 for all of it.
//!
//! # Invariants
//!
//! 1. The signals are received from before the configuration is read, so that none of them ends the process.
//! 2. Signals of one kind that come during a reload lead to one more reload.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::reload::{Reloader, Reloads};
use crate::owned_task::OwnedTask;
use crate::subscriber;

/// See the [module](self).
pub(super) struct ReloadSignals {
    reloader: Reloader,
    received: Vec<(&'static str, Signal)>,
}

impl ReloadSignals {
    /// Receives the signals from now on. `None` if no signal reloads the application.
    pub(super) fn new(reloads: &Reloads) -> Option<Self> {
        let kinds = [("SIGHUP", SignalKind::hangup()), ("SIGUSR2", SignalKind::user_defined2())];
        let receive = |(name, kind)| match signal(kind) {
            Ok(signal) => Some((name, signal)),
            Err(error) => {
                let error = error.to_string();
                subscriber::error!(target: "verger::config", error, "can't receive signals for reloads");
                None
            }
        };
        let received = || kinds.into_iter().filter_map(receive).collect();
        reloads.listens().then(|| Self { reloader: reloads.reloader(), received: received() })
    }

    /// Requests a reload at each signal, until the tasks are dropped.
    pub(super) fn serve(self) -> Vec<OwnedTask<()>> {
        let serve = |(name, mut signal): (&'static str, Signal)| {
            let reloader = self.reloader.clone();
            OwnedTask::spawn("verger reload signals", async move {
                while signal.recv().await.is_some() {
                    // The outcome is in the log.
                    let _ = reloader.request(name, name == "SIGUSR2", None).await;
                }
            })
        };
        self.received.into_iter().map(serve).collect()
    }
}
