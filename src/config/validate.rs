//! Checks new values with the functions of their children, before anything changes.
//!
//! It knows the values and their functions, and nothing of the tree.

use std::time::Duration;

use tokio::time::{sleep_until, timeout};

use super::child_config::Reader;
use super::draft::ConfigChange;
use super::plan::Refusal;
use crate::clock::now;
use crate::panic::{CatchPanic, catch_panic};
use crate::path::Path;
use crate::{named_task, subscriber};

/// How often a slow check is logged.
const SLOW: Duration = Duration::from_secs(5);

/// Checks the new configuration of each child, all at once.
pub(super) async fn validate(configs: &[ConfigChange]) -> Result<(), Vec<Refusal>> {
    let mut checks = tokio::task::JoinSet::new();
    for (number, change) in configs.iter().enumerate() {
        let reader = Reader::of(&change.spec);
        let Some(check) = change.state.value.as_ref().and_then(|value| reader.check(value)) else {
            continue;
        };
        let (path, place, within) = (change.path.clone(), change.place(), reader.within);
        let name = || format!("{} (validate)", change.path);
        named_task::spawn_in(&mut checks, name, async move {
            let reason = check_one(&path, within, check).await;
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
    check: impl Future<Output = crate::exit::Exit> + Send,
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
