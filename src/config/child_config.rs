//! The configuration of one child: its type, how a new value is checked, and what a change leads to.
//!
//! Knows nothing of trees. A [`Reader`] is what the planner and the driver of a plan use of it, whatever
//! the type.

use std::any::{TypeId, type_name};
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::de::{Decoded, decode};
use super::mistake::Mistake;
use super::node::Node;
use crate::child::{ChildSpec, ConfigSpec};
use crate::exit::{Exit, Outcome};
use crate::runtime::settings::ConfigValue;

/// How long the check of a new value may take.
const WITHIN: Duration = Duration::from_secs(30);

type Check = Arc<dyn Fn(ConfigValue) -> Pin<Box<dyn Future<Output = Exit> + Send>> + Send + Sync>;

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
    check: Option<Check>,
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
        self.check = Some(Arc::new(move |value: ConfigValue| {
            let value = value.downcast::<C>().map(&check);
            Box::pin(async {
                match value {
                    Ok(checked) => checked.await.into_exit(),
                    // The planner has compared the types.
                    Err(_) => Err("the value has a different type".into()),
                }
            })
        }));
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
        let decode = |node: &Node, key: &str| {
            let Decoded { value, secrets } = decode::<C>(node, key)?;
            let value: ConfigValue = Arc::new(value);
            Ok(Decoded { value, secrets })
        };
        let reader = Reader { decode: Box::new(decode), check, within };
        let (type_id, type_name) = (TypeId::of::<C>(), type_name::<C>());
        let spec = ConfigSpec { type_id, type_name, section, restarts, reader: Box::new(reader) };
        self.set_config(spec, awaits)
    }
}

type Decode = Box<dyn Fn(&Node, &str) -> Result<Decoded<ConfigValue>, Vec<Mistake>> + Send + Sync>;

/// Reads and checks the values of one type.
pub(super) struct Reader {
    decode: Decode,
    check: Option<Check>,
    pub(super) within: Duration,
}

impl Reader {
    pub(super) fn of(spec: &ConfigSpec) -> &Self {
        spec.reader.downcast_ref().expect("the reader that `ChildSpec::config` has made")
    }

    /// Reads a value. `key` is the path of the table, for messages.
    pub(super) fn read(
        &self,
        node: &Node,
        key: &str,
    ) -> Result<Decoded<ConfigValue>, Vec<Mistake>> {
        (self.decode)(node, key)
    }

    /// Checks a value, if there is a function for that.
    pub(super) fn check(
        &self,
        value: &ConfigValue,
    ) -> Option<impl Future<Output = Exit> + Send + use<>> {
        self.check.clone().map(|check| {
            let value = Arc::clone(value);
            // The function runs in the future, so that its panic is caught with that of its future.
            async move { check(value).await }
        })
    }
}
