//! What the children do, whatever the crate, and how it is seen from outside.
//!
//! There is one measurement in a process, so all of this is static. A child of any crate says when
//! it starts and when it is gone, and fails when it is told to; nothing here knows any of the
//! crates. A [`Life`] is a type, so that the future of an idle child holds nothing but its wait.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock};
use std::task::{Context, Poll};
use std::time::Instant;

use pin_project_lite::pin_project;
use tokio::sync::Notify;
use tokio::task::yield_now;

use super::work::{CHILDREN, How, PATIENCE, RESTARTS, TIMES};

pub static STARTED: Count = Count::new();
pub static GONE: Count = Count::new();

/// Something that happens often, and is waited for.
pub struct Count {
    now: AtomicUsize,
    goal: AtomicUsize,
    reached: Notify,
}

impl Count {
    const fn new() -> Self {
        Self {
            now: AtomicUsize::new(0),
            goal: AtomicUsize::new(usize::MAX),
            reached: Notify::const_new(),
        }
    }

    /// From now on, `more` are waited for. None may happen meanwhile.
    pub fn expect(&self, more: usize) {
        self.goal.store(self.now.load(Ordering::SeqCst) + more, Ordering::SeqCst);
    }

    fn one(&self) {
        if self.now.fetch_add(1, Ordering::SeqCst) + 1 == self.goal.load(Ordering::SeqCst) {
            self.reached.notify_one();
        }
    }

    pub async fn reached(&self) {
        while self.now.load(Ordering::SeqCst) < self.goal.load(Ordering::SeqCst) {
            self.reached.notified().await;
        }
    }
}

/// One run of a child. Dropping it says that the child is gone.
pub struct Run(());

impl Run {
    fn begin() -> Self {
        STARTED.one();
        Self(())
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        GONE.one();
    }
}

/// The error of a child that was told to fail.
#[derive(Debug)]
pub struct Failure;

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("told to fail")
    }
}

impl std::error::Error for Failure {}

/// What a child that has started does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    Idles,
    /// Fails when it is told to.
    Listens,
    Fails,
}

/// What the children of a measurement do.
pub trait Life: Send + Sync + 'static {
    const HOW: How = How::Error;
    /// Whether the children don't differ in anything but their names.
    const ALIKE: bool = false;
    /// Whether children will be added.
    const GROWS: bool = false;

    /// What the child does that starts now, the first thing it says.
    fn next(index: usize) -> Then;

    /// Looks at the clock, if it matters to this measurement.
    fn stamp() -> u64 {
        0
    }

    /// A child has begun, `now`.
    fn begun(_index: usize, _now: u64) {}

    /// A child fails, `now`.
    fn failing(_now: u64) {}

    /// A child that is an actor begins. If it listens, `tell` makes it fail.
    fn begin(index: usize, tell: impl FnOnce() -> Tell) -> (Run, Then) {
        let now = Self::stamp();
        let then = Self::next(index);
        if then == Then::Listens {
            tellers().push(tell());
        }
        Self::begun(index, now);
        (Run::begin(), then)
    }

    /// It fails, in its own way.
    fn fail() -> Result<(), Failure> {
        Self::failing(Self::stamp());
        match Self::HOW {
            How::Error => Err(Failure),
            How::Panic => panic!("told to fail"),
        }
    }

    /// The life of a child that is an async function; `stop` ends when it is asked to stop.
    fn live(
        index: usize,
        stop: impl Future<Output = ()> + Send,
    ) -> impl Future<Output = Result<(), Failure>> + Send {
        async move {
            let now = Self::stamp();
            // From here on, it hears what all are told.
            let told = TOLD.notified();
            let then = Self::next(index);
            Self::begun(index, now);
            let _run = Run::begin();
            if then == Then::Fails {
                // Nobody fails before its start is over.
                yield_now().await;
                return Self::fail();
            }
            tokio::select! {
                () = stop => Ok(()),
                () = told, if then == Then::Listens => Self::fail(),
            }
        }
    }
}

/// Makes a child fail.
pub type Tell = Box<dyn FnOnce() + Send>;

/// Where functions listen, and how actors are told.
static TOLD: Notify = Notify::const_new();
static TELLERS: Mutex<Vec<Tell>> = Mutex::new(Vec::new());

fn tellers() -> MutexGuard<'static, Vec<Tell>> {
    TELLERS.lock().expect("nobody panics with it")
}

/// Tells the one that listens.
pub fn tell_one() {
    TOLD.notify_one();
    std::mem::take(&mut *tellers()).into_iter().for_each(|tell| tell());
}

/// Tells all that listen.
pub fn tell_all() {
    TOLD.notify_waiters();
    std::mem::take(&mut *tellers()).into_iter().for_each(|tell| tell());
}

