//! The log of a crate, one of the places where a user is shown something.

use std::fmt::{Debug, Write as _};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::board;

/// Copies what is logged with `tracing` or `log` to the board.
struct Listener;

/// Listens to the log of this process.
pub fn listen() {
    tracing::subscriber::set_global_default(Listener).expect("set once");
    log::set_logger(&Listener).expect("set once");
    log::set_max_level(log::LevelFilter::Trace);
}

impl Subscriber for Listener {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    // Spans aren't used, so all have the same id.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        board::saw("the log", line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, _: &Field, value: &dyn Debug) {
        write!(self.0, "{value:?} ").expect("writing to a string can't fail");
    }
}

impl log::Log for Listener {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        board::saw("the log", record.args().to_string());
    }

    fn flush(&self) {}
}
