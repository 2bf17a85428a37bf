//! Reloading the configuration of an application: what asks for it, and how its outcome is logged.
//!
//! Knows where the configuration comes from. What it changes is up to the module `config`.
//!
//! # Invariants
//!
//! 1. One reload runs at a time. Requests that come meanwhile are served one after the other.
//! 2. A reload that fails changes nothing but the log.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};
use tokio::task::coop::consume_budget;

use super::companion::{Companion, OnReload, ReloadNews, RunStart};
use crate::config::{Applied, ApplyError, ConfigSource, IntoConfig, Plan};
use crate::error::RunError;
use crate::handle::SupervisorHandle;
use crate::named_task::OwnedTask;
use crate::spec::Supervisor;
use crate::{Application, subscriber};

type Answer = oneshot::Sender<Result<Applied, ApplyError>>;

/// Reloads the configuration of a running [`Application`], for triggers of your own.
///
/// Made by [`Application::reloader`]. A clone reloads the same application.
///
/// ```no_run
/// use std::time::Duration;
///
/// use verger::{Application, Supervisor};
///
/// # async fn run(read: fn() -> verger::config::Config) {
/// let app = Application::new(Supervisor::builder("app")).config(read);
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

struct Request {
    /// What, or who, has caused the reload, for the log.
    trigger: Cow<'static, str>,
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
        trigger: impl Into<Cow<'static, str>>,
        forced: bool,
        planned: Option<Planned>,
    ) -> Result<Applied, ApplyError> {
        if self.started.get().is_none() {
            consume_budget().await;
            return Err(ApplyError::NotRunning);
        }
        let (answer, answered) = oneshot::channel();
        let trigger = trigger.into();
        let _ = self.requests.send(Request { trigger, forced, planned, answer });
        answered.await.unwrap_or(Err(ApplyError::NotRunning))
    }
}

impl Application {
    /// Reads the configuration with this function, at the start and at each reload.
    ///
    /// The function returns a [`Config`](crate::config::Config), or a `Result` of one. It may block; it runs on a
    /// thread of its own. If the configuration is invalid at the start, all
    /// mistakes are printed, no child is started, and the exit code is 2. Later, an invalid configuration is
    /// logged and changes nothing.
    ///
    /// SIGHUP reloads what has changed, and SIGUSR2 [all of it](crate::config::Plan::forced), on Unix, with the
    /// feature `signal`; see [`reload_at_signals`](Self::reload_at_signals). So does a [`reloader`](Self::reloader),
    /// anywhere.
    pub fn config<R: IntoConfig>(mut self, read: impl Fn() -> R + Send + Sync + 'static) -> Self {
        self.companions.reloads.source = Some(ConfigSource::new(read));
        self
    }

    /// Sets whether SIGHUP and SIGUSR2 reload the configuration. Default: `true`.
    ///
    /// If not, or without a configuration, they do what they do in any program: they end the process.
    pub fn reload_at_signals(mut self, at_signals: bool) -> Self {
        self.companions.reloads.at_signals = at_signals;
        self
    }

    /// Returns what reloads the configuration while the application runs.
    #[must_use]
    pub fn reloader(&self) -> Reloader {
        self.companions.reloads.reloader.clone()
    }

    /// Checks the tree and its configuration, and starts nothing, if `check_only` is `true`.
    ///
    /// [`run`](Self::run) then returns 0 if the application could be started, and otherwise prints what is wrong
    /// and returns 2. Children check their values, too.
    ///
    /// ```no_run
    /// # use verger::{Application, Supervisor};
    /// # fn f(app: Application) -> Application {
    /// app.check_only(std::env::args().any(|argument| argument == "--check"))
    /// # }
    /// ```
    pub fn check_only(mut self, check_only: bool) -> Self {
        self.check_only = check_only;
        self
    }
}

/// The reloads of an application.
pub(super) struct Reloads {
    source: Option<ConfigSource>,
    /// Whether signals request a reload.
    at_signals: bool,
    reloader: Reloader,
    /// `None` once the task serves them.
    requests: Option<mpsc::UnboundedReceiver<Request>>,
    task: Option<OwnedTask<()>>,
}

impl Default for Reloads {
    fn default() -> Self {
        let (sender, requests) = mpsc::unbounded_channel();
        let reloader = Reloader { requests: sender, started: Arc::default() };
        Self { source: None, at_signals: true, reloader, requests: Some(requests), task: None }
    }
}

impl Reloads {
    /// Returns what requests a reload at a signal. `None`: signals don't reload the application.
    #[cfg_attr(not(unix), expect(dead_code, reason = "nothing receives signals"))]
    pub(super) fn at_signals(&self) -> Option<&Reloader> {
        (self.at_signals && self.source.is_some()).then_some(&self.reloader)
    }
}

#[async_trait]
impl Companion for Reloads {
    async fn configure(&mut self, tree: Supervisor) -> Result<Supervisor, RunError> {
        match &self.source {
            Some(source) => Ok(tree.configured(&source.read().await?).await?),
            None => Ok(tree),
        }
    }

    async fn prepare(&mut self, _tree: &mut Supervisor) -> Result<(), RunError> {
        let _ = self.reloader.started.set(self.source.clone());
        Ok(())
    }

    fn start(&mut self, run: &mut RunStart<'_>) {
        let (source, on_reload) = (self.source.take(), std::mem::take(&mut run.on_reload));
        let Some(requests) = self.requests.take() else { return };
        let server = ReloadServer { tree: run.handle(), source, requests, on_reload };
        self.task =
            Some(OwnedTask::restarted("verger reloads", server, |server| Box::pin(server.serve())));
    }
}

/// Logs why a configuration isn't used: one event for each mistake or child.
fn log_error(trigger: &str, error: &ApplyError) {
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

/// Serves all requests, one after the other.
struct ReloadServer {
    tree: SupervisorHandle,
    source: Option<ConfigSource>,
    requests: mpsc::UnboundedReceiver<Request>,
    on_reload: Vec<OnReload>,
}

impl ReloadServer {
    async fn serve(&mut self) {
        while let Some(Request { trigger, forced, planned, answer }) = self.requests.recv().await {
            let Some(source) = &self.source else {
                let none = "the application has no configuration".to_owned();
                let _ = answer.send(Err(ApplyError::Unreadable(none)));
                continue;
            };
            let (plan, reason) = planned.unzip();
            let reason = reason.flatten();
            let trigger = trigger.as_ref();
            subscriber::info!(target: "verger::config", trigger, forced, reason, "reloading");
            let mut news = ReloadNews { trigger, reason: reason.as_deref(), outcome: None };
            self.on_reload.iter().for_each(|call| call(&news));
            let result = reload(&self.tree, source, plan, forced).await;
            let outcome = match &result {
                Ok(applied) => format!("reloaded: {applied}"),
                Err(_) => "reload refused, configuration not changed".to_owned(),
            };
            news.outcome = Some((result.is_ok(), &outcome));
            self.on_reload.iter().for_each(|call| call(&news));
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
    let plan: Result<_, ApplyError> = async {
        let plan = match planned {
            Some(plan) => plan,
            None => tree.plan(&source.read().await?).await?,
        };
        Ok(if forced { plan.forced() } else { plan })
    }
    .await;
    #[cfg(feature = "metrics")]
    if let Err(error) = &plan {
        crate::metrics::reloaded(&tree.root_path(), ApplyError::result(error));
    }
    tree.apply(plan?).await
}
