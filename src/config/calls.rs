//! The calls of a handle about the configuration of its tree, and that of a tree before its start.

use std::any::TypeId;
use std::collections::HashSet;
use std::sync::Arc;

use tokio::task::coop::consume_budget;
use tokio::task::yield_now;

use super::apply::{self, aside, discard, recorded, to_end};
use super::checks::check_layers;
use super::child_config::validate;
use super::draft::{ConfigChange, Difference, Draft};
use super::facts::{Facts, Found, below, gather, gather_child};
use super::plan::{Applied, ApplyError, Change, Plan, Refusal};
use super::planner::Mistaken;
use super::secret::SecretTexts;
use super::{Config, ConfigError, code, planner};
use crate::child::check_policy;
use crate::error::ControlError;
use crate::handle::SupervisorHandle;
use crate::panic::Foreign;
use crate::panic::catch_panic;
use crate::path::Path;
use crate::policy::{ChildLayer, RestartPolicy, Withheld};
use crate::runtime::settings::{ConfigState, ValueChanges};
use crate::spec::Supervisor;
use crate::subscriber;

/// How many changes are logged before other tasks have their turn.
const LOGGED: usize = 64;

impl Supervisor {
    /// Sets the configuration that the tree starts with.
    ///
    /// All mistakes are found, and each child checks its value
    /// ([`ChildConfig::validate`](super::ChildConfig::validate)), before any child is started. A tree that is a
    /// child of another one gets its values from the root.
    ///
    /// ```
    /// use verger::config::{ApplyError, Config};
    /// use verger::{Context, Supervisor, worker};
    ///
    /// async fn idle(ctx: Context) {
    ///     ctx.cancelled().await;
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # #[cfg(feature = "config-file")] {
    /// let tree = Supervisor::builder("app").child(worker("db", idle)).build()?;
    ///
    /// let config = Config::from_toml("[db]
    /// shutdown = '20s'", "app.toml");
    /// let app = tree.clone().configured(&config).await?.start().await?;
    /// assert_eq!(app.child_spec("db").await?.shutdown.to_string(), "20s");
    /// # app.stop("the example is over").await?;
    ///
    /// let config = Config::from_toml("[bd]
    /// shutdown = '20s'", "app.toml");
    /// let error = tree.configured(&config).await.unwrap_err();
    /// assert!(matches!(error, ApplyError::Invalid(_)));
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ApplyError::Invalid`] with all mistakes and the reasons of children that refuse their values, or
    /// [`ApplyError::Refused`] with those reasons alone.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime that has its timers enabled.
    pub async fn configured(mut self, config: &Config) -> Result<Self, ApplyError> {
        let facts = Facts::of_blueprint(&self.blueprint());
        let difference = Difference::new(facts.root.as_str(), config, Arc::default(), false);
        let settings = self.settings();
        let draft = match planner::plan(config, &difference, &facts, true) {
            Ok(draft) => draft,
            Err(Mistaken { mut mistakes, readable }) => {
                // The children check what could be read, so that one round shows all there is to repair.
                let refusals = validate(&readable, &settings).await.err().into_iter().flatten();
                mistakes.extend(refusals.map(|refusal| config.mistake_of(&facts.root, &refusal)));
                return Err(ConfigError::of_all(mistakes).into());
            }
        };
        validate(&draft.configs, &settings).await.map_err(ApplyError::Refused)?;
        apply::apply_to_new(&settings, draft);
        self.set_settings(settings.fork());
        Ok(self)
    }
}

impl SupervisorHandle {
    /// Returns what a configuration would change in the tree, without changing anything.
    ///
    /// The plan is about the whole tree, whichever of its supervisors the handle belongs to.
    ///
    /// # Errors
    ///
    /// [`ApplyError::Invalid`] with all mistakes, and [`ApplyError::Control`] if the tree has ended.
    pub async fn plan(&self, config: &Config) -> Result<Plan, ApplyError> {
        plan(self, config, None).await
    }

    /// Returns what new code and a configuration would change in the tree, without changing anything.
    ///
    /// `tree` is the new code: the same root, with children that were added, removed or changed. Children are the
    /// same if their paths are. A child that both have keeps its task; its new function, and what of its spec
    /// can't be compared, count from its next start on. A child that can't go on as the new one is replaced: a
    /// worker that becomes a supervisor, for example, or a child with a different mailbox. Children that calls
    /// have added are kept. Callbacks of supervisors ([`on_child_failure`]) and their dead-letter options count
    /// from their next start on.
    ///
    /// # Errors
    ///
    /// As for [`plan`](Self::plan), and [`ApplyError::Refused`] if the root is a different kind of supervisor.
    ///
    /// [`on_child_failure`]: crate::SupervisorBuilder::on_child_failure
    pub async fn plan_tree(&self, tree: &Supervisor, config: &Config) -> Result<Plan, ApplyError> {
        plan(self, config, Some(tree.clone())).await
    }

    /// Applies a plan: checks all new values, and then changes the running tree.
    ///
    /// A plan that waits for another one is made again of the tree as it is then. What hasn't changed isn't
    /// touched:
    ///
    /// 1. Each child whose configuration has changed checks its value, all at once. If any refuses, panics or
    ///    takes too long, nothing is changed.
    /// 2. Children that are disabled, or restart with their new configuration, stop within their graces.
    /// 3. All values are set. Policies count from the next failure on; a backoff that has begun keeps its
    ///    deadline unless a call [resumes](Self::resume) the child. Limits keep the restarts that they have counted.
    /// 4. Children that are enabled, or restart, are started. If one doesn't become active within 30 s, the plan
    ///    is taken back.
    ///
    /// A child that gets a new value live may fail while it uses it. It then finds the new value when it comes
    /// back.
    ///
    /// ```
    /// use verger::config::Config;
    /// use verger::{Context, Supervisor, worker};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # #[cfg(feature = "config-file")] {
    /// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
    /// let app = Supervisor::builder("app").child(db).build()?.start().await?;
    ///
    /// let config = Config::from_toml("[db]
    /// shutdown = '20s'", "app.toml");
    /// let plan = app.plan(&config).await?;
    /// assert_eq!(plan.to_string(), r#"~ app/db  shutdown  "5s" → "20s"  live  app.toml:2"#);
    /// assert_eq!(app.apply(plan).await?.to_string(), "1 change, 0 unchanged");
    /// # app.stop("the example is over").await?;
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// See [`ApplyError`]. Everything is then as it was before.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped after its first poll, the plan is applied nevertheless.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime that has its timers enabled.
    pub async fn apply(&self, plan: Plan) -> Result<Applied, ApplyError> {
        let handle = self.clone();
        to_end(self, async move {
            let applied = apply_plan(&handle, plan).await;
            #[cfg(feature = "metrics")]
            {
                let result = applied.as_ref().map_or_else(ApplyError::result, |_| "applied");
                crate::metrics::reloaded(&handle.root_path(), result);
            }
            applied
        })
        .await
    }

