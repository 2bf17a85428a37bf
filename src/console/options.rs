//! The options of a console.

use std::fmt;

use super::token::Token;
use crate::dead_letter::DeadLetterStore;
use crate::error::RunError;
use crate::log_lines::LogLines;

/// A [console](super): what it shows, and what it allows.
///
/// ```
/// use verger::console::Console;
///
/// let console = Console::new().allow_actions(true).allow_host("ops.example.com");
/// # drop(console);
/// ```
#[derive(Clone, Default)]
#[must_use = "a console does nothing until it is served"]
pub struct Console {
    pub(super) actions: bool,
    pub(super) token: Option<Token>,
    /// In lower case.
    pub(super) hosts: Vec<String>,
    remote: bool,
    pub(super) log: Option<LogLines>,
    pub(super) store: Option<DeadLetterStore>,
}

impl Console {
    /// Creates a console that shows the tree, and allows no action.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether the tree can be changed. Default: `false`.
    pub fn allow_actions(mut self, allow: bool) -> Self {
        self.actions = allow;
        self
    }

    /// Sets the token that actions need. Default: 128 random bits, logged once if actions are allowed.
    ///
    /// Every client with the token can change the tree. An empty token is never accepted. A token that is set here
    /// isn't logged.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(Token::new(token.into()));
        self
    }

    /// Also accepts requests for this host, such as `ops.example.com`, with any port.
    ///
    /// For a proxy that passes the name on. Default: `localhost`, `127.0.0.1`, `[::1]`, and the address that the
    /// console listens on.
    pub fn allow_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into().to_ascii_lowercase());
        self
    }

    /// Sets whether the console may listen on an address that other machines can reach. Default: `false`.
    ///
    /// The console has no users and no TLS: every client that reaches it can read the tree, and the network can
    /// read the token.
    pub fn allow_remote(mut self, allow: bool) -> Self {
        self.remote = allow;
        self
    }

    /// Shows the last log lines of each child, which this store keeps. Default: none.
    ///
    /// Every client of the console can read these lines, so they must contain no secrets.
    pub fn log_lines(mut self, lines: &LogLines) -> Self {
        self.log = Some(lines.clone());
        self
    }

    /// Lists the dead letters of this store, and lets operators replay them if actions are allowed.
    ///
    /// By default the console lists the letters that it has received itself, which can't be replayed.
    pub fn dead_letter_store(mut self, store: &DeadLetterStore) -> Self {
        self.store = Some(store.clone());
        self
    }

    /// Checks that the console may listen there.
    ///
    /// # Errors
    ///
    /// If other machines can reach the address, and that isn't allowed.
    pub(super) fn check(&self, listener: &tokio::net::TcpListener) -> Result<(), RunError> {
        match listener.local_addr() {
            Ok(address) if !self.remote && !address.ip().is_loopback() => Err(RunError::Listen {
                server: "console",
                address: address.to_string(),
                reason: "other machines can reach it; use 127.0.0.1, or `allow_remote(true)`"
                    .to_owned(),
            }),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console")
            .field("actions", &self.actions)
            .field("hosts", &self.hosts)
            .field("remote", &self.remote)
            .finish_non_exhaustive()
    }
}
