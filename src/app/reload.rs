//! Reloading the configuration of an application: what asks for it, and how its outcome is logged.
//!
//! Knows where the configuration comes from. What it changes is up to the module `config`.
//!
//! # Invariants
//!
//! 1. One reload runs at a time. Requests that come meanwhile are served one after the other.
//! 2. A reload that fails changes nothing but the log.

use std::sync::{Arc, OnceLock};

use tokio::sync::{mpsc, oneshot};
use tokio::task::coop::consume_budget;

#[cfg(all(feature = "systemd", target_os = "linux"))]
use super::notify::Notices;
use crate::config::{Applied, ApplyError, ConfigSource, Plan};
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
    /// Where the configuration comes from, if there is one. Set when the application accepts requests.
    pub(crate) started: Arc<OnceLock<Option<ConfigSource>>>,
}

#[derive(Debug)]
struct Request {
    /// What has caused the reload, for the log.
    trigger: &'static str,
    /// Whether all of the configuration is applied, or what has changed.
    forced: bool,
    planned: Option<Planned>,
    answer: Answer,
}

/// A plan that an operator has seen, and the operator's reason.
type Planned = (Plan, Option<String>);

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
        self.request("call", false, None).await
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
        self.request("call", true, None).await
    }

    /// Requests a reload, or that a plan is applied, and waits until it is done.
    pub(crate) async fn request(
        &self,
        trigger: &'static str,
        forced: bool,
        planned: Option<Planned>,
    ) -> Result<Applied, ApplyError> {
        if self.started.get().is_none() {
            consume_budget().await;
            return Err(ApplyError::NotRunning);
        }
        let (answer, answered) = oneshot::channel();
        let _ = self.requests.send(Request { trigger, forced, planned, answer });
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
        let reloader = Reloader { requests: sender, started: Arc::default() };
        Self { source: None, at_signals: true, reloader, requests }
    }
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

    /// Returns whether signals reload the configuration.
    pub(super) fn listens(&self) -> bool {
        self.at_signals && self.source.is_some()
    }

    /// Accepts requests from now on. They are served by [`serve`](Self::serve).
    pub(super) fn accept(&self) {
        let _ = self.reloader.started.set(self.source.clone());
    }

    /// Serves all requests until it is dropped.
    pub(super) async fn serve(
        self,
        tree: SupervisorHandle,
        #[cfg(all(feature = "systemd", target_os = "linux"))] notices: Option<Notices>,
    ) {
        let Self { source, reloader: _reloader, mut requests, .. } = self;
        while let Some(Request { trigger, forced, planned, answer }) = requests.recv().await {
            let Some(source) = &source else {
                let none = "the application has no configuration".to_owned();
                let _ = answer.send(Err(ApplyError::Unreadable(none)));
                continue;
            };
            let (plan, reason) = planned.unzip();
            let reason = reason.flatten();
            subscriber::info!(target: "verger::config", trigger, forced, reason, "reloading");
            #[cfg(all(feature = "systemd", target_os = "linux"))]
            if let Some(notices) = &notices {
                notices.reloading();
            }
            let result = reload(&tree, source, plan, forced).await;
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
            let _ = answer.send(result);
        }
    }
}

async fn reload(
    tree: &SupervisorHandle,
    source: &ConfigSource,
    planned: Option<Plan>,
    forced: bool,
) -> Result<Applied, ApplyError> {
    let plan = async {
        let plan = match planned {
            Some(plan) => plan,
            None => tree.plan(&source.read().await?).await?,
        };
        Ok(if forced { plan.forced() } else { plan })
    };
    let failed = |error: &ApplyError| metrics::reloaded(&tree.root_path(), error.result());
    tree.apply(plan.await.inspect_err(failed)?).await
}