    /// Sets the restart policy of a running child, until [`clear_policy`](Self::clear_policy) or a forced reload.
    ///
    /// It takes precedence over the file and the code, and counts from the next failure on. A value that the
    /// policy leaves open is that of the file, or of the code. For all children of a dynamic supervisor with one
    /// name, leave out the serial number: `conns/conn`.
    ///
    /// # Errors
    ///
    /// [`ApplyError::Control`] if there is no such child, or if the policy is invalid.
    pub async fn set_policy(&self, path: &str, policy: RestartPolicy) -> Result<(), ApplyError> {
        let full = self.child_path(path).await?;
        if let Err(error) = check_policy(&policy, &|| full.clone()) {
            consume_budget().await;
            return Err(ControlError::from(error).into());
        }
        self.change_call(full, Some(policy)).await
    }

    /// Ends what [`set_policy`](Self::set_policy) has set for a child.
    ///
    /// # Errors
    ///
    /// [`ApplyError::Control`] if there is no such child.
    pub async fn clear_policy(&self, path: &str) -> Result<(), ApplyError> {
        self.change_call(self.child_path(path).await?, None).await
    }

    /// Sets the configuration of a running child, as [`apply`](Self::apply) does for a file.
    ///
    /// The value counts until the next file that has a different configuration for the child, or a forced reload.
    /// What a child says about it is returned as it is: only of values from a file is it known which texts are secrets.
    ///
    /// # Errors
    ///
    /// [`ApplyError::Refused`] if the child refuses the value, or its configuration is of a different type or has
    /// none; [`ApplyError::RolledBack`]; [`ApplyError::Control`] if there is no such child.
    ///
    /// # Cancel safety
    ///
    /// As for [`apply`](Self::apply).
    pub async fn set_config<C>(&self, path: &str, value: C) -> Result<(), ApplyError>
    where
        C: Send + Sync + 'static,
    {
        let (handle, full) = (self.clone(), self.child_path(path).await?);
        to_end(self, async move {
            let settings = Arc::clone(handle.settings());
            let _applying = settings.applying.lock().await;
            let reads = settings.note_reads();
            let facts = gather_child(&handle, &full).await?;
            let below_root = facts.below_root(&full);
            let Found::Child(child, _) = facts.find(&below_root) else {
                return Err(handle.not_found(full).into());
            };
            let wanted = std::any::type_name::<C>();
            let refuse = |reason: String| ApplyError::Refused(vec![Refusal::new(&full, reason)]);
            let spec = match &child.config {
                None => {
                    return Err(refuse(format!("it has no configuration; `{wanted}` was given")));
                }
                Some(spec) if spec.type_id != TypeId::of::<C>() => {
                    let reason =
                        format!("its configuration is a `{}`, not a `{wanted}`", spec.type_name);
                    return Err(refuse(reason));
                }
                Some(spec) => Arc::clone(spec),
            };
            let (path, segments) = (full.clone(), child.segments.clone());
            let state = ConfigState {
                value: Some(Foreign::new(Arc::new(value))),
                is_of_call: true,
                place: Some("call".into()),
            };
            let secrets = SecretTexts::default();
            let change = ConfigChange { path, segments, spec, state, secrets };
            // A child that has waited for its configuration starts.
            let waits = child.rules.withheld() == Some(Withheld::Unconfigured);
            let toggled = waits.then(|| change.toggled(true)).into_iter().collect();
            let configured = vec![(full.clone(), true)];
            let values = ValueChanges { configured, ..ValueChanges::default() };
            let configs = vec![change];
            let mut draft = Draft { configs, values, toggled, ..Draft::default() };
            validate(&draft.configs, &settings).await.map_err(ApplyError::Refused)?;
            apply::apply(&handle, &mut draft, &reads).await?;
            subscriber::info!(target: "verger::config", child = %full, "configured by a call");
            Ok(())
        })
        .await
    }

