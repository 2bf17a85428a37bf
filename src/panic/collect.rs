//! Panics of children, collected by the panic hook for the child's task.
//!
//! The hook can't log a panic itself: a subscriber may panic, and a panic inside of a hook aborts the
//! process. So the hook only records the panic, and the task logs it after the child has unwound.
//!
//! # Invariants
//!
//! 1. Before the hook is installed, [`collect`] costs one load of a flag.
//! 2. A panic is recorded only between the begin and the end of [`collect`] on the same thread. Every
//!    other panic is left to the previous hook.
//! 3. Each recorded panic is returned by exactly one call of [`collect`], the innermost one, or printed
//!    because the process is about to abort.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::RefCell;
use std::io::Write as _;
use std::panic::PanicHookInfo;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use super::message::{PanicMessage, message_of};

/// Whether the hook is installed. The hook belongs to the process, and so does this.
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// What the standard library says in a second call of the hook, before it aborts the process.
const ABORTING: [&str; 2] =
    ["panic in a destructor during cleanup", "panic in a function that cannot unwind"];

thread_local! {
    /// The panics inside of the innermost [`collect`] of this thread. `None` outside of one.
    static RECORDED: RefCell<Option<Vec<RecordedPanic>>> = const { RefCell::new(None) };
}

/// A panic that the hook has seen.
#[derive(Debug)]
pub(crate) struct RecordedPanic {
    pub(crate) panic: PanicMessage,
    /// The backtrace, if the environment enables them.
    pub(crate) backtrace: Option<Backtrace>,
}

/// Installs the hook, unless it is installed already. `is_logged` tells whether a panic that is recorded would
/// be logged.
pub(crate) fn install(is_logged: fn() -> bool) {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !record(info, is_logged) {
                previous(info);
            }
        }));
        INSTALLED.store(true, Ordering::Relaxed);
    });
}

/// Calls `inside`, and returns its value and the panics inside of it, caught there or not.
pub(crate) fn collect<T>(inside: impl FnOnce() -> T) -> (T, Vec<RecordedPanic>) {
    /// Restores the collection around this one, also if `inside` panics.
    struct Restore(Option<Vec<RecordedPanic>>);

    impl Drop for Restore {
        fn drop(&mut self) {
            replace(self.0.take());
        }
    }

    if !INSTALLED.load(Ordering::Relaxed) {
        return (inside(), Vec::new());
    }
    let outer = Restore(replace(Some(Vec::new())));
    let value = inside();
    let collected = replace(None).unwrap_or_default();
    drop(outer);
    (value, collected)
}

/// Replaces the collection of this thread. Without an effect where the thread's locals are gone already.
fn replace(collection: Option<Vec<RecordedPanic>>) -> Option<Vec<RecordedPanic>> {
    RECORDED.try_with(|recorded| recorded.replace(collection)).ok().flatten()
}

/// Returns the message, with its location if the hook has recorded a panic with this message.
///
/// The comparison keeps apart panics that were caught, and dropped, while another one unwound.
pub(super) fn located(message: String) -> PanicMessage {
    let found = RECORDED.try_with(|recorded| {
        let recorded = recorded.borrow();
        let mut panics = recorded.iter().flatten().map(|recorded| &recorded.panic);
        panics.rfind(|panic| **panic == *message).cloned()
    });
    found.ok().flatten().unwrap_or_else(|| message.into())
}

/// Returns whether the panic was recorded. Called by the hook, so it must not panic.
fn record(info: &PanicHookInfo<'_>, is_logged: fn() -> bool) -> bool {
    // Without unwinding or a subscriber, the previous hook is the only one that can report the panic.
    if cfg!(panic = "abort") || !is_logged() {
        return false;
    }
    let message = message_of(info.payload());
    let recorded = RECORDED.try_with(|recorded| {
        let mut recorded = recorded.try_borrow_mut().ok()?;
        let recorded = recorded.as_mut()?;
        if ABORTING.contains(&message) {
            print(recorded);
            return None;
        }
        let location = info.location().map(ToString::to_string);
        let backtrace = Backtrace::capture();
        let backtrace = (backtrace.status() == BacktraceStatus::Captured).then_some(backtrace);
        let panic = PanicMessage::new(message, location.as_deref());
        recorded.push(RecordedPanic { panic, backtrace });
        Some(())
    });
    matches!(recorded, Ok(Some(())))
}

/// Prints the panics that no task will log, because the process is about to abort.
fn print(recorded: &mut Vec<RecordedPanic>) {
    for RecordedPanic { panic, .. } in recorded.drain(..) {
        let at = panic.location().unwrap_or("an unknown location");
        let _ = writeln!(std::io::stderr(), "verger: panicked at {at}: {}", panic.message());
    }
}
