//! What all requests of a console share: its options, its token, and the tree.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::Read as _;
use std::sync::Arc;
use std::time::Instant;

use axum::http::{HeaderMap, HeaderName};

use super::recorder::{Records, record};
use super::samples::Samples;
use super::snapshots::Snapshots;
use crate::app::Reloader;
use crate::child::BusyGuard;
use crate::config::{ConfigSource, Plan};
use crate::dead_letter::DeadLetterStore;
use crate::error::RunError;
use crate::handle::SupervisorHandle;
use crate::invisible::Visible;
use crate::log_lines::LogLines;
use crate::named_task::OwnedTask;
use crate::status::{Event, Subscription};
use crate::sync::Mutex;

/// The most characters of the name of a user.
pub(super) const NAME: usize = 64;

/// What an application provides in addition to its tree.
#[derive(Default)]
pub(super) struct Outside {
    /// A subscription from before the first start.
    pub(super) events: Option<Subscription<Event>>,
    /// Applies plans. Other triggers may reload meanwhile.
    pub(super) reloader: Option<Reloader>,
    /// What the outcomes of reloads are added to.
    pub(super) records: Option<Arc<Records>>,
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
    pub(super) samples: Arc<Samples>,
    /// When a request with a wrong token was logged last.
    pub(super) refused: Mutex<Option<Instant>>,
    _recorder: OwnedTask<()>,
    _sampler: OwnedTask<()>,
    /// The console shows how busy the children are.
    _busy: Option<BusyGuard>,
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
        let records = outside.records.unwrap_or_default();
        let samples = Arc::<Samples>::default();
        let sampler = samples.take_regularly(&tree);
        let events = outside.events.unwrap_or_else(|| tree.events());
        let busy = tree.measure_busy();
        let recorder = record(Arc::clone(&records), &tree, events, ends_with_tree);
        Arc::new(Self {
            options,
            token,
            tree,
            snapshots: Arc::default(),
            samples,
            refused: Mutex::default(),
            records,
            reloader: outside.reloader,
            plans: Mutex::default(),
            _recorder: recorder,
            _sampler: sampler,
            _busy: busy,
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
    pub(super) read_token: Option<Token>,
    /// The header in which a proxy names the user.
    identity: Option<String>,
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

    /// Sets a token that reading needs, such as on a machine with other users. Default: reading needs none.
    ///
    /// A client with the token of actions can also read. An empty token is never accepted. The page asks for the token.
    pub fn read_token(mut self, token: impl Into<String>) -> Self {
        self.read_token = Some(Token(token.into()));
        self
    }

    /// Names the operator by a header, such as `X-Forwarded-User`, that an authenticating proxy sets. Default: none.
    ///
    /// An action then names `alice (header)` as its caller in log and events, and otherwise `operator`, or the name that
    /// the client sends itself: `alice (typed)`. A name grants nothing, and is cut to 64 characters. The console must listen on a
    /// loopback address, behind the proxy: a client that reaches it directly could send any name. With any other address, the
    /// application ends with exit code 2.
    pub fn identity_header(mut self, name: impl Into<String>) -> Self {
        self.identity = Some(name.into());
        self
    }

    /// Returns the user that a proxy has named.
    pub(super) fn user(&self, headers: &HeaderMap) -> Option<String> {
        let named = headers.get(self.identity.as_deref()?)?;
        let name = String::from_utf8_lossy(named.as_bytes());
        let name: String = name.trim().chars().take(NAME).collect();
        (!name.is_empty()).then(|| Visible(name).to_string())
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

    /// Returns why no header can have the name that is set.
    pub(super) fn header_problem(&self) -> Option<String> {
        let name = self.identity.as_ref()?;
        let text = || {
            let name = Visible(name);
            format!(
                "`identity_header`: `{name}` isn't the name of a header; write `X-Forwarded-User`"
            )
        };
        HeaderName::try_from(name).is_err().then(text)
    }

    /// Checks that the console may listen there.
    ///
    /// # Errors
    ///
    /// If other machines can reach the address, and that isn't allowed, or if the header for users can't exist.
    pub(super) fn check(&self, listener: &tokio::net::TcpListener) -> Result<(), RunError> {
        let Ok(address) = listener.local_addr() else { return Ok(()) };
        let is_remote = !address.ip().is_loopback();
        let problem = self.header_problem();
        let reason = match (&self.identity, problem) {
            (_, Some(problem)) => problem,
            (Some(name), _) if is_remote => format!(
                "other machines can reach it, and could send any `{}`; with `identity_header`, listen on \
                 127.0.0.1 behind the proxy",
                Visible(name)
            ),
            _ if is_remote && !self.remote => {
                "other machines can reach it; use 127.0.0.1, or `allow_remote(true)`".to_owned()
            }
            _ => return Ok(()),
        };
        Err(RunError::Listen { server: "console", address: address.to_string(), reason })
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
