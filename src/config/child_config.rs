//! The configuration of one child: its type, how a new value is checked, what a change leads to, and how the child
//! reads it.
//!
//! A [`Reader`] is what the planner and the driver of a plan use of it, whatever the type.

use std::any::{TypeId, type_name};
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::time::{sleep_until, timeout};

use super::apply::recorded;
use super::de::{Decoded, decode};
use super::draft::{AppliedRecord, ConfigChange};
use super::facts::split;
use super::mistake::{ConfigError, Mistake};
use super::node::{ValueNode, join};
use super::plan::Refusal;
use crate::child::{ChildSpec, ConfigSpec, Context};
use crate::clock::now;
use crate::exit::{Exit, Outcome};
use crate::handle::supervisor_of;
use crate::panic::{CatchPanic, Foreign, catch_panic};
use crate::path::Path;
use crate::runtime::SupervisorShared;
use crate::runtime::settings::{ConfigCell, ConfigCheck, ConfigState, ConfigValue, Settings};
use crate::start_of::cut;
use crate::{named_task, subscriber};

/// How long the check of a new value may take.
const WITHIN: Duration = Duration::from_secs(30);

/// The configuration of a child: the table `config` of its section, as a type.
///
/// Set it with [`ChildSpec::config`]. The child reads the current value, and waits for changes, through
/// [`Context::config`](crate::Context::config).
///
/// ```
/// use serde::Deserialize;
/// use verger::config::ChildConfig;
/// use verger::{ChildSpec, Context, Exit, worker};
///
/// #[derive(Deserialize)]
/// #[serde(default, deny_unknown_fields)]
/// struct Settings {
///     batch: usize,
/// }
///
/// impl Default for Settings {
///     fn default() -> Self {
///         Self { batch: 100 }
///     }
/// }
///
/// async fn write(ctx: Context) -> Exit {
///     let mut config = ctx.config::<Settings>()?;
///     loop {
///         println!("batches of {}", config.get().batch);
///         tokio::select! {
///             () = config.changed() => {}
///             () = ctx.cancelled() => return Ok(()),
///         }
///     }
/// }
///
/// fn writer() -> ChildSpec {
///     worker("writer", write).config(ChildConfig::<Settings>::new().validate(async |new| -> Exit {
///         if new.batch == 0 {
///             return Err("`batch` is zero; write at least 1".into());
///         }
///         Ok(())
///     }))
/// }
/// # drop(writer);
/// ```
#[must_use = "it does nothing until it is passed to a spec"]
pub struct ChildConfig<C> {
    check: Option<ConfigCheck>,
    within: Duration,
    section: Option<String>,
    restarts: bool,
    awaits: bool,
    of: PhantomData<fn() -> C>,
}

impl<C: DeserializeOwned + Send + Sync + 'static> ChildConfig<C> {
    /// Creates a configuration whose values are of type `C`.
    ///
    /// Without a table `config` in the file, the value is read from an empty table. So give each field a
    /// default, or the file has to have the others. Refuse unknown keys with
    /// `#[serde(deny_unknown_fields)]`, so that a typo doesn't mean the default.
    pub fn new() -> Self {
        let section = None;
        let (restarts, awaits, of) = (false, false, PhantomData);
        Self { check: None, within: WITHIN, section, restarts, awaits, of }
    }

    /// Checks each new value before any child gets one. Default: every value that can be read is valid.
    ///
    /// A check that needs the state of the running child is set by that, with
    /// [`Context::on_validate`](crate::Context::on_validate).
    ///
    /// An error, a panic, or no answer in [time](Self::validate_within) refuses the plan as a whole: see
    /// [`SupervisorHandle::apply`](crate::SupervisorHandle::apply). The function is called whether the child
    /// runs or not, at the start before any child is started.
    ///
    /// An async closure needs its return type: `async |new| -> Exit { … }`. Don't move captured values into
    /// its future.
    pub fn validate<F, Fut, O>(mut self, check: F) -> Self
    where
        F: Fn(Arc<C>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = O> + Send + 'static,
        O: Outcome,
    {
        self.check = Some(check_of(check));
        self
    }

    /// Sets how long [`validate`](Self::validate) may take. Default: 30 s.
    ///
    /// A check that takes longer than 5 s is logged, by the path of the child, every 5 s.
    pub fn validate_within(mut self, within: Duration) -> Self {
        self.within = within;
        self
    }

    /// Takes the values from the table `config` of a different section, for children that share them.
    ///
    /// `path` is the path of the section below the root, such as `storage`. There need not be a child with that
    /// path. Without one, the section can have no other table or value.
    pub fn section(mut self, path: impl Into<String>) -> Self {
        self.section = Some(path.into());
        self
    }

    /// Restarts the child when its configuration changes, for a child that reads it only at its start.
    ///
    /// The restart counts against no limit. If the child doesn't become active with the new value, it is
    /// started with the old one, and the plan is taken back.
    pub fn restart_on_change(mut self) -> Self {
        self.restarts = true;
        self
    }

    /// Starts the child only once the file has a table `config` for it, at its own path or for all children
    /// of its supervisor. Default: the child starts with its supervisor.
    ///
    /// Until then it is [`Discovered`](crate::Lifecycle::Discovered), and its siblings start without it. A
    /// common table alone doesn't start it.
    pub fn start_when_configured(mut self) -> Self {
        self.awaits = true;
        self
    }
}

