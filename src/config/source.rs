//! Where the configuration of an application comes from.

use std::fmt;
use std::sync::Arc;

use super::{ApplyError, Config, IntoConfig};
use crate::panic::catch_panic;

/// A function that reads a configuration, or returns why it can't be read. It may block.
#[derive(Clone)]
pub(crate) struct ConfigSource(Arc<dyn Fn() -> Result<Config, String> + Send + Sync>);

impl ConfigSource {
    pub(crate) fn new<R: IntoConfig>(read: impl Fn() -> R + Send + Sync + 'static) -> Self {
        Self(Arc::new(move || read().into_config()))
    }

    /// Reads the configuration on a thread that may block.
    pub(crate) async fn read(&self) -> Result<Config, ApplyError> {
        let Self(source) = self.clone();
        let read = tokio::task::spawn_blocking(move || catch_panic(|| source()));
        match read.await {
            Ok(Some(config)) => config.map_err(ApplyError::Unreadable),
            Ok(None) => Err(ApplyError::Unreadable("reading it has panicked".to_owned())),
            Err(_) => Err(ApplyError::NotRunning),
        }
    }
}

impl fmt::Debug for ConfigSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigSource").finish_non_exhaustive()
    }
}
