//! How a child reads its configuration.

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

use super::apply::recorded;
use super::child_config::Reader;
use super::mistake::{ConfigError, Mistake};
use super::node::join;
use crate::child::Context;
use crate::handle::supervisor_of;
use crate::runtime::settings::ConfigState;

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
            return Err(ConfigError::of(Mistake::new(None, path.as_str(), message)));
        };
        let supervisor = supervisor_of(self);
        let cell =
            supervisor.tree.settings.config(&supervisor.path().join(self.incarnation.name()));
        let receiver = cell.subscribe();
        let is_known =
            |state: &ConfigState| state.value.as_ref().is_some_and(|value| value.is::<C>());
        let known = is_known(&receiver.borrow());
        if !known {
            let key = join(&join("", path.as_str()), "config");
            let above = supervisor.path().as_str();
            let above = above.split_once('/').map_or("", |(_, above)| above);
            let record = recorded(&supervisor.tree.settings);
            let written = record.config(spec, above, self.incarnation.name()).unwrap_or_default();
            let default = Reader::of(spec).read(&written, &key);
            let default = default.map_err(ConfigError::of_all)?;
            // Without a notification: an incarnation that watches has a value already.
            cell.send_if_modified(|state| {
                if !is_known(state) {
                    state.value = Some(default.value);
                }
                false
            });
        }
        let value = receiver.borrow().value.clone().and_then(|value| value.downcast().ok());
        let last = value.expect("a value that was just read");
        Ok(ConfigWatch { receiver, last })
    }
}

/// The configuration of a child; made by [`Context::config`].
///
/// A clone sees the same changes.
pub struct ConfigWatch<C> {
    receiver: watch::Receiver<ConfigState>,
    /// The value that was current last.
    last: Arc<C>,
}

impl<C: Send + Sync + 'static> ConfigWatch<C> {
    /// Returns the current value, and marks it as seen.
    #[must_use]
    pub fn get(&mut self) -> Arc<C> {
        let value = self.receiver.borrow_and_update().value.clone();
        // Without a value of this type, a plan was taken back, or the child was replaced.
        if let Some(value) = value.and_then(|value| value.downcast().ok()) {
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
        Self { receiver: self.receiver.clone(), last: Arc::clone(&self.last) }
    }
}

impl<C> fmt::Debug for ConfigWatch<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigWatch").finish_non_exhaustive()
    }
}
