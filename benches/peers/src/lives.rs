//! What the children of the measurements do, and how it is counted.
//!
//! There is one measurement in a process, so the counters are static. A child counts itself when it
//! starts and when it is dropped, and fails on demand. Each [`Life`] is a type, so that the future of
//! an idle child holds nothing but its wait.

use std::future::Future;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use pin_project_lite::pin_project;
use tokio::sync::Notify;
use tokio::task::yield_now;

use crate::child::{Failure, Life, Order};

/// The longest time for repetitions.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// Children of one supervisor wherever children fail.
pub const CHILDREN: usize = 10_000;
/// Failures of each child of a storm.
pub const TIMES: usize = 10;
/// Restarts one after the other, unless [`PATIENCE`] ends before.
const RESTARTS: usize = 20_000;

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

/// A child that waits until it is cancelled.
pub struct Idle(());

impl Idle {
    fn started() -> Self {
        STARTED.one();
        Self(())
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        GONE.one();
    }
}

impl Life for Idle {
    const ALIKE: bool = true;

    async fn begin<R>(_index: usize, _send: impl Fn(Order) -> R + Send + 'static) -> Self {
        Self::started()
    }

    async fn obey(_order: Order) -> Result<ControlFlow<()>, Failure> {
        Ok(ControlFlow::Continue(()))
    }

    fn live(
        _index: usize,
        _ready: impl FnOnce() + Send,
        stop: impl Future<Output = ()> + Send,
    ) -> impl Future<Output = Result<(), Failure>> + Send {
        Idling { life: None, stop }
    }
}

pin_project! {
    /// As an async block, it would be twice as large.
    struct Idling<S> {
        life: Option<Idle>,
        #[pin]
        stop: S,
    }
}

impl<S: Future<Output = ()>> Future for Idling<S> {
    type Output = Result<(), Failure>;

    fn poll(self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<Self::Output> {
        let idling = self.project();
        idling.life.get_or_insert_with(Idle::started);
        idling.stop.poll(ctx).map(Ok)
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

/// When the children of a measurement fail.
pub trait Failures: Send + Sync + 'static {
    /// Whether a child fails by a panic instead of an error.
    const PANICS: bool = false;
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
}

/// A child that fails as `F` says, and is counted as an idle child is.
pub struct Failing<F>(Idle, PhantomData<fn() -> F>);

impl<F: Failures> Failing<F> {
    fn started(index: usize) -> (Self, Then) {
        let now = F::stamp();
        let then = F::next(index);
        F::begun(index, now);
        (Self(Idle::started(), PhantomData), then)
    }

    fn fail() -> Result<ControlFlow<()>, Failure> {
        F::failing(F::stamp());
        if F::PANICS { panic!("out of luck") } else { Err(Failure) }
    }
}

impl<F: Failures> Life for Failing<F> {
    const GROWS: bool = F::GROWS;

    async fn begin<R>(index: usize, send: impl Fn(Order) -> R + Send + 'static) -> Self {
        let (life, then) = Self::started(index);
        match then {
            Then::Idles => {}
            Then::Listens => senders().push(Box::new(move || drop(send(Order::Fail)))),
            Then::Fails => drop(send(Order::Fail)),
        }
        life
    }

    async fn obey(_order: Order) -> Result<ControlFlow<()>, Failure> {
        Self::fail()
    }

    async fn live(
        index: usize,
        _ready: impl FnOnce() + Send,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<(), Failure> {
        // Created first, so that no demand is missed.
        let demand = DEMAND.notified();
        let (_life, then) = Self::started(index);
        if then == Then::Fails {
            // A supervisor must see the start before the failure.
            yield_now().await;
            return Self::fail().map(|_| ());
        }
        tokio::select! {
            () = stop => Ok(()),
            () = demand, if then == Then::Listens => Self::fail().map(|_| ()),
        }
    }
}

/// Demands a failure.
type Demand = Box<dyn FnOnce() + Send>;

/// The demand for async functions, and those for actors.
static DEMAND: Notify = Notify::const_new();
static SENDERS: Mutex<Vec<Demand>> = Mutex::new(Vec::new());

fn senders() -> MutexGuard<'static, Vec<Demand>> {
    SENDERS.lock().expect("no panic")
}

/// Demands a failure of one child.
pub fn demand_one() {
    DEMAND.notify_one();
    std::mem::take(&mut *senders()).into_iter().for_each(|demand| demand());
}

/// Demands a failure of all children that listen.
pub fn demand_all() {
    DEMAND.notify_waiters();
    std::mem::take(&mut *senders()).into_iter().for_each(|demand| demand());
}

/// Nanoseconds since the first call.
fn nanos() -> u64 {
    static ZERO: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(ZERO.elapsed().as_nanos()).expect("less than centuries") + 1
}

/// The first child fails on demand.
pub struct OnDemand;

impl Failures for OnDemand {
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

impl<const PANICS: bool> Failures for Again<PANICS> {
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

impl<const PANICS: bool> Failures for Storm<PANICS> {
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

impl Failures for Looping {
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
