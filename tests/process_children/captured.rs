//! The lines that the processes of a test have written, as a subscriber of its thread gets them.

use std::fmt::Debug;
use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};

use crate::log::register_second_subscriber;

/// A log line of `verger::process`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Logged {
    pub(crate) message: String,
    pub(crate) child: String,
    pub(crate) incarnation: u64,
    pub(crate) stream: String,
    pub(crate) line: String,
    pub(crate) count: u64,
}

impl Visit for Logged {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            "child" => self.child = format!("{value:?}"),
            "stream" => self.stream = format!("{value:?}"),
            _ => {}
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "line" {
            self.line = value.to_owned();
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "incarnation" => self.incarnation = value,
            "count" => self.count = value,
            _ => {}
        }
    }
}

/// Captures the lines of this thread's processes until it is dropped.
pub(crate) struct Captured {
    lines: UnboundedReceiver<Logged>,
    _guard: DefaultGuard,
}

impl Captured {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    /// `each` is called for each line, before it is captured, on the thread that logs.
    pub(crate) fn with(each: impl Fn(&Logged) + Send + Sync + 'static) -> Self {
        let (sender, lines) = unbounded_channel();
        let keep = Keep { each, sender: Mutex::new(sender) };
        let guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(keep));
        register_second_subscriber();
        Self { lines, _guard: guard }
    }

    /// Waits for the next log line.
    pub(crate) async fn next(&mut self) -> Logged {
        let next = tokio::time::timeout(Duration::from_secs(300), self.lines.recv()).await;
        next.expect("there is no further line").unwrap()
    }

    /// Waits for the next line of a process.
    pub(crate) async fn line(&mut self) -> String {
        let next = self.next().await;
        assert_eq!(next.message, "output", "{next:?}");
        next.line
    }

    /// Returns the lines that were logged since the last call.
    pub(crate) fn rest(&mut self) -> Vec<Logged> {
        std::iter::from_fn(|| self.lines.try_recv().ok()).collect()
    }
}

struct Keep<F> {
    each: F,
    sender: Mutex<tokio::sync::mpsc::UnboundedSender<Logged>>,
}

impl<S: Subscriber, F: Fn(&Logged) + Send + Sync + 'static> Layer<S> for Keep<F> {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let level = *event.metadata().level();
        if event.metadata().target() != "verger::process" || level > tracing::Level::INFO {
            return;
        }
        let mut logged = Logged::default();
        event.record(&mut logged);
        (self.each)(&logged);
        let _ = self.sender.lock().unwrap().send(logged);
    }
}
