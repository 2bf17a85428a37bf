//! The configuration file: its check before anything is opened, and the signals that reload it.
//!
//! The application reads it again at its start and at each reload: see [`run`](crate::run).

use std::path::Path;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use verger::HangupClaim;
use verger::config::Config;

use crate::acknowledged::Acknowledged;
use crate::app::{App, Resources};
use crate::cli::Options;
use crate::input::Input;
use crate::service::Failure;
use crate::storage::batch::Position;
use crate::tree;

/// Keeps SIGHUP and SIGUSR2 from ending the process before the tree is there to be reloaded.
///
/// tokio's handlers last as long as the process. Nothing is missed: the file is read after this. Until the claim is dropped,
/// SIGHUP doesn't stop the service.
pub(crate) fn expect_signals(options: &Options) -> Result<Option<HangupClaim>, Failure> {
    if options.config.is_none() {
        return Ok(None);
    }
    for kind in [SignalKind::hangup(), SignalKind::user_defined2()] {
        drop(signal(kind).map_err(|error| format!("can't receive signals: {error}"))?);
    }
    Ok(Some(HangupClaim::new()))
}

/// Checks the configuration file, if there is one. Neither opens the database nor starts a child.
pub(crate) async fn check(options: &Options) -> Result<(), Failure> {
    let Some(file) = &options.config else { return Ok(()) };
    let tree = unstarted(options).await?;
    let checked = tree.configured(&Config::read(file)).await;
    checked.map(drop).map_err(|error| Failure::Usage(error.to_string()))
}

/// Returns a tree that is only compared with a file: its children would use resources of their own.
async fn unstarted(options: &Options) -> Result<verger::Supervisor, Failure> {
    let named = |error: std::io::Error| format!("--file {}: {error}", options.file.display());
    let bind = || TcpListener::bind("127.0.0.1:0");
    let resources = Resources {
        db: Path::new("never opened").into(),
        input: Input::open(&options.file, options.follow, Position::default(), None)
            .map_err(named)?,
        listen: bind().await.map_err(|error| error.to_string())?,
        http: bind().await.map_err(|error| error.to_string())?,
        acknowledged: Acknowledged::open().map_err(|error| error.to_string())?,
    };
    let app = App::new(options.clone(), resources);
    Ok(tree::build(&Arc::new(app)).map_err(|error| error.to_string())?)
}
