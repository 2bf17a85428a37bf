//! The child that accepts connections and starts one child for each.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tracing::warn;
use verger::{Context, Exit};

use super::connection::connection;
use crate::app::App;

/// The wait after an error such as *too many open files*, which passes when connections close.
const PAUSE: Duration = Duration::from_millis(100);

pub(crate) async fn listener(ctx: Context, app: Arc<App>) -> Exit {
    let tcp = ctx.parent();
    let connections = tcp.supervisor("connections").await?;
    while let Some(accepted) = ctx.run_until_cancelled(app.listen.accept()).await {
        match accepted {
            Ok((socket, peer)) => {
                app.stats.accepted();
                let spec = connection(Arc::clone(&app), socket, tcp.clone());
                if let Err(error) = connections.start_child(spec).await {
                    // The socket is closed. The client may connect again.
                    warn!(%peer, %error, "connection refused");
                }
            }
            Err(error) => {
                warn!(%error, "accept failed");
                ctx.run_until_cancelled(sleep(PAUSE)).await;
            }
        }
    }
    Ok(())
}
