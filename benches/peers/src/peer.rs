//! What a crate implements so that the probes and the measurements can run on it.

use std::fmt::Debug;
use std::future::Future;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::child::Life;

/// A period in which all restarts of a probe fit.
pub const LONG: Duration = Duration::from_secs(300);

/// A supervisor with children, or with supervisors that have children.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How many children each supervisor of a level has. The last level has no supervisors.
    pub widths: &'static [usize],
    /// `one_for_one` otherwise.
    pub one_for_all: bool,
    /// The largest number of restarts in a period on the last level.
    pub limit: Option<(u32, Duration)>,
}

impl Plan {
    /// A supervisor without children.
    pub const EMPTY: Self = Self { widths: &[0], one_for_all: false, limit: None };

    /// The number of children of this supervisor.
    pub fn width(self) -> usize {
        self.widths[0]
    }

    /// The plan of each child, unless the children are no supervisors.
    pub fn below(self) -> Option<Self> {
        (self.widths.len() > 1).then_some(Self { widths: &self.widths[1..], ..self })
    }

    /// The limit of this supervisor. `unlimited` is what the crate has instead of no limit.
    pub fn limit(self, unlimited: (u32, Duration)) -> (u32, Duration) {
        match self.limit {
            Some(_) if self.below().is_some() => (10, LONG),
            limit => limit.unwrap_or(unlimited),
        }
    }

    /// The crate's name of the strategy.
    pub fn strategy<T>(self, one_for_one: T, one_for_all: T) -> T {
        if self.one_for_all { one_for_all } else { one_for_one }
    }
}

/// The crate's name of a child's restart type.
pub fn restart<L: Life, T>(index: usize, permanent: T, transient: T) -> T {
    if L::is_transient(index) { transient } else { permanent }
}

/// A crate, driven in the configuration that suits each probe and each measurement best.
pub trait Peer: 'static {
    /// The package, as in the lockfile, and the packages that it can't be used without.
    const PACKAGES: &'static [&'static str];
    /// Whether tokio's paused clock works: not for crates that read `std`'s or have their own threads.
    const PAUSED: bool = false;
    /// How the names of the measurements begin that can't be made on the crate.
    const LACKS: &'static [&'static str] = &[];
    /// What it takes to stop what was started.
    type Tree: Send + Sync + 'static;

    /// Starts supervisors and children. Restarts have no delay.
    ///
    /// A probe needs the wait that the crate's documentation names. A measurement needs the quickest
    /// way, and waits for the children itself.
    fn start<L: Life>(plan: Plan) -> impl Future<Output = Self::Tree> + Send;

    /// Stops them, in the gentlest way that the crate has.
    fn stop(tree: Self::Tree) -> impl Future<Output = ()> + Send;

    /// Adds a child to a running supervisor.
    fn add<L: Life>(_tree: &Self::Tree, _index: usize) -> impl Future<Output = ()> + Send {
        lacks()
    }

    /// Sends messages to a child that adds them up, with [`send_each`].
    fn send(_messages: u64) -> impl Future<Output = Duration> + Send {
        lacks()
    }

    /// Asks a child questions, with [`ask_each`].
    fn ask(_questions: usize) -> impl Future<Output = Vec<u64>> + Send {
        lacks()
    }

    /// Starts children with the names that [`name`] makes.
    fn register(_names: usize) -> impl Future<Output = Self::Tree> + Send {
        lacks()
    }

    /// Looks names up, and returns how many exist.
    fn look_up(_tree: &Self::Tree, _names: &[String]) -> impl Future<Output = usize> + Send {
        lacks()
    }
}

async fn lacks<T>() -> T {
    unreachable!("the measurement is in `LACKS`")
}

/// The name of a child, the same for all crates.
pub fn name(index: usize) -> String {
    format!("child-{index}")
}

/// Adds up the messages that a child receives, and reports the sum after the last.
pub struct Sum {
    left: u64,
    sum: u64,
    total: Option<oneshot::Sender<u64>>,
}

impl Sum {
    pub fn of(messages: u64) -> (Self, oneshot::Receiver<u64>) {
        let (total, receiver) = oneshot::channel();
        (Self { left: messages, sum: 0, total: Some(total) }, receiver)
    }

    pub fn add(&mut self, message: u64) {
        self.sum += message;
        self.left -= 1;
        if self.left == 0 {
            let total = self.total.take().expect("there is one last message");
            total.send(self.sum).expect("it is waited for");
        }
    }
}

/// The time until the sum of all messages has arrived.
pub async fn send_each<E: Debug, F: Future<Output = Result<(), E>>>(
    messages: u64,
    total: oneshot::Receiver<u64>,
    send: impl Fn(u64) -> F,
) -> Duration {
    let began = Instant::now();
    for message in 0..messages {
        send(message).await.expect("it is read");
    }
    assert_eq!(total.await, Ok(messages * (messages - 1) / 2));
    began.elapsed()
}

/// The time of each question, one after the other, in nanoseconds.
pub async fn ask_each<F: Future>(questions: usize, ask: impl Fn() -> F) -> Vec<u64> {
    let mut took = Vec::with_capacity(questions);
    for _ in 0..questions {
        let began = Instant::now();
        ask().await;
        took.push(began.elapsed().as_nanos() as u64);
    }
    took
}