    /// Returns the full path of a child, for values.
    async fn child_path(&self, path: &str) -> Result<Path, ApplyError> {
        if path.split('/').any(str::is_empty) {
            consume_budget().await;
            return Err(ControlError::NotAChild { path: path.to_owned() }.into());
        }
        let (given, full) = (Path::from_text(path.to_owned()), self.full_path(path));
        let instead = given.without_serials();
        if instead != given {
            consume_budget().await;
            let reason =
                format!("children with one name share their values; write `{instead}` instead");
            return Err(ApplyError::Refused(vec![Refusal::new(&full, reason)]));
        }
        Ok(full.without_serials())
    }

    async fn change_call(
        &self,
        path: Path,
        policy: Option<RestartPolicy>,
    ) -> Result<(), ApplyError> {
        let handle = self.clone();
        to_end(self, async move {
            // It stops and starts nothing, so it doesn't wait for a plan that does.
            let facts = gather_child(&handle, &path).await;
            let is_set = policy.is_some();
            let layer = policy.map(|policy| ChildLayer { policy, ..ChildLayer::default() });
            let layer = layer.map(Arc::new);
            let found = facts.as_ref().map(|facts| facts.find(&facts.below_root(&path)));
            if let Ok(Found::Child(child, supervisor)) = found {
                let file = child.rules.layers.file.clone();
                check_layers(&path, child, &supervisor.rules, file, layer.clone())
                    .map_err(ControlError::from)?;
            } else if is_set || !handle.settings().called().contains(&path) {
                return Err(handle.not_found(path).into());
            }
            let calls = vec![(path.clone(), layer)];
            handle.settings().exchange(&mut ValueChanges { calls, ..ValueChanges::default() });
            let above = path.parent().map(|above| handle.all_at(&above));
            for supervisor in above.into_iter().flatten() {
                handle.refresh_named(&supervisor, &[path.name().to_owned()]).await?;
            }
            if is_set {
                subscriber::info!(target: "verger::config", child = %path, "policy set by a call");
            } else {
                subscriber::info!(target: "verger::config", child = %path, "policy of a call cleared");
            }
            Ok(())
        })
        .await
    }
}

