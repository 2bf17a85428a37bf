//! A recorder of `metrics` that panics changes nothing that the tree does.
//!
//! The first panic switches off the metrics of the whole process, so each case is a process of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use metrics::{
    Counter, CounterFn, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use verger::{
    Backoff, Context, Exit, Supervisor, SupervisorHandle, mailbox_with_capacity, worker,
    worker_with, worker_with_mailbox,
};

use crate::own_process::count_lines;

const CHOICE: &str = "VERGER_TEST_RECORDER";
const LINE: &str = "verger: the metrics recorder has panicked; no further metrics are recorded";

/// How often the recorder or a handle of it was called.
static CALLS: AtomicU32 = AtomicU32::new(0);

/// Panics in one callback.
#[derive(Clone)]
struct Panics(Arc<str>);

impl Panics {
    fn called(&self, callback: &str) {
        CALLS.fetch_add(1, Ordering::Relaxed);
        assert!(*self.0 != *callback, "on purpose");
    }
}

impl Recorder for Panics {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {
        self.called("describe");
    }

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {
        self.called("describe");
    }

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {
        self.called("describe");
    }

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        self.called("register_counter");
        Counter::from_arc(Arc::new(self.clone()))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        self.called("register_gauge");
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        self.called("register_histogram");
        Histogram::from_arc(Arc::new(self.clone()))
    }
}

impl CounterFn for Panics {
    fn increment(&self, _: u64) {
        self.called("increment");
    }

    fn absolute(&self, _: u64) {}
}

impl HistogramFn for Panics {
    fn record(&self, _: f64) {
        self.called("record");
    }
}

/// The recorder itself is never dropped, since it belongs to the process.
impl Drop for Panics {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.called("drop");
        }
    }
}

/// The entry point of a case. As an ordinary test, it finds none selected and returns.
#[test]
fn case() {
    let Ok(callback) = std::env::var(CHOICE) else { return };
    let is_quiet = callback == "none";
    assert!(metrics::set_global_recorder(Panics(callback.into())).is_ok());
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build().unwrap();
    runtime.block_on(restarts_delivers_and_stops(is_quiet));
}

/// What a tree does that calls the recorder in every way.
async fn restarts_delivers_and_stops(is_quiet: bool) {
    verger::metrics::describe();
    let starts = Arc::new(AtomicU32::new(0));
    let flaky = worker_with("flaky", Arc::clone(&starts), async |ctx: Context, starts| -> Exit {
        let starts: Arc<AtomicU32> = starts;
        if starts.fetch_add(1, Ordering::Relaxed) < 2 {
            return Err("no connection".into());
        }
        ctx.cancelled().await;
        Ok(())
    });
    let (address, inbox) = mailbox_with_capacity::<u32>(1);
    let reads = worker_with_mailbox("reads", inbox, async |ctx: Context, _inbox| {
        ctx.cancelled().await;
    });
    let idle = worker("idle", async |ctx: Context| ctx.cancelled().await);
    let app = Supervisor::builder("app")
        .child(flaky.backoff(Backoff::constant(Duration::from_secs(1))))
        .child(reads)
        .child(Supervisor::builder("below").child(idle));
    let tree: SupervisorHandle = app.build().unwrap().start().await.unwrap();
    let mut letters = tree.dead_letters();
    address.try_send(7).unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    verger::metrics::Gauges::new().record(&tree.status().await.unwrap());
    assert_eq!(tree.which_child("flaky").await.unwrap().incarnation, 3);
    let before = CALLS.load(Ordering::Relaxed);
    tree.stop("done").await.unwrap();
    let letter = letters.next().await.unwrap();
    assert_eq!((letter.target.as_str(), letter.take::<u32>()), ("app/reads", Some(7)));
    assert_eq!(starts.load(Ordering::Relaxed), 3);
    assert!(!is_quiet || CALLS.load(Ordering::Relaxed) > before);
}

/// Runs a case, and returns how many lines say that the recorder has panicked.
fn lines_of(callback: &str) -> usize {
    count_lines("recorders::case", CHOICE, callback, LINE)
}

#[test]
fn a_recorder_that_does_not_panic_is_used_to_the_end() {
    assert_eq!(lines_of("none"), 0);
}

#[test]
fn a_recorder_may_panic_when_a_metric_is_described_or_registered() {
    assert_eq!(lines_of("describe"), 1);
    assert_eq!(lines_of("register_counter"), 1);
    assert_eq!(lines_of("register_gauge"), 1);
    assert_eq!(lines_of("register_histogram"), 1);
}

#[test]
fn a_recorder_may_panic_when_a_value_is_recorded_or_a_handle_is_dropped() {
    assert_eq!(lines_of("increment"), 1);
    assert_eq!(lines_of("record"), 1);
    assert_eq!(lines_of("drop"), 1);
}
