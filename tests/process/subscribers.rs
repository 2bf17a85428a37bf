//! A `tracing` subscriber that panics changes nothing that the tree does.
//!
//! The first panic switches off the log of the whole process, so each case is a process of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use tracing::subscriber::{Interest, Subscriber};
use tracing::{Event, Metadata, span};
use verger::{
    Backoff, Context, Exit, RestartType, Supervisor, SupervisorHandle, mailbox_with_capacity,
    worker, worker_with, worker_with_mailbox,
};

use crate::own_process::count_lines;

const CHOICE: &str = "VERGER_TEST_SUBSCRIBER";
const LINE: &str = "verger: the tracing subscriber has panicked; no further lines are logged";

/// Panics in one callback, for what this crate says.
struct Panics {
    callback: String,
    ids: AtomicU64,
}

impl Panics {
    fn panics_in(&self, callback: &str) {
        assert!(self.callback != callback, "the log is full");
    }
}

impl Subscriber for Panics {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let is_ours = metadata.target().starts_with("verger::");
        if is_ours {
            self.panics_in("enabled");
        }
        is_ours
    }

    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if metadata.target().starts_with("verger::") {
            self.panics_in("register_callsite");
        }
        Interest::sometimes()
    }

    fn new_span(&self, _span: &span::Attributes<'_>) -> span::Id {
        self.panics_in("new_span");
        span::Id::from_u64(self.ids.fetch_add(1, Ordering::Relaxed))
    }

    fn record(&self, _span: &span::Id, _values: &span::Record<'_>) {}

    fn record_follows_from(&self, _span: &span::Id, _follows: &span::Id) {}

    fn event(&self, _event: &Event<'_>) {
        self.panics_in("event");
    }

    fn enter(&self, _span: &span::Id) {
        self.panics_in("enter");
    }

    fn exit(&self, _span: &span::Id) {
        self.panics_in("exit");
    }

    fn try_close(&self, _id: span::Id) -> bool {
        self.panics_in("try_close");
        true
    }
}

/// The entry point of a case. As an ordinary test, it finds none selected and returns.
#[test]
fn case() {
    let Ok(callback) = std::env::var(CHOICE) else { return };
    let panics = Panics { callback, ids: AtomicU64::new(1) };
    tracing::subscriber::set_global_default(panics).unwrap();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build().unwrap();
    runtime.block_on(restarts_delivers_and_stops());
}

/// What a tree does that writes every kind of line.
async fn restarts_delivers_and_stops() {
    let starts = Arc::new(AtomicU32::new(0));
    let flaky = worker_with("flaky", Arc::clone(&starts), async |ctx: Context, starts| -> Exit {
        let starts: Arc<AtomicU32> = starts;
        match starts.fetch_add(1, Ordering::Relaxed) {
            0 => Err("no connection".into()),
            1 => panic!("on purpose"),
            _ => {
                ctx.cancelled().await;
                Ok(())
            }
        }
    });
    let once = worker("once", async |_ctx| -> Exit { Err("never again".into()) });
    let (address, inbox) = mailbox_with_capacity::<u32>(1);
    let reads = worker_with_mailbox("reads", inbox, async |ctx: Context, _inbox| {
        ctx.cancelled().await;
    });
    let deaf = worker("deaf", async |_ctx| std::future::pending::<()>().await);
    let below = Supervisor::builder("below").child(deaf.shutdown(Duration::from_secs(1)));
    let app = Supervisor::builder("app")
        .child(flaky.backoff(Backoff::constant(Duration::from_secs(1))))
        .child(once.restart(RestartType::Temporary))
        .child(reads)
        .child(below);
    let tree: SupervisorHandle = app.build().unwrap().start().await.unwrap();
    let mut letters = tree.dead_letters();
    address.try_send(7).unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(tree.which_child("flaky").await.unwrap().incarnation, 3);
    assert_eq!(tree.otp().count_children().await.unwrap().active, 3);
    let stopped = tree.stop("done").await.unwrap_err().to_string();
    assert_eq!(stopped, "stopped, but killed at the end of their grace: `app/below/deaf`");
    let letter = letters.next().await.unwrap();
    assert_eq!((letter.target.as_str(), letter.take::<u32>()), ("app/reads", Some(7)));
    assert_eq!(starts.load(Ordering::Relaxed), 3);
}

/// Runs a case, and returns how many lines say that the subscriber has panicked.
fn lines_of(callback: &str) -> usize {
    count_lines("subscribers::case", CHOICE, callback, LINE)
}

#[test]
fn a_subscriber_that_does_not_panic_is_used_to_the_end() {
    assert_eq!(lines_of("none"), 0);
}

#[test]
fn a_subscriber_may_panic_at_an_event() {
    assert_eq!(lines_of("event"), 1);
}

#[test]
fn a_subscriber_may_panic_when_a_span_is_made() {
    assert_eq!(lines_of("new_span"), 1);
}

#[test]
fn a_subscriber_may_panic_when_a_span_is_entered() {
    assert_eq!(lines_of("enter"), 1);
}

#[test]
fn a_subscriber_may_panic_when_a_span_is_exited() {
    assert_eq!(lines_of("exit"), 1);
}

#[test]
fn a_subscriber_may_panic_when_a_span_is_closed() {
    assert_eq!(lines_of("try_close"), 1);
}

#[test]
fn a_subscriber_may_panic_when_it_is_asked_what_is_enabled() {
    assert_eq!(lines_of("enabled"), 1);
    assert_eq!(lines_of("register_callsite"), 1);
}
