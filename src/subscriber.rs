//! Calls of `tracing`'s subscriber, which may panic.
//!
//! A log line is never worth a tree: a subscriber panics when its log can't be written, as
//! `tracing-subscriber` does where both stdout and stderr are full or closed. So this crate calls the
//! subscriber through the macros and functions here only; `.ci/run lint` refuses `tracing`'s own.
//!
//! # Invariants
//!
//! 1. No panic of a subscriber leaves this module.
//! 2. After the first one this crate calls no subscriber any more, except to exit spans that are entered.

use std::io::Write as _;
use std::sync::OnceLock;

use tracing::level_filters::LevelFilter;
use tracing::span::Entered;
use tracing::{Level, Span};

use crate::panic::Installed;
use crate::policy::LogLevel;

static SUBSCRIBER: Installed = Installed::new("tracing subscriber", "no further lines are logged");

/// Returns whether a subscriber or a logger receives error lines. Calls no subscriber.
pub(crate) fn is_listening() -> bool {
    admits(Level::ERROR)
}

/// Returns whether a subscriber, or a logger of the crate `log`, may receive lines of this level. Calls no subscriber:
/// the answer to `tracing::enabled!` would stay with the filters of single layers in `tracing-subscriber`, which then
/// drop the next line of the thread.
pub(crate) fn admits(level: Level) -> bool {
    !SUBSCRIBER.has_panicked() && (LevelFilter::current() >= level || reaches_log())
}

/// Whether `tracing` may hand lines to the crate `log`: it has its feature `log`, and no subscriber takes any.
///
/// `tracing` has no call that tells. With the feature, a span that no subscriber enables has its metadata, for the
/// logger. Without it, such a span is none.
fn reaches_log() -> bool {
    static HAS_FEATURE: OnceLock<bool> = OnceLock::new();
    // Of the lowest level, so that hardly any logger receives a line about it.
    let has_feature = || {
        let probe = call(|| tracing::trace_span!("verger"));
        probe.is_some_and(|span| span.is_disabled() && !span.is_none())
    };
    LevelFilter::current() == LevelFilter::OFF && *HAS_FEATURE.get_or_init(has_feature)
}

/// Returns the level of a line as `tracing` has it.
pub(crate) fn as_tracing(level: LogLevel) -> Level {
    match level {
        LogLevel::Trace => Level::TRACE,
        LogLevel::Debug => Level::DEBUG,
        LogLevel::Info => Level::INFO,
        LogLevel::Warn => Level::WARN,
        LogLevel::Error => Level::ERROR,
    }
}

/// Calls the subscriber, unless it has panicked before. Returns `None` if it has or does.
pub(crate) fn call<T>(subscriber: impl FnOnce() -> T) -> Option<T> {
    SUBSCRIBER.call(subscriber)
}

/// Writes a line to stderr if no subscriber takes the errors of `verger::shutdown`.
///
/// Called after such an error is logged: the subscriber may have panicked just then.
pub(crate) fn write_unless_logged(line: &str) {
    let taken = call(|| tracing::enabled!(target: "verger::shutdown", Level::ERROR));
    if taken != Some(true) {
        let _ = std::io::stderr().write_all(format!("verger: {line}\n").as_bytes());
    }
}

/// Enters a span for as long as `inside` runs.
pub(crate) fn in_span<T>(span: &Span, inside: impl FnOnce() -> T) -> T {
    /// Exits also if `inside` panics.
    struct ExitOnDrop<'a>(Option<Entered<'a>>);

    impl Drop for ExitOnDrop<'_> {
        fn drop(&mut self) {
            let entered = self.0.take();
            SUBSCRIBER.contain(|| drop(entered));
        }
    }

    if span.is_none() {
        return inside();
    }
    let _entered = ExitOnDrop(call(|| span.enter()));
    inside()
}

/// Closes a span.
pub(crate) fn close(span: Span) {
    if !span.is_none() {
        SUBSCRIBER.contain(|| drop(span));
    }
}

macro_rules! event {
    ($($line:tt)*) => {
        _ = $crate::subscriber::call(|| ::tracing::event!($($line)*))
    };
}

macro_rules! debug {
    ($($line:tt)*) => {
        _ = $crate::subscriber::call(|| ::tracing::debug!($($line)*))
    };
}

macro_rules! info {
    ($($line:tt)*) => {
        _ = $crate::subscriber::call(|| ::tracing::info!($($line)*))
    };
}

/// Under a different name: `warn` is an attribute, too.
macro_rules! warning {
    ($($line:tt)*) => {
        _ = $crate::subscriber::call(|| ::tracing::warn!($($line)*))
    };
}

macro_rules! error {
    ($($line:tt)*) => {
        _ = $crate::subscriber::call(|| ::tracing::error!($($line)*))
    };
}

macro_rules! debug_span {
    ($($line:tt)*) => {
        $crate::subscriber::call(|| ::tracing::debug_span!($($line)*))
            .unwrap_or_else(::tracing::Span::none)
    };
}

macro_rules! info_span {
    ($($line:tt)*) => {
        $crate::subscriber::call(|| ::tracing::info_span!($($line)*))
            .unwrap_or_else(::tracing::Span::none)
    };
}

pub(crate) use {debug, debug_span, error, event, info, info_span, warning as warn};
