//! Reloading the configuration of an application: what asks for it, and how its outcome is logged.
//!
//! Knows where the configuration comes from. What it changes is up to the module `config`.
//!
//! # Invariants
//!
//! 1. One reload runs at a time. Requests that come meanwhile are served one after the other.
//! 2. The signals are received from before the start on, so that none of them ends the process.
//! 3. A reload that fails changes nothing but the log.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{mpsc, oneshot};
use tokio::task::coop::consume_budget;

#[cfg(all(feature = "systemd", target_os = "linux"))]
use super::notify::Notices;
use crate::config::{Applied, ApplyError, ConfigSource, Plan, read_source};
#[cfg(feature = "console")]
use crate::console::{Applying, Configuration};
use crate::handle::SupervisorHandle;
use crate::metrics;
use crate::subscriber;

type Answer = oneshot::Sender<Result<Applied, ApplyError>>;

/// Reloads the configuration of a running [`Application`](crate::Application), for triggers of your own.
///
/// Made by [`Application::reloader`](crate::Application::reloader). A clone reloads the same application.
///
/// ```no_run
/// use std::time::Duration;
///
/// use verger::{Application, Supervisor};
///
/// # #[cfg(feature = "config-file")]
/// # async fn run() {
/// let app = Application::new(Supervisor::builder("app")).config_file("app.toml");
/// let reloader = app.reloader();
/// tokio::spawn(async move {
///     loop {
///         tokio::time::sleep(Duration::from_secs(3600)).await;
///         if let Err(error) = reloader.reload().await {
///             eprintln!("{error}");
///         }
///     }
/// });
/// app.run().await;
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Reloader {
    requests: mpsc::UnboundedSender<Request>,
    is_running: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Request {
    wanted: Wanted,
    answer: Answer,
}

/// What is applied.
#[derive(Debug)]
enum Wanted {
    /// What has changed in the configuration.
    Changed,
    /// All of the configuration.
    Forced,
    /// A plan that an operator has seen in the console.
    Planned(Box<Plan>, Option<String>),
}

impl Reloader {
    /// Reads the configuration again, and applies what has changed.
    ///
    /// # Errors
    ///
    /// See [`ApplyError`]; [`ApplyError::NotRunning`] before the application has started, and after its end.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped after its first poll, the configuration is reloaded nevertheless.
    pub async fn reload(&self) -> Result<Applied, ApplyError> {
        self.request(Wanted::Changed).await
    }

    /// Reads the configuration again, and applies all of it, also what hasn't changed.
    ///
    /// See [`Plan::forced`](crate::config::Plan::forced).
    ///
    /// # Errors
    ///
    /// As for [`reload`](Self::reload).
    ///
    /// # Cancel safety
    ///
    /// As for [`reload`](Self::reload).
    pub async fn reload_forced(&self) -> Result<Applied, ApplyError> {
        self.request(Wanted::Forced).await
    }

    /// Applies a plan that an operator has seen.
    ///
    /// # Errors
    ///
    /// As for [`reload`](Self::reload).
    #[cfg(feature = "console")]
    pub(super) async fn apply(
        &self,
        plan: Plan,
        reason: Option<String>,
    ) -> Result<Applied, ApplyError> {
        self.request(Wanted::Planned(Box::new(plan), reason)).await
    }

    async fn request(&self, wanted: Wanted) -> Result<Applied, ApplyError> {
        if !self.is_running.load(Ordering::Acquire) {
            consume_budget().await;
            return Err(ApplyError::NotRunning);
        }
        let (answer, answered) = oneshot::channel();
        let _ = self.requests.send(Request { wanted, answer });
        answered.await.unwrap_or(Err(ApplyError::NotRunning))
    }
}

/// The configuration of an application before it is run.
pub(super) struct Reloads {
    pub(super) source: Option<ConfigSource>,
    /// Whether signals ask for a reload.
    pub(super) at_signals: bool,
    reloader: Reloader,
    requests: mpsc::UnboundedReceiver<Request>,
}

impl Default for Reloads {
    fn default() -> Self {
        let (sender, requests) = mpsc::unbounded_channel();
        let reloader = Reloader { requests: sender, is_running: Arc::default() };
        Self { source: None, at_signals: true, reloader, requests }
    }
}

impl fmt::Debug for Reloads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloads").finish_non_exhaustive()
    }
}

/// Returns how the console reads and applies the configuration, if the application has one.
#[cfg(feature = "console")]
pub(super) fn configuration(reloads: &Reloads) -> Option<Configuration> {
    let (source, reloader) = (reloads.source.clone()?, reloads.reloader());
    let apply = move |plan, reason| -> Applying {
        let reloader = reloader.clone();
        Box::pin(async move { reloader.apply(plan, reason).await })
    };
    Some(Configuration { source, apply: Box::new(apply) })
}

/// Logs why a configuration isn't used: one event for each mistake or child.
pub(super) fn log_error(trigger: &str, error: &ApplyError) {
    match error {
        ApplyError::Invalid(mistakes) => {
            for mistake in mistakes.mistakes() {
                subscriber::error!(target: "verger::config", "{mistake}");
            }
        }
        ApplyError::Refused(refusals) | ApplyError::RolledBack(refusals) => {
            let is_refused = matches!(error, ApplyError::Refused(_));
            for refusal in refusals {
                let (child, problem) = (refusal.path.as_str(), refusal.reason.as_str());
                let place = refusal.place.as_deref();
                if is_refused {
                    subscriber::error!(target: "verger::config", trigger, %child, place, problem, "refused");
                } else {
                    subscriber::error!(target: "verger::config", trigger, %child, place, problem, "not active, rolled back");
                }
            }
        }
        _ => {
            let error = error.to_string();
            subscriber::error!(target: "verger::config", trigger, error, "can't reload");
        }
    }
    subscriber::warn!(target: "verger::config", trigger, "configuration not changed");
}