/// Returns a check of values whose type isn't known where it is kept.
fn check_of<C, F, Fut, O>(check: F) -> ConfigCheck
where
    C: Send + Sync + 'static,
    F: Fn(Arc<C>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = O> + Send + 'static,
    O: Outcome,
{
    Foreign::new(Arc::new(move |value: ConfigValue| {
        let value = Arc::clone(value.shared()).downcast::<C>().map(&check);
        Box::pin(async {
            match value {
                Ok(checked) => checked.await.into_exit(),
                // The planner has compared the types.
                Err(_) => Err("the value has a different type".into()),
            }
        })
    }))
}

impl<C: DeserializeOwned + Send + Sync + 'static> Default for ChildConfig<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C> fmt::Debug for ChildConfig<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildConfig")
            .field("type", &type_name::<C>())
            .field("restart_on_change", &self.restarts)
            .field("start_when_configured", &self.awaits)
            .finish_non_exhaustive()
    }
}

impl ChildSpec {
    /// Sets the type of the child's own configuration. Default: none, and a table `config` is a mistake.
    ///
    /// See [`ChildConfig`]. The last call counts.
    pub fn config<C>(self, config: ChildConfig<C>) -> Self
    where
        C: DeserializeOwned + Send + Sync + 'static,
    {
        let ChildConfig { check, within, section, restarts, awaits, of: _ } = config;
        let decode = |node: &ValueNode, key: &str| {
            let Decoded { value, secrets, texts } = decode::<C>(node, key)?;
            let value: ConfigValue = Foreign::new(Arc::new(value));
            Ok(Decoded { value, secrets, texts })
        };
        let reader = Reader { decode: Box::new(decode), check, within };
        let (type_id, type_name) = (TypeId::of::<C>(), type_name::<C>());
        let spec = ConfigSpec { type_id, type_name, section, restarts, reader: Box::new(reader) };
        self.set_config(spec, awaits)
    }
}

type Decode =
    Box<dyn Fn(&ValueNode, &str) -> Result<Decoded<ConfigValue>, Vec<Mistake>> + Send + Sync>;

/// Reads and checks the values of one type.
pub(super) struct Reader {
    decode: Decode,
    check: Option<ConfigCheck>,
    within: Duration,
}

impl Reader {
    pub(super) fn of(spec: &ConfigSpec) -> &Self {
        spec.reader.downcast_ref().expect("the reader that `ChildSpec::config` has made")
    }

    /// Reads a value. `key` is the path of the table, for messages.
    pub(super) fn read(
        &self,
        node: &ValueNode,
        key: &str,
    ) -> Result<Decoded<ConfigValue>, Vec<Mistake>> {
        (self.decode)(node, key)
    }
}

