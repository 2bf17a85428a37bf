//! How a child reads its configuration.

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

use super::apply::recorded;
use super::child_config::Reader;
use super::draft::Record;
use super::facts::split;
use super::mistake::{ConfigError, Mistake};
use super::node::join;
use crate::child::{ConfigSpec, Context};
use crate::handle::supervisor_of;
use crate::path::Path;
use crate::runtime::SupervisorShared;
use crate::runtime::settings::{ConfigCell, ConfigState, ConfigValue};

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
        let path = self.path();
        let spec = self.incarnation.config().filter(|spec| spec.type_id == TypeId::of::<C>());
        let Some(spec) = spec else {
            let wanted = std::any::type_name::<C>();
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
            return Err(ConfigError::of_all(vec![Mistake::new(None, path.as_str(), message)]));
        };
        let supervisor = supervisor_of(self);
        let path = supervisor.path().join(self.incarnation.name());
        let cell = supervisor.tree.settings.config(&path);
        let source = Source { supervisor, spec: Arc::clone(spec), path, cell };
        let receiver = source.cell.subscribe();
        source.supervisor.tree.settings.reads(&source.path);
        let last = source.value().map_err(ConfigError::of_all)?;
        Ok(ConfigWatch { receiver, last, source: Arc::new(source) })
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
            if let Some(known) = known.and_then(|value| value.downcast().ok()) {
                return Ok(known);
            }
            settings.reads(&self.path);
            let record = recorded(settings);
            let (value, place) = self.read(&record)?;
            // Without a notification: an incarnation that watches has a value already.
            self.cell.send_if_modified(|state| {
                // Otherwise a plan was applied meanwhile.
                if Arc::ptr_eq(&recorded(settings), &record) {
                    (state.value, state.place) = (Some(value), place);
                }
                false
            });
        }
    }

    fn read(&self, record: &Record) -> Result<(ConfigValue, Option<Arc<str>>), Vec<Mistake>> {
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
