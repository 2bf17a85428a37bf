//! The periodic job that deletes old notes.

use std::sync::Arc;
use std::time::Duration;

use humantime_serde::re::humantime::format_duration;
use serde::Deserialize;
use verger::Exit;
use verger::periodic::RunContext;

use super::notes;
use super::pool::Pool;

/// `["web/storage/cleanup".config]` of the configuration file.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CleanupConfig {
    /// How long a note is kept.
    #[serde(with = "humantime_serde")]
    keep: Duration,
}

impl Default for CleanupConfig {
    fn default() -> Self {
        Self { keep: Duration::from_secs(30 * 24 * 3600) }
    }
}

/// Refuses a configuration that would delete every note.
pub(crate) async fn is_sensible(new: Arc<CleanupConfig>) -> Exit {
    if new.keep < Duration::from_secs(1) {
        let hint = "which deletes every note; write keep = \"30days\", for example";
        return Err(format!("`keep` is \"{}\", {hint}", format_duration(new.keep)).into());
    }
    Ok(())
}

pub(crate) async fn cleanup(run: RunContext) -> Exit {
    let keep = run.config::<CleanupConfig>()?.get().keep;
    let pool: Pool = run.service().await?;
    let deleted = pool.run(move |database| notes::delete_older(database, keep.as_secs())).await?;
    run.set_status(format!("deleted {deleted} notes older than {}", format_duration(keep)));
    Ok(())
}