impl Context {
    /// Returns the configuration of this child: its current value, and the changes from now on.
    ///
    /// The spec has to name the type: see [`ChildSpec::config`](crate::ChildSpec::config). Without a
    /// configuration in a file, the value is read from an empty table.
    ///
    /// # Errors
    ///
    /// If the spec names a different type or none, or if there is no value and an empty table is none.
    pub fn config<C: Send + Sync + 'static>(&self) -> Result<ConfigWatch<C>, ConfigError> {
        let spec = self.config_spec::<C>()?;
        let supervisor = supervisor_of(self);
        let path = supervisor.path().join(self.incarnation.name());
        let cell = supervisor.tree.settings.config(&path);
        let source = Source { supervisor, spec: Arc::clone(spec), path, cell };
        let receiver = source.cell.subscribe();
        source.supervisor.tree.settings.reads(&source.path);
        let last = source.value().map_err(ConfigError::of_all)?;
        Ok(ConfigWatch { receiver, last, source: Arc::new(source) })
    }

    /// Checks each new configuration of this child while this incarnation runs, beside the check of its
    /// [spec](crate::config::ChildConfig::validate).
    ///
    /// For a check that needs the child's state: whether a connection that is open can be moved, or how much is queued. An
    /// error, a panic, or no answer in the time of [`validate_within`](crate::config::ChildConfig::validate_within)
    /// refuses the plan as a whole. The check is removed when the child is cancelled or exits. Each call adds one.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    ///
    /// use serde::Deserialize;
    /// use verger::{Context, Exit};
    ///
    /// #[derive(Default, Deserialize)]
    /// #[serde(default)]
    /// struct Settings {
    ///     slots: usize,
    /// }
    ///
    /// async fn pool(ctx: Context) -> Exit {
    ///     let busy = Arc::new(AtomicUsize::new(0));
    ///     let now = Arc::clone(&busy);
    ///     ctx.on_validate(move |new: Arc<Settings>| {
    ///         let busy = now.load(Ordering::Relaxed);
    ///         let fits = new.slots >= busy;
    ///         async move { if fits { Ok(()) } else { Err(format!("{busy} slots are in use")) } }
    ///     })?;
    ///     ctx.cancelled().await;
    ///     Ok(())
    /// }
    /// # drop(pool);
    /// ```
    ///
    /// # Errors
    ///
    /// If the spec names a different type or none.
    pub fn on_validate<C, F, Fut, O>(&self, check: F) -> Result<(), ConfigError>
    where
        C: Send + Sync + 'static,
        F: Fn(Arc<C>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = O> + Send + 'static,
        O: Outcome,
    {
        self.config_spec::<C>()?;
        let supervisor = supervisor_of(self);
        let path = supervisor.path().join(self.incarnation.name());
        let guard = supervisor.tree.settings.add_check(&path, check_of(check));
        // Of a child that is being stopped, the guard is dropped here.
        let _ = self.incarnation.cell.hold(Box::new(guard));
        Ok(())
    }

    fn config_spec<C: Send + Sync + 'static>(&self) -> Result<&Arc<ConfigSpec>, ConfigError> {
        let path = self.path();
        let spec = self.incarnation.config().filter(|spec| spec.type_id == TypeId::of::<C>());
        spec.ok_or_else(|| {
            let wanted = type_name::<C>();
            let message = match self.incarnation.config() {
                Some(spec) => format!(
                    "the configuration of `{path}` is a `{}`, not a `{wanted}`; name one type in its spec \
                     and here",
                    spec.type_name
                ),
                None => format!(
                    "`{path}` has no configuration; name its type in its spec, with \
                     `.config(ChildConfig::<{wanted}>::new())`"
                ),
            };
            ConfigError::of_all(vec![Mistake::new(None, path.as_str(), message)])
        })
    }
}

/// Where a child's configuration comes from.
struct Source {
    supervisor: Arc<SupervisorShared>,
    spec: Arc<ConfigSpec>,
    path: Path,
    cell: Arc<ConfigCell>,
}

impl Source {
    /// Returns the current value, which is read from what was applied last if no plan has set it.
    fn value<C: Send + Sync + 'static>(&self) -> Result<Arc<C>, Vec<Mistake>> {
        let settings = &self.supervisor.tree.settings;
        loop {
            let known = self.cell.borrow().value.clone();
            if let Some(known) = known.and_then(|value| Arc::clone(value.shared()).downcast().ok())
            {
                return Ok(known);
            }
            settings.reads(&self.path);
            let record = recorded(settings);
            let (value, place) = self.read(&record)?;
            // Without a notification: an incarnation that watches has a value already.
            let mut state = ConfigState { value: Some(value), is_of_call: false, place };
            self.cell.send_if_modified(|current| {
                // Otherwise a plan was applied meanwhile. What isn't kept is dropped once the cell is free.
                if Arc::ptr_eq(&recorded(settings), &record) {
                    std::mem::swap(&mut current.value, &mut state.value);
                    std::mem::swap(&mut current.place, &mut state.place);
                }
                false
            });
        }
    }

    fn read(
        &self,
        record: &AppliedRecord,
    ) -> Result<(ConfigValue, Option<Arc<str>>), Vec<Mistake>> {
        let key = join(&join("", self.path.as_str()), "config");
        let path = self.path.without_serials();
        let below = path.as_str().split_once('/').map_or("", |(_, below)| below);
        let (above, name) = split(below).unwrap_or_default();
        let written = record.config(&self.spec, above, name).unwrap_or_default();
        let place = record.place(&self.spec, above, name);
        Reader::of(&self.spec).read(&written, &key).map(|read| (read.value, place))
    }
}

