//! Where the configuration of an application comes from.

use std::sync::Arc;

use super::{ApplyError, Config};
use crate::panic::catch_panic;

/// Reads a configuration, or returns why it can't be read. It may block.
pub(crate) type ConfigSource = Arc<dyn Fn() -> Result<Config, String> + Send + Sync>;

/// Reads the configuration on a thread that may block.
pub(crate) async fn read(source: &ConfigSource) -> Result<Config, ApplyError> {
    let source = Arc::clone(source);
    let read = tokio::task::spawn_blocking(move || catch_panic(|| source()));
    match read.await {
        Ok(Some(config)) => config.map_err(ApplyError::Unreadable),
        Ok(None) => Err(ApplyError::Unreadable("reading it has panicked".to_owned())),
        Err(_) => Err(ApplyError::NotRunning),
    }
}
