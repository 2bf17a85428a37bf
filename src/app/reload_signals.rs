//! The signals that reload the configuration of an application: SIGHUP, and SIGUSR2 for all of it.
//!
//! # Invariants
//!
//! 1. The signals are received from before the configuration is read, so that none of them ends the process.
//! 2. Signals of one kind that come during a reload lead to one more reload.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::companion::{Companion, MaybeCompanion, RunStart, companion};
use super::reload::{Reloader, Reloads};
use super::signals::HangupClaim;
use crate::named_task::OwnedTask;
use crate::subscriber;

/// See the [module](self).
pub(super) struct ReloadSignals {
    reloader: Reloader,
    /// Each with its name, until the tasks wait for them.
    received: Vec<(&'static str, Signal)>,
    tasks: Vec<OwnedTask<()>>,
    /// Dropped with the tasks: until then, SIGHUP doesn't stop the program.
    _claim: HangupClaim,
}

impl ReloadSignals {
    /// Receives the signals from now on, if they reload the application.
    pub(super) fn companion(reloads: &Reloads) -> MaybeCompanion {
        let reloader = reloads.at_signals()?.clone();
        let claim = HangupClaim::new();
        let kinds = [("SIGHUP", SignalKind::hangup()), ("SIGUSR2", SignalKind::user_defined2())];
        let receive = |(name, kind)| match signal(kind) {
            Ok(signal) => Some((name, signal)),
            Err(error) => {
                let error = error.to_string();
                subscriber::error!(target: "verger::config", error, "can't receive signals for reloads");
                None
            }
        };
        let received = kinds.into_iter().filter_map(receive).collect();
        companion(Self { reloader, received, tasks: Vec::new(), _claim: claim })
    }
}

impl Companion for ReloadSignals {
    fn start(&mut self, _run: &mut RunStart<'_>) {
        for (name, signal) in self.received.drain(..) {
            let state = (name, signal, self.reloader.clone());
            self.tasks.push(OwnedTask::restarted("verger reload signals", state, |state| {
                Box::pin(forward(state))
            }));
        }
    }
}

async fn forward((name, signal, reloader): &mut (&'static str, Signal, Reloader)) {
    while signal.recv().await.is_some() {
        // The outcome is in the log.
        let _ = reloader.request(*name, *name == "SIGUSR2", None).await;
    }
}