/// The configuration of a child; made by [`Context::config`].
///
/// A clone sees the same changes.
///
/// The example of [`ChildConfig`](crate::config::ChildConfig) reads one.
pub struct ConfigWatch<C> {
    receiver: watch::Receiver<ConfigState>,
    /// The value that was current last.
    last: Arc<C>,
    source: Arc<Source>,
}

impl<C: Send + Sync + 'static> ConfigWatch<C> {
    /// Returns the current value, and marks it as seen.
    #[must_use]
    pub fn get(&mut self) -> Arc<C> {
        drop(self.receiver.borrow_and_update());
        // A child that was replaced by one of a different type keeps its own value.
        if let Ok(value) = self.source.value() {
            self.last = value;
        }
        Arc::clone(&self.last)
    }

    /// Waits until the value differs from the one that was last [seen](Self::get), or that was current when
    /// this watch was made. Never resolves once the tree has ended.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe.
    pub async fn changed(&mut self) {
        if self.receiver.changed().await.is_err() {
            std::future::pending().await
        }
    }
}

impl<C> Clone for ConfigWatch<C> {
    fn clone(&self) -> Self {
        Self {
            receiver: self.receiver.clone(),
            last: Arc::clone(&self.last),
            source: Arc::clone(&self.source),
        }
    }
}

impl<C> fmt::Debug for ConfigWatch<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigWatch").finish_non_exhaustive()
    }
}

/// How often a slow check is logged.
const SLOW: Duration = Duration::from_secs(5);

/// Checks the new configuration of each child, all at once.
pub(super) async fn validate(
    configs: &[ConfigChange],
    settings: &Settings,
) -> Result<(), Vec<Refusal>> {
    let mut checks = tokio::task::JoinSet::new();
    for (number, change) in configs.iter().enumerate() {
        let reader = Reader::of(&change.spec);
        let Some(value) = change.state.value.clone() else { continue };
        let mut all = settings.checks_of(&change.path);
        all.splice(..0, reader.check.clone());
        if all.is_empty() {
            continue;
        }
        // The functions run in the future, so that a panic of either is caught.
        let check = async move {
            for check in all {
                (check.shared())(value.clone()).await?;
            }
            Ok(())
        };
        let (path, place, within) = (change.path.clone(), change.place(), reader.within);
        let secrets = change.secrets.clone();
        let name = || format!("{} (validate)", change.path);
        named_task::spawn_in(&mut checks, name, async move {
            // A value of the user's may panic in its `Drop` when the check has ended.
            let checked = CatchPanic(Box::pin(check_one(&path, within, check))).await;
            let reason = checked.unwrap_or_else(|panic| Some(format!("panicked: {panic}")));
            let reason = reason.map(|reason| cut(secrets.hide(reason)));
            (number, reason.map(|reason| Refusal { place, ..Refusal::new(&path, reason) }))
        });
    }
    let mut refusals = Vec::new();
    while let Some(checked) = checks.join_next().await {
        if let Ok((number, Some(refusal))) = checked {
            refusals.push((number, refusal));
        }
    }
    refusals.sort_by_key(|&(number, _)| number);
    if refusals.is_empty() {
        return Ok(());
    }
    Err(refusals.into_iter().map(|(_, refusal)| refusal).collect())
}

/// Returns why a value is refused.
async fn check_one(
    path: &Path,
    within: Duration,
    check: impl Future<Output = Exit> + Send,
) -> Option<String> {
    let began = now();
    let slow = async {
        let mut waited = SLOW;
        loop {
            sleep_until((began + waited).into()).await;
            subscriber::warn!(target: "verger::config", child = %path, ?waited, "waiting for the check of a new configuration");
            waited += SLOW;
        }
    };
    let checked = timeout(within, CatchPanic(Box::pin(check)));
    tokio::select! {
        biased;
        checked = checked => match checked {
            Ok(Ok(Ok(()))) => None,
            Ok(Ok(Err(error))) => Some(
                catch_panic(|| error.to_string())
                    .unwrap_or_else(|| "it panicked while it said why".to_owned()),
            ),
            Ok(Err(panic)) => Some(format!("panicked: {panic}")),
            Err(_) => Some(format!("no answer within {within:?}")),
        },
        () = slow => None,
    }
}
