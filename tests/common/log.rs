//! What is logged while a test runs.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, OnceLock};

use tracing::Dispatch;
use tracing::level_filters::LevelFilter;
use tracing::subscriber::{DefaultGuard, NoSubscriber};

/// What is logged on this thread, as text.
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
    /// Hears what is logged on this thread, down to this level, until it is dropped.
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
        ask_every_log();
        log
    }

    /// The lines since this was asked last.
    pub(crate) fn lines(&self) -> Vec<String> {
        let text = std::mem::take(&mut *self.text.0.lock().unwrap());
        let text = String::from_utf8(text).unwrap();
        text.lines().map(|line| line.trim_start().to_owned()).collect()
    }
}

/// Called with a log in place that is of this thread alone.
///
/// While there is one log in the process, tracing asks only the thread that comes to a line first
/// whether it is read, and remembers that: another test, which has no log, could switch it off for this
/// one. With a second one it asks all there are.
pub(crate) fn ask_every_log() {
    static SECOND: OnceLock<Dispatch> = OnceLock::new();
    SECOND.get_or_init(|| Dispatch::new(NoSubscriber::new()));
}