/// Nanoseconds since this was first asked.
fn nanos() -> u64 {
    static ZERO: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(ZERO.elapsed().as_nanos()).expect("it doesn't take centuries") + 1
}

/// It waits until it is stopped.
pub struct Idle;

impl Life for Idle {
    const ALIKE: bool = true;

    fn next(_index: usize) -> Then {
        Then::Idles
    }

    fn live(
        _index: usize,
        stop: impl Future<Output = ()> + Send,
    ) -> impl Future<Output = Result<(), Failure>> + Send {
        Idling { run: None, stop }
    }
}

pin_project! {
    /// As an async block, it would be twice as large: that keeps what it captures beside what it
    /// awaits.
    struct Idling<S> {
        run: Option<Run>,
        #[pin]
        stop: S,
    }
}

impl<S: Future<Output = ()>> Future for Idling<S> {
    type Output = Result<(), Failure>;

    fn poll(self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<Self::Output> {
        let idling = self.project();
        idling.run.get_or_insert_with(Run::begin);
        idling.stop.poll(ctx).map(Ok)
    }
}

/// The first child fails when it is told to.
pub struct Told;

impl Life for Told {
    fn next(index: usize) -> Then {
        if index == 0 { Then::Listens } else { Then::Idles }
    }
}

/// The child fails as soon as it is back, until [`RESTARTS`] are over or it has taken too long, and
/// it is noted how long it was away.
pub struct Again<const PANICS: bool>;

static RUN: AtomicUsize = AtomicUsize::new(0);
static FAILED_AT: AtomicU64 = AtomicU64::new(0);
static TOOK: Mutex<Vec<u64>> = Mutex::new(Vec::new());
static OVER: Notify = Notify::const_new();

/// Waits until nothing fails any more.
pub async fn over() {
    OVER.notified().await;
}

/// The times that were noted.
pub fn times() -> Vec<u64> {
    std::mem::take(&mut *TOOK.lock().expect("nobody panics with it"))
}

impl<const PANICS: bool> Life for Again<PANICS> {
    const HOW: How = if PANICS { How::Panic } else { How::Error };

    fn next(_index: usize) -> Then {
        if RUN.fetch_add(1, Ordering::SeqCst) < RESTARTS
            && u128::from(nanos()) < PATIENCE.as_nanos()
        {
            return Then::Fails;
        }
        OVER.notify_one();
        Then::Idles
    }

    fn stamp() -> u64 {
        nanos()
    }

    fn begun(_index: usize, now: u64) {
        let failed = FAILED_AT.load(Ordering::SeqCst);
        if failed != 0 {
            TOOK.lock().expect("nobody panics with it").push(now - failed);
        }
    }

    fn failing(now: u64) {
        FAILED_AT.store(now, Ordering::SeqCst);
    }
}

/// All children fail when they are told to, and then as soon as they are back, [`TIMES`] in all.
pub struct Storm<const PANICS: bool>;

static RUNS: OnceLock<Vec<AtomicU8>> = OnceLock::new();

impl<const PANICS: bool> Life for Storm<PANICS> {
    const HOW: How = if PANICS { How::Panic } else { How::Error };

    fn next(index: usize) -> Then {
        let runs = RUNS.get_or_init(|| (0..CHILDREN).map(|_| AtomicU8::new(0)).collect());
        match usize::from(runs[index].fetch_add(1, Ordering::Relaxed)) {
            0 => Then::Listens,
            run if run < TIMES => Then::Fails,
            _ => Then::Idles,
        }
    }
}

/// The first child fails when it is told to, and from then on as soon as it is back. When a child
/// is added, it is noted how long after [`adds`] it has started.
pub struct Looping;

static LOOPS: AtomicU8 = AtomicU8::new(0);
static ADDED_AT: AtomicU64 = AtomicU64::new(0);
static HERE: Notify = Notify::const_new();

/// A child is about to be added.
pub fn adds() {
    ADDED_AT.store(nanos(), Ordering::SeqCst);
}

/// Waits until it has started.
pub async fn added() {
    HERE.notified().await;
}

impl Life for Looping {
    const GROWS: bool = true;

    fn next(index: usize) -> Then {
        match index {
            0 if LOOPS.fetch_or(1, Ordering::SeqCst) == 0 => Then::Listens,
            0 => Then::Fails,
            _ => Then::Idles,
        }
    }

    fn begun(index: usize, _now: u64) {
        if index >= CHILDREN {
            let took = nanos() - ADDED_AT.load(Ordering::SeqCst);
            TOOK.lock().expect("nobody panics with it").push(took);
            HERE.notify_one();
        }
    }
}
