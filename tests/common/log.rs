//! The log lines of a test.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, OnceLock};

use tracing::Dispatch;
use tracing::level_filters::LevelFilter;
use tracing::subscriber::{DefaultGuard, NoSubscriber};

/// Captures the log lines of this thread as text.
pub(crate) struct Log {
    text: Buffer,
    _guard: DefaultGuard,
}

#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Captures lines of this thread from this level up, until the value is dropped.
    pub(crate) fn at(level: LevelFilter) -> Self {
        let text = Buffer::default();
        let writer = text.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(level)
            .without_time()
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        let log = Self { text, _guard: tracing::subscriber::set_default(subscriber) };
        register_second_subscriber();
        log
    }

    /// Returns the lines since the last call.
    pub(crate) fn lines(&self) -> Vec<String> {
        let text = std::mem::take(&mut *self.text.0.lock().unwrap());
        let text = String::from_utf8(text).unwrap();
        text.lines().map(|line| line.trim_start().to_owned()).collect()
    }
}

/// Makes tracing ask every subscriber about every callsite. Call it after setting a subscriber for
/// a thread.
///
/// With a single subscriber in the process, tracing asks only the thread that reaches a callsite
/// first, and caches the answer. A test without a subscriber could so disable the callsite for a
/// test with one. A second subscriber avoids that.
pub(crate) fn register_second_subscriber() {
    static SECOND: OnceLock<Dispatch> = OnceLock::new();
    SECOND.get_or_init(|| Dispatch::new(NoSubscriber::new()));
}
