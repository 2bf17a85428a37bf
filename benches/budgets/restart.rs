//! One restart: from just before a failure to the first instruction of the next incarnation.

use std::panic;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, oneshot};
use verger::{Backoff, CancellationToken, Context, ExitError, Supervisor, worker};

use crate::idle::{self, STARTS};
use crate::measure::{Budget, Part, Row, Side, Unit, Who, p50, runtime};
use crate::raw;

const CRASHES: usize = 20_000;
/// Of these, in one turn of a side: an eighth of a millisecond.
const TURN: usize = 250;
/// The limit's period, unless that is what is measured.
const HOUR: Duration = Duration::from_secs(3600);

const EQUAL: &[Part] = &[Part::new("", Unit::Nanos, Budget::AtMost(1.0))];

pub(crate) const ROWS: &[Row] = &[
    Row::both("restart-error", 1, |sides| in_turns(sides, Failure::Error))
        .what("a restart after an error, p50")
        .parts(EQUAL)
        .many_rounds(),
    Row::both("restart-panic", 1, |sides| in_turns(sides, Failure::Panic))
        .what("a restart after a panic, p50")
        .parts(EQUAL),
    Row::new("restart-scale", after_error)
        .what("a restart among 1,000,000 children, against one among 1,000")
        .against_itself(1_000, 1_000_000)
        .parts(&[Part::new("", Unit::Nanos, Budget::AtMost(1.5))])
        .rounds(9),
    Row::new("restart-window", in_a_window)
        .what("a restart with 10,000 others in the window, against one with none")
        .against_itself(0, 10_000)
        .parts(&[Part::new("", Unit::Nanos, Budget::AtMost(1.1))]),
];

static LOG: Mutex<Log> = Mutex::new(Log { failed: None, took: Vec::new(), until: None });

/// Where the child of each side waits until it is to crash.
static GATES: [Notify; 2] = [const { Notify::const_new() }; 2];

fn gate(who: Who) -> &'static Notify {
    &GATES[who as usize]
}

/// What the child that crashes notes.
struct Log {
    failed: Option<Instant>,
    took: Vec<Duration>,
    /// So many, and who wants to know.
    until: Option<(usize, oneshot::Sender<Vec<Duration>>)>,
}

impl Log {
    fn expect(crashes: usize) -> oneshot::Receiver<Vec<Duration>> {
        let (sender, all) = oneshot::channel();
        let mut log = LOG.lock().expect("no panic");
        log.took.reserve(crashes);
        log.until = Some((crashes, sender));
        all
    }

    /// Called first in each run.
    fn is_there() {
        let now = Instant::now();
        let mut log = LOG.lock().expect("no panic");
        if let Some(failed) = log.failed.take() {
            log.took.push(now - failed);
        }
    }

    /// Called last before a failure. `false`: that was all.
    fn fails() -> bool {
        let mut log = LOG.lock().expect("no panic");
        if log.until.as_ref().is_some_and(|(crashes, _)| log.took.len() >= *crashes) {
            let took = std::mem::take(&mut log.took);
            let _ = log.until.take().map(|(_, sender)| sender.send(took));
        }
        let goes_on = log.until.is_some();
        log.failed = goes_on.then(Instant::now);
        goes_on
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    Error,
    Panic,
}

impl Failure {
    pub(crate) fn happen<E: From<&'static str>>(self) -> Result<(), E> {
        match self {
            Self::Error => Err("out of luck".into()),
            Self::Panic => panic!("out of luck"),
        }
    }
}

/// On both sides: what a panic prints is not what is measured.
pub(crate) fn silence_panics() {
    panic::set_hook(Box::new(|_| {}));
}

fn after_error(side: Side) -> Vec<f64> {
    vec![p50(crashes(side, Failure::Error, HOUR, CRASHES))]
}

/// Begins to measure when the window is as full as it should be.
fn in_a_window(side: Side) -> Vec<f64> {
    const WARM: usize = 10_000;
    let period = if side.n == 0 { Duration::from_nanos(1) } else { HOUR };
    let one = Side { n: 1, ..side };
    let took = crashes(one, Failure::Error, period, WARM + 2_000);
    vec![p50(took.into_iter().skip(WARM))]
}

/// Lets the middle one of `n` children fail again and again.
fn crashes(side: Side, failure: Failure, period: Duration, crashes: usize) -> Vec<Duration> {
    silence_panics();
    let runtime = runtime();
    let took = runtime.block_on(async {
        start(side, failure, period).await;
        crash_often(side.who, crashes).await
    });
    // What is still there is not measured, and a million tasks take a while to go.
    runtime.shutdown_background();
    took
}

/// The same on both sides at once, of which one waits while the other fails. The machine is another from
/// one second to the next, and a side that had it for itself would have to be lucky.
fn in_turns(sides: [Side; 2], failure: Failure) -> [Vec<f64>; 2] {
    silence_panics();
    let runtime = runtime();
    let took = runtime.block_on(async {
        for side in sides {
            start(side, failure, HOUR).await;
        }
        let mut took = [Vec::new(), Vec::new()];
        for _ in 0..CRASHES / TURN {
            for (side, took) in sides.iter().zip(&mut took) {
                took.extend(crash_often(side.who, TURN).await);
            }
        }
        took
    });
    runtime.shutdown_background();
    took.map(|took| vec![p50(took)])
}

/// Starts `n` children. They run when it is ready.
async fn start(side: Side, failure: Failure, period: Duration) {
    let all_started = STARTS.expect(side.n);
    tokio::spawn(match side.who {
        Who::Raw => start_raw(side.n, failure),
        Who::Verger => start_verger(side.n, failure, period),
    });
    all_started.await.expect("they start");
}

async fn crash_often(who: Who, crashes: usize) -> Vec<Duration> {
    let all_over = Log::expect(crashes);
    gate(who).notify_one();
    all_over.await.expect("it goes on")
}

/// What the child that crashes does, on either side.
async fn crash<E: From<&'static str>>(who: Who, first: bool, failure: Failure) -> Result<(), E> {
    Log::is_there();
    if first {
        STARTS.one();
    }
    while !Log::fails() {
        gate(who).notified().await;
    }
    failure.happen()
}

type Start = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

fn start_raw(n: u64, failure: Failure) -> Start {
    Box::pin(raw::supervise(n, CancellationToken::new(), move |children, run, stop| {
        if run.index != n / 2 {
            return children.spawn(idle::task(stop));
        }
        children.spawn(crash(Who::Raw, run.number == 1, failure))
    }))
}

fn start_verger(n: u64, failure: Failure, period: Duration) -> Start {
    let crashing = worker("crashing", move |ctx: Context| {
        crash::<ExitError>(Who::Verger, ctx.incarnation() == 1, failure)
    });
    let crashing = crashing.backoff(Backoff::none());
    let idle = idle::named(worker("idle", idle::child), n);
    let children =
        idle.zip(0..).map(|(idle, index)| if index == n / 2 { crashing.clone() } else { idle });
    let app = Supervisor::builder("app").restarts(1_000_000, period);
    let app = children.fold(app, |app, child| app.child(child)).build().expect("a tree");
    Box::pin(async move { drop(app.start().await.expect("it starts")) })
}
