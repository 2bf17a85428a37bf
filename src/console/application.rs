//! The console of an application.

use std::future::pending;

use async_trait::async_trait;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::options::Console;
use super::server::ConsoleServer;
use super::shared::Outside;
use crate::Application;
use crate::app::companion::{Companion, RunStart, companion};
use crate::app::listen::ListenAddress;
use crate::error::RunError;
use crate::spec::Supervisor;

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
        let (address, outside) = (Some(address), Outside::of(&self));
        let console = ConsoleOfRun { address, console, outside, listener: None, server: None };
        self.companions.console = companion(console);
        self
    }
}

/// See the [module](self).
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
        let (requests, requested) = oneshot::channel();
        run.stop_on(requested_stop(requested));
        let outside = Outside { stop: Some(requests), ..std::mem::take(&mut self.outside) };
        let console = std::mem::take(&mut self.console);
        self.server = Some(ConsoleServer::start(listener, console, &run.handle(), outside));
    }

    async fn finish(self: Box<Self>) {
        if let Some(server) = self.server {
            server.stop().await;
        }
    }
}

/// Resolves to the cause when the console requests a stop.
async fn requested_stop(requested: oneshot::Receiver<String>) -> String {
    match requested.await {
        Ok(cause) => cause,
        Err(_) => pending().await,
    }
}
