//! A listener of the console's own.

use std::future::IntoFuture as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::connection::Connections;
use super::options::Console;
use super::router::routes;
use super::shared::{ConsoleShared, Outside};
use crate::handle::SupervisorHandle;
use crate::owned_task::OwnedTask;
use crate::subscriber;

/// How long answers may take that have begun when the server ends.
const GRACE: Duration = Duration::from_millis(500);

/// A listener that serves the console of a tree, until it is dropped.
pub(super) struct ConsoleServer {
    console: Arc<ConsoleShared>,
    task: OwnedTask<io::Result<()>>,
    /// Accepts no connection any more, and ends those that are idle.
    stop: CancellationToken,
    /// Ends all connections.
    end: CancellationToken,
}

impl ConsoleServer {
    pub(super) fn start(
        listener: TcpListener,
        mut options: Console,
        tree: &SupervisorHandle,
        outside: Outside,
    ) -> Self {
        let address = listener.local_addr().ok();
        options.hosts.extend(address.map(|it| it.to_string()));
        let names_token = options.actions && options.token.is_none();
        let console = ConsoleShared::new(options, tree, outside, false);
        if let Some(address) = address {
            let mut url = format!("http://{address}/");
            if names_token {
                url.push_str("#token=");
                url.push_str(console.token.expose());
            }
            subscriber::info!(target: "verger::console", %address, url, "serving console");
        }
        let (stop, end) = (CancellationToken::new(), CancellationToken::new());
        let connections = Connections::new(listener, end.clone());
        let serve = axum::serve(connections, routes(Arc::clone(&console)))
            .with_graceful_shutdown(stop.clone().cancelled_owned());
        Self { console, task: OwnedTask::spawn("verger console", serve.into_future()), stop, end }
    }

    /// Ends all streams and connections, and closes the listener.
    pub(super) async fn stop(mut self) {
        self.console.close();
        self.stop.cancel();
        if timeout(GRACE, self.task.join()).await.is_err() {
            self.end.cancel();
            let _ = timeout(GRACE, self.task.join()).await;
        }
    }
}

impl Drop for ConsoleServer {
    fn drop(&mut self) {
        self.end.cancel();
    }
}