impl Reloads {
    pub(super) fn reloader(&self) -> Reloader {
        self.reloader.clone()
    }

    /// Whether signals are received.
    pub(super) fn listens(&self) -> bool {
        self.at_signals && self.source.is_some()
    }

    /// Accepts requests from now on. They are served by [`serve`](Self::serve).
    pub(super) fn accept(&self) {
        self.reloader.is_running.store(true, Ordering::Release);
    }

    /// Serves all triggers until it is dropped.
    pub(super) async fn serve(
        self,
        tree: SupervisorHandle,
        mut signals: Signals,
        #[cfg(all(feature = "systemd", target_os = "linux"))] notices: Option<Notices>,
    ) {
        let Self { source, reloader: _reloader, mut requests, .. } = self;
        loop {
            let (trigger, wanted, answer) = tokio::select! {
                biased;
                Some(request) = requests.recv() => {
                    let is_planned = matches!(request.wanted, Wanted::Planned(..));
                    let trigger = if is_planned { "console" } else { "call" };
                    (trigger, request.wanted, Some(request.answer))
                }
                signal = signals.next() => match signal {
                    "SIGUSR2" => (signal, Wanted::Forced, None),
                    _ => (signal, Wanted::Changed, None),
                },
            };
            let forced = matches!(wanted, Wanted::Forced);
            let reason = match &wanted {
                Wanted::Planned(_, reason) => reason.clone(),
                Wanted::Changed | Wanted::Forced => None,
            };
            let Some(source) = &source else {
                let none =
                    ApplyError::Unreadable("the application has no configuration".to_owned());
                let _ = answer.map(|answer| answer.send(Err(none)));
                continue;
            };
            subscriber::info!(target: "verger::config", trigger, forced, reason, "reloading");
            #[cfg(all(feature = "systemd", target_os = "linux"))]
            if let Some(notices) = &notices {
                notices.reloading();
            }
            let result = reload(&tree, source, wanted).await;
            #[cfg(all(feature = "systemd", target_os = "linux"))]
            if let Some(notices) = &notices {
                notices.reloaded(match &result {
                    Ok(applied) => format!("reloaded: {applied}"),
                    Err(_) => "reload refused, configuration not changed".to_owned(),
                });
            }
            match &result {
                Ok(applied) => {
                    let (changes, unchanged) = (applied.changes.len(), applied.unchanged);
                    subscriber::info!(target: "verger::config", trigger, changes, unchanged, "reloaded");
                }
                Err(error) => log_error(trigger, error),
            }
            if let Some(answer) = answer {
                let _ = answer.send(result);
            }
        }
    }
}

async fn reload(
    tree: &SupervisorHandle,
    source: &ConfigSource,
    wanted: Wanted,
) -> Result<Applied, ApplyError> {
    let planned = async {
        match wanted {
            Wanted::Planned(plan, _) => Ok(*plan),
            Wanted::Changed => tree.plan(&read_source(source).await?).await,
            Wanted::Forced => Ok(tree.plan(&read_source(source).await?).await?.forced()),
        }
    };
    let plan =
        planned.await.inspect_err(|error| metrics::reloaded(&tree.root_path(), error.result()))?;
    tree.apply(plan).await
}

/// The signals that ask for a reload: SIGHUP, and SIGUSR2 for a forced one. Unix only.
pub(super) struct Signals {
    #[cfg(all(unix, feature = "signal"))]
    hangup: Option<tokio::signal::unix::Signal>,
    #[cfg(all(unix, feature = "signal"))]
    forced: Option<tokio::signal::unix::Signal>,
}

#[cfg(all(unix, feature = "signal"))]
impl Signals {
    /// Receives the signals from now on, if the application `listens` to them.
    pub(super) fn new(listens: bool) -> Self {
        use tokio::signal::unix::{SignalKind, signal};

        let receive = |kind| {
            let received = signal(kind).inspect_err(|error| {
                let error = error.to_string();
                subscriber::error!(target: "verger::config", error, "can't receive signals for reloads");
            });
            received.ok()
        };
        if !listens {
            return Self { hangup: None, forced: None };
        }
        Self { hangup: receive(SignalKind::hangup()), forced: receive(SignalKind::user_defined2()) }
    }

    async fn next(&mut self) -> &'static str {
        async fn received(signal: &mut Option<tokio::signal::unix::Signal>) {
            let received = match signal {
                Some(signal) => signal.recv().await,
                None => None,
            };
            if received.is_none() {
                std::future::pending().await
            }
        }

        tokio::select! {
            () = received(&mut self.hangup) => "SIGHUP",
            () = received(&mut self.forced) => "SIGUSR2",
        }
    }
}

#[cfg(not(all(unix, feature = "signal")))]
impl Signals {
    pub(super) fn new(_listens: bool) -> Self {
        Self {}
    }

    async fn next(&mut self) -> &'static str {
        std::future::pending().await
    }
}
