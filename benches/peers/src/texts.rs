//! The texts that a user of a crate is shown, in its log and elsewhere.

use std::fmt::Display;
use std::io;
use std::sync::{Mutex, OnceLock};

use tracing_subscriber::filter::LevelFilter;

/// The texts with their places, once a probe listens. A measurement doesn't.
static SEEN: OnceLock<Mutex<Vec<(&str, String)>>> = OnceLock::new();

/// Listens to what is logged with `tracing` or `log` in this process.
pub fn listen() {
    SEEN.set(Mutex::default()).expect("it is called once");
    let log = tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE).with_ansi(false);
    log.with_writer(|| Log).init();
}

struct Log;

impl io::Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        saw("the log", String::from_utf8_lossy(line));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Notes a text that is shown, and its place.
pub fn saw(place: &'static str, text: impl Display) {
    if let Some(seen) = SEEN.get() {
        seen.lock().expect("no panic").push((place, text.to_string()));
    }
}

/// All places where something is shown, and those where `text` is part of it.
pub fn places(text: &str) -> (Vec<&'static str>, Vec<&'static str>) {
    let (mut all, mut with) = (Vec::new(), Vec::new());
    for (place, shown) in &*SEEN.get().expect("it listens").lock().expect("no panic") {
        if !all.contains(place) {
            all.push(*place);
        }
        if shown.contains(text) && !with.contains(place) {
            with.push(*place);
        }
    }
    (all, with)
}