/// Checks and applies a plan, which may have been made of the tree as it was before.
async fn apply_plan(handle: &SupervisorHandle, plan: Plan) -> Result<Applied, ApplyError> {
    let settings = Arc::clone(handle.settings());
    let _applying = settings.applying.lock().await;
    let reads = settings.note_reads();
    let Plan { config, tree, mut difference, draft: outdated, .. } = plan;
    discard(outdated);
    if difference.forced != plan.forced || !difference.is_since(&recorded(&settings)) {
        difference = compare(handle, &config, plan.forced).await?;
    }
    let mut draft = draft(handle, &config, tree.as_ref(), &difference).await?;
    if plan.forced {
        let called = settings.called();
        draft.changes.extend(called.iter().map(Change::of_ended_call));
        Change::sort(&mut draft.changes);
        draft.values.calls = called.into_iter().map(|path| (path, None)).collect();
    }
    validate(&draft.configs, &settings).await.map_err(ApplyError::Refused)?;
    let result = apply::apply(handle, &mut draft, &reads).await;
    let (changes, unchanged) = (std::mem::take(&mut draft.changes), draft.unchanged);
    // The values that were replaced are gone when the answer comes.
    let replaced = (std::mem::take(&mut draft.configs), std::mem::take(&mut draft.code));
    catch_panic(|| drop(replaced));
    discard((draft, config, difference));
    result?;
    for some in changes.chunks(LOGGED) {
        for change in some {
            subscriber::info!(target: "verger::config", "{change}");
        }
        yield_now().await;
    }
    Ok(Applied { changes, unchanged })
}

async fn plan(
    handle: &SupervisorHandle,
    config: &Config,
    tree: Option<Supervisor>,
) -> Result<Plan, ApplyError> {
    let config = Arc::new(config.clone());
    let difference = compare(handle, &config, false).await?;
    let draft = Arc::new(draft(handle, &config, tree.as_ref(), &difference).await?);
    Ok(Plan { config, tree, forced: false, difference, draft })
}

/// Compares a configuration with the one that was applied last.
async fn compare(
    handle: &SupervisorHandle,
    config: &Arc<Config>,
    forced: bool,
) -> Result<Arc<Difference>, ControlError> {
    let (config, before) = (Arc::clone(config), recorded(handle.settings()));
    let root = handle.root_path();
    let compared =
        aside(handle, move || Difference::new(root.as_str(), &config, before, forced)).await?;
    Ok(Arc::new(compared))
}

/// Makes the plan of a configuration for the tree as it is now.
async fn draft(
    handle: &SupervisorHandle,
    config: &Arc<Config>,
    tree: Option<&Supervisor>,
    difference: &Arc<Difference>,
) -> Result<Draft, ApplyError> {
    let mut difference = Arc::clone(difference);
    let root = handle.root_path();
    let Some(running) = handle.running_at(&root) else {
        return Err(ControlError::Ended { path: root }.into());
    };
    let mut facts = gather(handle, &running.blueprint(), config, &difference).await?;
    let (mut code, mut changes) = (Vec::new(), Vec::new());
    if let Some(tree) = tree {
        let new = tree.blueprint();
        let compared = code::compare(&root, running.blueprint(), Arc::clone(&new));
        (code, changes) = compared.ok_or_else(|| {
            let reason = "the new root is a different kind of supervisor; restart the program";
            ApplyError::Refused(vec![Refusal::new(&root, reason)])
        })?;
        for code in &mut code {
            let names: Vec<_> = code.stopped.iter().chain(&code.started).cloned().collect();
            let existing = match handle.running_at(&code.full) {
                Some(supervisor) => handle.facts_of(&supervisor, &names).await?,
                None => Vec::new(),
            };
            let existing: HashSet<_> = existing.iter().map(|it| it.name.to_string()).collect();
            let kept = code.keep_existing(&existing);
            changes.retain(|change| !kept.iter().any(|path| path.as_str() == change.path));
        }
        let mut removed = Vec::new();
        for code in &code {
            facts.remove(&code.path, &code.stopped);
            let gone = code.stopped.iter().filter(|name| !code.started.contains(name));
            removed.extend(gone.map(|name| below(&code.path, name)));
        }
        // Their sections are mistakes now, also if they are the same as before.
        difference = Arc::new(difference.with(&removed));
        let mut declared = Facts::of_blueprint(&new);
        for new in &code {
            for name in new.started.iter().chain(&new.moved) {
                declared.mark_new(&new.path, name);
            }
        }
        declared.extend(facts);
        facts = declared;
    }
    let config = Arc::clone(config);
    let draft = aside(handle, move || {
        let plan = planner::plan(&config, &difference, &facts, false);
        // The values that were read are dropped here, and not by the caller.
        let mut draft = plan.map_err(|mistaken| mistaken.mistakes)?;
        draft.changes.extend(changes);
        Change::sort(&mut draft.changes);
        draft.code = code;
        Ok(draft)
    });
    draft.await?.map_err(|mistakes| ConfigError::of_all(mistakes).into())
}
