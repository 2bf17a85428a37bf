//! The console of an application, on a separate listener.
//!
//! # Invariants
//!
//! 1. All connections end when the server does.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::recorder::Records;
use super::router::routes;
use super::shared::{Console, ConsoleShared, Outside};
use crate::app::companion::{Companion, RunStart, companion};
use crate::app::connections::{Connections, serve};
use crate::app::listen::ListenAddress;
use crate::error::RunError;
use crate::handle::SupervisorHandle;
use crate::named_task::OwnedTask;
use crate::spec::Supervisor;
use crate::{Application, subscriber};

/// The most connections.
const MOST: usize = 256;
/// How long answers may take that have begun when the server ends.
const GRACE: Duration = Duration::from_millis(500);

/// A listener that serves the console of a tree, until it is dropped.
struct ConsoleServer {
    console: Arc<ConsoleShared>,
    task: OwnedTask<()>,
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
        let connections = Connections::new(listener, MOST, end.clone());
        let router = routes(Arc::clone(&console));
        let task = serve("verger console", connections, router, stop.clone());
        Self { console, task, stop, end }
    }

    /// Ends all streams and connections, and closes the listener.
    pub(super) async fn stop(mut self) {
        self.console.records.streams.close();
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

impl Application {
    /// Serves a [console](crate::console) at this address, such as `127.0.0.1:7007`, on a listener of its own.
    ///
    /// It listens before the tree starts and until the hooks after the stop have run. If the address can't be
    /// bound, or isn't a loopback address without
    /// [`allow_remote`](crate::console::Console::allow_remote), the application ends with exit code 2. A log line
    /// with target `verger::console` says where the console is, and which token its actions need.
    ///
    /// ```no_run
    /// use verger::console::Console;
    /// # use verger::{Application, Supervisor};
    ///
    /// # fn f(tree: Supervisor) -> Application {
    /// Application::new(tree).console("127.0.0.1:7007", Console::new().allow_actions(true))
    /// # }
    /// ```
    pub fn console(self, address: impl Into<String>, console: Console) -> Self {
        self.console_at(ListenAddress::Address(address.into()), console)
    }

    /// Serves a [console](crate::console) on this listener, such as one whose port the system has chosen.
    pub fn console_on(self, listener: std::net::TcpListener, console: Console) -> Self {
        self.console_at(ListenAddress::Bound(listener), console)
    }

    fn console_at(mut self, address: ListenAddress, console: Console) -> Self {
        let outside = Outside { reloader: Some(self.reloader()), ..Outside::default() };
        let address = Some(address);
        let console = ConsoleOfRun { address, console, outside, listener: None, server: None };
        self.companions.console = companion(console);
        self
    }
}

/// The console of one run of the application.
struct ConsoleOfRun {
    /// `None` once it is bound.
    address: Option<ListenAddress>,
    console: Console,
    outside: Outside,
    /// `None` once it is served.
    listener: Option<TcpListener>,
    server: Option<ConsoleServer>,
}

#[async_trait]
impl Companion for ConsoleOfRun {
    async fn prepare(&mut self, tree: &mut Supervisor) -> Result<(), RunError> {
        let Some(address) = self.address.take() else { return Ok(()) };
        let listener = address.bind("console").await?;
        self.console.check(&listener)?;
        self.listener = Some(listener);
        // Before the start, so that the first start is shown.
        self.outside.events = Some(tree.events());
        Ok(())
    }

    fn start(&mut self, run: &mut RunStart<'_>) {
        let Some(listener) = self.listener.take() else { return };
        let (records, tree) = (Arc::<Records>::default(), run.handle());
        let noted = Arc::downgrade(&records);
        run.on_reload.push(Box::new(move |news| {
            if let Some(records) = noted.upgrade() {
                records.note_reload(&tree, news);
            }
        }));
        self.outside.records = Some(records);
        let outside = std::mem::take(&mut self.outside);
        let console = std::mem::take(&mut self.console);
        self.server = Some(ConsoleServer::start(listener, console, &run.handle(), outside));
    }

    async fn finish(self: Box<Self>) {
        if let Some(server) = self.server {
            server.stop().await;
        }
    }
}
