//! The one connection of an engine: opened at the first request, and again once it is broken.
//!
//! # Invariants
//!
//! 1. All requests of an engine share one connection, and no request has it to itself.
//! 2. A request that is dropped leaves the connection as it is: its answer is read and discarded.
//! 3. A connection that has been closed, or silent for too long, is replaced by the next request. Too long is as long as a
//!    request was waited for: the caller, which has its own deadline, gets a new connection in place of a second wait.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, NoTls};
use verger::lease::LeaseError;

use super::problem;
use super::target::{ConnectError, Server};

/// How long a connection may take to close.
const CLOSING: Duration = Duration::from_secs(5);
/// How long sent data may be unacknowledged before the connection is closed, unless the configuration says it.
const UNACKNOWLEDGED: Duration = Duration::from_secs(10);
/// How long a connection may be silent, unless a caller has given up a request earlier.
const SILENCE: Duration = Duration::from_secs(5);
/// A request that is dropped sooner isn't given up for lack of an answer.
const WAITED: Duration = Duration::from_millis(100);

type Connecting = Pin<Box<dyn Future<Output = Result<Client, ConnectError>> + Send>>;

/// How connections are opened.
#[derive(Clone)]
pub(super) enum Connector {
    Config(Arc<Config>),
    /// The program's own: with TLS, or from a pool.
    Function(Arc<dyn Fn() -> Connecting + Send + Sync>),
}

/// The connection of an engine and its clones.
pub(super) struct Connections {
    connector: Connector,
    pub(super) server: Server,
    /// Locked while a connection is being opened, so that requests wait for it instead of opening more.
    current: tokio::sync::Mutex<Option<Arc<Connection>>>,
    silence: Mutex<Silence>,
}

/// An open connection.
pub(super) struct Connection {
    pub(super) client: Client,
    /// Whether the schema of the table has been checked.
    checked: AtomicBool,
    /// Dropped with the connection. Its task ends then.
    _closing: Option<oneshot::Sender<()>>,
}

/// For how long requests have been without an answer.
#[derive(Debug)]
struct Silence {
    since: Option<Instant>,
    /// How long callers wait for an answer.
    patience: Duration,
    /// How often the connection was replaced without an answer. Each time doubles what is too long: a server that hangs
    /// would get more and more connections otherwise, because it notices the end of none.
    replaced: u32,
}

/// A request that has been sent. Dropping this gives it up.
pub(super) struct Unanswered<'a> {
    silence: &'a Mutex<Silence>,
    /// `None` once it was answered.
    sent: Option<Instant>,
}

impl Unanswered<'_> {
    /// Records that the request was answered, or that its connection is closed.
    pub(super) fn answered(mut self) {
        self.sent = None;
        lock(self.silence).answered();
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if let Some(sent) = self.sent {
            lock(self.silence).given_up(now().duration_since(sent));
        }
    }
}

fn lock(silence: &Mutex<Silence>) -> MutexGuard<'_, Silence> {
    silence.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Connector {
    pub(super) fn of_config(mut config: Config) -> Self {
        if config.get_application_name().is_none() {
            config.application_name("verger");
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(UNACKNOWLEDGED);
        }
        Self::Config(Arc::new(config))
    }

    fn server(&self) -> Server {
        match self {
            Self::Config(config) => Server {
                address: address(config),
                // The server takes the user's name.
                database: config.get_dbname().or(config.get_user()).map(str::to_owned),
                user: config.get_user().map(str::to_owned),
            },
            Self::Function(_) => {
                Server { address: "the connector's server".to_owned(), database: None, user: None }
            }
        }
    }

    async fn open(&self) -> Result<Connection, ConnectError> {
        let (client, closing) = match self {
            Self::Config(config) => {
                let (client, closing) = open(config).await?;
                (client, Some(closing))
            }
            Self::Function(connect) => (connect().await?, None),
        };
        Ok(Connection { client, checked: AtomicBool::new(false), _closing: closing })
    }
}

/// Opens a connection, and the task that reads and writes it.
async fn open(config: &Config) -> Result<(Client, oneshot::Sender<()>), tokio_postgres::Error> {
    let (client, connection) = config.connect(NoTls).await?;
    let (closing, closed) = oneshot::channel::<()>();
    let task = async move {
        // It ends when its client is dropped, or when it breaks. A server that hangs doesn't let it end.
        let dropped = async move {
            let _ = closed.await;
            sleep(CLOSING).await;
        };
        tokio::select! {
            _ = connection => {}
            () = dropped => {}
        }
    };
    #[expect(clippy::disallowed_methods, reason = "ends soon after its connection is dropped")]
    drop(tokio::spawn(task));
    Ok((client, closing))
}

/// Returns the time of tokio, which a test may have paused.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

