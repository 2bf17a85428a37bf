//! What all requests of a console share: its options, its token, and the tree.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::Read as _;
use std::sync::Arc;

use super::recorder::{Records, record};
use super::snapshots::Snapshots;
use crate::app::Reloader;
use crate::config::{ConfigSource, Plan};
use crate::dead_letter::DeadLetterStore;
use crate::error::RunError;
use crate::handle::SupervisorHandle;
use crate::log_lines::LogLines;
use crate::named_task::OwnedTask;
use crate::status::{Event, Subscription};
use crate::sync::Mutex;

/// What an application provides in addition to its tree.
#[derive(Default)]
pub(super) struct Outside {
    /// A subscription from before the first start.
    pub(super) events: Option<Subscription<Event>>,
    /// Applies plans. Other triggers may reload meanwhile.
    pub(super) reloader: Option<Reloader>,
}

/// See the [module](self).
pub(super) struct ConsoleShared {
    pub(super) options: Console,
    /// Needed for actions.
    pub(super) token: Token,
    /// The root.
    pub(super) tree: SupervisorHandle,
    pub(super) snapshots: Arc<Snapshots>,
    pub(super) records: Arc<Records>,
    pub(super) reloader: Option<Reloader>,
    /// The last plans that were shown, by their ids, the oldest first.
    pub(super) plans: Mutex<VecDeque<(String, Plan)>>,
    _recorder: OwnedTask<()>,
}

impl ConsoleShared {
    /// `ends_with_tree`: whether the streams end when the tree begins to stop.
    pub(super) fn new(
        mut options: Console,
        tree: &SupervisorHandle,
        outside: Outside,
        ends_with_tree: bool,
    ) -> Arc<Self> {
        let tree = tree.of_root();
        let token = options.token.take().unwrap_or_else(Token::random);
        let records = Arc::new(Records::default());
        let events = outside.events.unwrap_or_else(|| tree.events());
        let recorder = record(Arc::clone(&records), &tree, events, ends_with_tree);
        Arc::new(Self {
            options,
            token,
            tree,
            snapshots: Arc::default(),
            records,
            reloader: outside.reloader,
            plans: Mutex::default(),
            _recorder: recorder,
        })
    }

    /// Returns where the configuration comes from. `None`: there is none that can be read again.
    pub(super) fn source(&self) -> Option<&ConfigSource> {
        self.reloader.as_ref()?.started.get()?.as_ref()
    }
}

/// A secret text.
#[derive(Clone)]
pub(super) struct Token(String);

impl Token {
    /// Creates a token of 128 bits.
    ///
    /// The bits come from the operating system: from `/dev/urandom` where that exists, and otherwise from the
    /// random keys of std's hash maps. `fastrand` isn't meant for secrets, and a crate for 16 bytes isn't worth
    /// its build time.
    pub(super) fn random() -> Self {
        let mut bits = [0; 16];
        let read = std::fs::File::open("/dev/urandom").and_then(|mut it| it.read_exact(&mut bits));
        if read.is_err() {
            let key = RandomState::new();
            for (index, half) in bits.chunks_mut(8).enumerate() {
                let mut hasher = key.build_hasher();
                hasher.write_usize(index);
                half.copy_from_slice(&hasher.finish().to_le_bytes());
            }
        }
        Self(format!("{:032x}", u128::from_le_bytes(bits)))
    }

    pub(super) fn expose(&self) -> &str {
        &self.0
    }

    /// Whether `given` is this token, in a time that depends on the length only.
    pub(super) fn is(&self, given: &[u8]) -> bool {
        let own = self.0.as_bytes();
        if own.is_empty() || own.len() != given.len() {
            return false;
        }
        let differs = own.iter().zip(given).fold(0, |differs, (a, b)| differs | (a ^ b));
        std::hint::black_box(differs) == 0
    }
}

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
        self.token = Some(Token(token.into()));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_is_right_and_an_empty_one_never() {
        let token = Token("secret".to_owned());
        assert!(token.is(b"secret"));
        for wrong in ["", "secre", "secrets", "Secret", "sekret", "secreT"] {
            assert!(!token.is(wrong.as_bytes()), "{wrong}");
        }
        assert!(!Token(String::new()).is(b""));
    }

    #[test]
    fn random_tokens_have_128_bits_and_differ() {
        let (a, b) = (Token::random(), Token::random());
        assert!(a.expose().len() == 32 && a.expose().bytes().all(|it| it.is_ascii_hexdigit()));
        assert_ne!(a.expose(), b.expose());
        assert!(a.is(a.expose().as_bytes()) && !a.is(b.expose().as_bytes()));
    }
}
