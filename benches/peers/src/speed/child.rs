//! What the children of all crates do, and how it is counted.
//!
//! There is one measurement in a process, so the counters are static. A child counts itself when it
//! starts and when it is dropped, and fails on demand. A [`Life`] is a type, so that the future of an
//! idle child holds nothing but its wait.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock};
use std::task::{Context, Poll};
use std::time::Instant;

use pin_project_lite::pin_project;
use tokio::sync::Notify;
use tokio::task::yield_now;

use super::work::{CHILDREN, PATIENCE, RESTARTS, TIMES};
use crate::board::Failure;

pub static STARTED: Count = Count::new();
pub static GONE: Count = Count::new();

/// A counter with a goal that can be awaited.
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

    /// Sets the goal to `more` from now on. Nothing may be counted meanwhile.
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

/// One incarnation of a child, which ends when this is dropped.
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

/// What an incarnation does after its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    Idles,
    /// Fails on demand.
    Listens,
    Fails,
}

/// What the children of a measurement do.
pub trait Life: Send + Sync + 'static {
    /// Whether it fails by a panic instead of an error.
    const PANICS: bool = false;
    /// Whether the children differ only in their names.
    const ALIKE: bool = false;
    /// Whether children are added later.
    const GROWS: bool = false;

    /// What the incarnation that starts now does next. Called first.
    fn next(index: usize) -> Then;

    /// Reads the clock, if this measurement needs it.
    fn stamp() -> u64 {
        0
    }

    /// A child has started at `now`.
    fn begun(_index: usize, _now: u64) {}

    /// A child fails at `now`.
    fn failing(_now: u64) {}

    /// Begins a child that is an actor. If it fails on demand, `tell` makes the demand.
    fn begin(index: usize, tell: impl FnOnce() -> Tell) -> (Run, Then) {
        let now = Self::stamp();
        let then = Self::next(index);
        if then == Then::Listens {
            tellers().push(tell());
        }
        Self::begun(index, now);
        (Run::begin(), then)
    }

    /// Fails with an error or by a panic.
    fn fail() -> Result<(), Failure> {
        Self::failing(Self::stamp());
        if Self::PANICS { panic!("out of luck") } else { Err(Failure) }
    }

    /// The body of a child that is an async function; `stop` completes when it is cancelled.
    fn live(
        index: usize,
        stop: impl Future<Output = ()> + Send,
    ) -> impl Future<Output = Result<(), Failure>> + Send {
        async move {
            let now = Self::stamp();
            // Created first, so that no demand is missed.
            let told = TOLD.notified();
            let then = Self::next(index);
            Self::begun(index, now);
            let _run = Run::begin();
            if then == Then::Fails {
                // A supervisor must see the start before the failure.
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

/// Demands a failure.
pub type Tell = Box<dyn FnOnce() + Send>;

/// The demand for async functions, and those for actors.
static TOLD: Notify = Notify::const_new();
static TELLERS: Mutex<Vec<Tell>> = Mutex::new(Vec::new());

fn tellers() -> MutexGuard<'static, Vec<Tell>> {
    TELLERS.lock().expect("no panic")
}

/// Demands a failure of one child.
pub fn tell_one() {
    TOLD.notify_one();
    std::mem::take(&mut *tellers()).into_iter().for_each(|tell| tell());
}

/// Demands a failure of all children that listen.
pub fn tell_all() {
    TOLD.notify_waiters();
    std::mem::take(&mut *tellers()).into_iter().for_each(|tell| tell());
}

/// Nanoseconds since the first call.
fn nanos() -> u64 {
    static ZERO: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(ZERO.elapsed().as_nanos()).expect("less than centuries") + 1
}

/// A child that waits until it is cancelled.
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
    /// As an async block, it would be twice as large.
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

/// The first child fails on demand.
pub struct Told;

impl Life for Told {
    fn next(index: usize) -> Then {
        if index == 0 { Then::Listens } else { Then::Idles }
    }
}

/// The child fails as soon as it has restarted, [`RESTARTS`] times or for [`PATIENCE`]. The time of each
/// restart is kept.
pub struct Again<const PANICS: bool>;

static RUN: AtomicUsize = AtomicUsize::new(0);
static FAILED_AT: AtomicU64 = AtomicU64::new(0);
static TOOK: Mutex<Vec<u64>> = Mutex::new(Vec::new());
static OVER: Notify = Notify::const_new();

/// Waits until the last restart.
pub async fn over() {
    OVER.notified().await;
}

/// Takes the times that were kept.
pub fn times() -> Vec<u64> {
    std::mem::take(&mut *TOOK.lock().expect("no panic"))
}

impl<const PANICS: bool> Life for Again<PANICS> {
    const PANICS: bool = PANICS;

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
            TOOK.lock().expect("no panic").push(now - failed);
        }
    }

    fn failing(now: u64) {
        FAILED_AT.store(now, Ordering::SeqCst);
    }
}

/// All children fail on demand, and then as soon as they have restarted, [`TIMES`] times in all.
pub struct Storm<const PANICS: bool>;

static RUNS: OnceLock<Vec<AtomicU8>> = OnceLock::new();

impl<const PANICS: bool> Life for Storm<PANICS> {
    const PANICS: bool = PANICS;

    fn next(index: usize) -> Then {
        let runs = RUNS.get_or_init(|| (0..CHILDREN).map(|_| AtomicU8::new(0)).collect());
        match usize::from(runs[index].fetch_add(1, Ordering::Relaxed)) {
            0 => Then::Listens,
            run if run < TIMES => Then::Fails,
            _ => Then::Idles,
        }
    }
}

/// The first child fails on demand, and then as soon as it has restarted. Of each added child, the time
/// from [`adds`] to its start is kept.
pub struct Looping;

static LOOPS: AtomicU8 = AtomicU8::new(0);
static ADDED_AT: AtomicU64 = AtomicU64::new(0);
static HERE: Notify = Notify::const_new();

/// Notes the time before a child is added.
pub fn adds() {
    ADDED_AT.store(nanos(), Ordering::SeqCst);
}

/// Waits until the added child has started.
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
            TOOK.lock().expect("no panic").push(took);
            HERE.notify_one();
        }
    }
}