fn address(config: &Config) -> String {
    let (hosts, ports) = (config.get_hosts(), config.get_ports());
    let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(5432);
    let mut addresses: Vec<_> = hosts
        .iter()
        .enumerate()
        .map(|(at, host)| match host {
            Host::Tcp(host) => format!("{host}:{}", port(at)),
            #[cfg(unix)]
            Host::Unix(path) => format!("{}:{}", path.display(), port(at)),
        })
        .collect();
    if addresses.is_empty() {
        let hosts = config.get_hostaddrs().iter().enumerate();
        addresses.extend(hosts.map(|(at, host)| format!("{host}:{}", port(at))));
    }
    addresses.join(",")
}

impl Connections {
    pub(super) fn new(connector: Connector) -> Self {
        let server = connector.server();
        let silence = Mutex::new(Silence::new());
        Self { connector, server, current: tokio::sync::Mutex::default(), silence }
    }

    pub(super) fn connector(&self) -> Connector {
        self.connector.clone()
    }

    /// Returns the open connection, or opens one.
    ///
    /// # Errors
    ///
    /// If none can be opened within this time.
    pub(super) async fn get(&self, within: Duration) -> Result<Arc<Connection>, LeaseError> {
        let mut current = self.current.lock().await;
        let is_silent = lock(&self.silence).is_over(now());
        if let Some(open) = &*current
            && !open.client.is_closed()
            && !is_silent
        {
            return Ok(Arc::clone(open));
        }
        // Requests that use it keep it until they are answered or dropped.
        *current = None;
        let opened = match timeout(within, self.connector.open()).await {
            Ok(opened) => opened.map_err(|error| problem::connect(error, &self.server))?,
            Err(_elapsed) => return Err(problem::connect_timeout(&self.server, within)),
        };
        Ok(Arc::clone(current.insert(Arc::new(opened))))
    }

    /// Records that a request is sent.
    pub(super) fn sent(&self) -> Unanswered<'_> {
        let now = now();
        lock(&self.silence).since.get_or_insert(now);
        Unanswered { silence: &self.silence, sent: Some(now) }
    }

    /// Lets the next request open a new connection, because this one leads to a server of no use.
    pub(super) async fn replace(&self, connection: &Arc<Connection>) {
        let mut current = self.current.lock().await;
        current.take_if(|it| Arc::ptr_eq(it, connection));
    }
}

impl Silence {
    fn new() -> Self {
        Self { since: None, patience: SILENCE, replaced: 0 }
    }

    fn answered(&mut self) {
        (self.since, self.replaced) = (None, 0);
    }

    /// A caller hasn't waited any longer than this.
    fn given_up(&mut self, waited: Duration) {
        if waited >= WAITED {
            self.patience = self.patience.min(waited);
        }
    }

    /// Returns whether the connection has been silent for too long, and if so, begins to count again for the next.
    fn is_over(&mut self, now: Instant) -> bool {
        let limit = self.patience.saturating_mul(2_u32.saturating_pow(self.replaced));
        let is_over = self.since.is_some_and(|since| now.duration_since(since) >= limit);
        if is_over {
            (self.since, self.replaced) = (None, self.replaced.saturating_add(1));
        }
        is_over
    }
}

impl Connection {
    pub(super) fn is_checked(&self) -> bool {
        self.checked.load(Ordering::Relaxed)
    }

    pub(super) fn set_checked(&self) {
        self.checked.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(config: &str) -> String {
        Connector::of_config(config.parse().unwrap()).server().address
    }

    #[test]
    fn a_server_is_shown_without_the_password() {
        assert_eq!(at("postgres://app:secret@db.internal/leases"), "db.internal:5432");
        assert_eq!(at("host=a,b port=1,2 user=app"), "a:1,b:2");
        assert_eq!(at("host=a,b port=7 user=app"), "a:7,b:7");
        assert_eq!(at("host=/run/postgresql user=app"), "/run/postgresql:5432");
        assert_eq!(at("hostaddr=10.0.0.7 user=app"), "10.0.0.7:5432");
    }

    #[test]
    fn a_silent_connection_is_replaced_less_and_less_often() {
        let mut silence = Silence::new();
        let began = Instant::now();
        assert!(!silence.is_over(began + 100 * SILENCE), "no request was sent");
        for times in [1, 2, 4, 8] {
            silence.since = Some(began);
            assert!(!silence.is_over(began + times * SILENCE - Duration::from_millis(1)));
            assert!(silence.is_over(began + times * SILENCE));
            assert!(!silence.is_over(began + 100 * SILENCE), "it counts again");
        }
    }

    #[test]
    fn a_connection_is_silent_for_too_long_once_a_request_on_it_was_given_up() {
        let mut silence = Silence::new();
        let (began, waited) = (Instant::now(), Duration::from_millis(1_333));
        silence.since = Some(began);
        silence.given_up(Duration::from_millis(99));
        assert!(!silence.is_over(began + waited), "that one was dropped for a different reason");
        silence.given_up(waited);
        assert!(silence.is_over(began + waited));
        silence.since = Some(began);
        silence.given_up(waited);
        assert!(!silence.is_over(began + waited), "the second time, after twice as long");
        assert!(silence.is_over(began + 2 * waited));
        silence.answered();
        silence.since = Some(began);
        assert!(silence.is_over(began + waited), "the callers are the same");
    }
}
