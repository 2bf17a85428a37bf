//! Panics in code that doesn't belong to this crate: caught, and turned into text.
//!
//! The panic hook collects the panics of children for the child's task.
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

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::hash::{Hash, Hasher};
use std::io::Write as _;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::task::{Context, Poll, Wake, Waker};

use crate::start_of::{TEXT, cut, start_of};

/// The message of a panic, and where it happened.
///
/// It dereferences to the message. The location is known if
/// [`install_panic_hook`](crate::install_panic_hook) was called before the panic. `Display` writes both:
/// `src/db.rs:10:5: no connection`, up to 2 KiB.
///
/// ```
/// use verger::ExitReason;
///
/// let reason = ExitReason::Panicked("no connection".into());
/// assert!(matches!(&reason, ExitReason::Panicked(panic) if panic == "no connection"));
/// assert_eq!(reason.to_string(), "panicked: no connection");
/// ```
#[derive(Clone)]
pub struct PanicMessage {
    /// The location, `: `, and the message; or only the message.
    text: Arc<str>,
    /// Where the message begins.
    start: u32,
    /// The code that awaited the task has it as an error. This belongs to the panic, and not to its text.
    is_returned: bool,
}

/// Between a location and a message.
const SEPARATOR: &str = ": ";

impl PanicMessage {
    pub(crate) fn new(message: &str, location: Option<&str>) -> Self {
        let located = location.and_then(|location| {
            let start = u32::try_from(location.len() + SEPARATOR.len()).ok()?;
            Some(([location, SEPARATOR, message].concat().into(), start))
        });
        let (text, start) = located.unwrap_or_else(|| (message.into(), 0));
        Self { text, start, is_returned: false }
    }

    /// Marks the panic of a task whose awaiter has it as an error.
    pub(crate) fn returned(self) -> Self {
        Self { is_returned: true, ..self }
    }

    pub(crate) fn is_returned(&self) -> bool {
        self.is_returned
    }

    fn start(&self) -> usize {
        self.start as usize
    }

    /// Returns the message, without the location.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.text[self.start()..]
    }

    /// Returns the file, the line and the column of the panic, such as `src/db.rs:10:5`, if they are
    /// known.
    #[must_use]
    pub fn location(&self) -> Option<&str> {
        let end = self.start().checked_sub(SEPARATOR.len())?;
        Some(&self.text[..end])
    }
}

impl Deref for PanicMessage {
    type Target = str;

    fn deref(&self) -> &str {
        self.message()
    }
}

impl From<&str> for PanicMessage {
    fn from(message: &str) -> Self {
        Self::new(message, None)
    }
}

impl From<String> for PanicMessage {
    fn from(message: String) -> Self {
        Self { text: message.into(), start: 0, is_returned: false }
    }
}

impl PartialEq for PanicMessage {
    fn eq(&self, other: &Self) -> bool {
        (&self.text, self.start) == (&other.text, other.start)
    }
}

impl Eq for PanicMessage {}

impl Hash for PanicMessage {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.text, self.start).hash(state);
    }
}

impl PartialEq<str> for PanicMessage {
    fn eq(&self, message: &str) -> bool {
        self.message() == message
    }
}

impl PartialEq<&str> for PanicMessage {
    fn eq(&self, message: &&str) -> bool {
        self.message() == *message
    }
}

impl fmt::Display for PanicMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match start_of(&self.text, TEXT) {
            whole if whole.len() == self.text.len() => f.pad(whole),
            _ => f.pad(&cut((*self.text).to_owned())),
        }
    }
}

impl fmt::Debug for PanicMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.text, f)
    }
}

/// Returns the text of a panic's payload.
fn message_of(payload: &(dyn Any + Send)) -> &str {
    if let Some(text) = payload.downcast_ref::<&'static str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text
    } else {
        "a value that is not a string"
    }
}

/// Calls `foreign` and returns its result, or `None` if it panics.
///
/// The panic hook has run by then. The panic's payload is dropped here; a panic in that is discarded
/// as well.
pub(crate) fn catch_panic<T>(foreign: impl FnOnce() -> T) -> Option<T> {
    let done = catch_unwind(AssertUnwindSafe(foreign));
    done.map_err(discard).ok()
}

/// Calls `foreign` and returns its result, or the message of its panic.
pub(crate) fn catch_panic_message<T>(foreign: impl FnOnce() -> T) -> Result<T, PanicMessage> {
    catch_unwind(AssertUnwindSafe(foreign)).map_err(panic_message)
}

/// Returns the message of a panic, with its location if that is known, and drops its payload.
pub(crate) fn panic_message(payload: Box<dyn Any + Send>) -> PanicMessage {
    let message = message_of(&*payload).to_owned();
    discard(payload);
    located(message)
}

/// Wakes a task. A waker of the user's may panic.
pub(crate) fn wake(waker: Waker) {
    catch_panic(|| waker.wake());
}

fn discard(payload: Box<dyn Any + Send>) {
    // A payload whose drop panics has a payload of its own, and so on: forget that one.
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(payload);
    }
}

/// A shared value of the user's: a function, an error, a property.
///
/// It is dropped wherever its last clone is, also in the task of a supervisor. A panic of its `Drop` is
/// caught there.
pub(crate) struct Foreign<T: ?Sized>(Option<Arc<T>>);

impl<T: ?Sized> Foreign<T> {
    pub(crate) fn new(value: Arc<T>) -> Self {
        Self(Some(value))
    }

    pub(crate) fn shared(&self) -> &Arc<T> {
        self.0.as_ref().expect("only `drop` takes it")
    }
}

impl<T: ?Sized> Clone for Foreign<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// Equal if they are the same object.
impl<T: ?Sized> PartialEq for Foreign<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(self.shared(), other.shared())
    }
}

impl<T: ?Sized> fmt::Debug for Foreign<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Foreign").finish_non_exhaustive()
    }
}

impl<T: ?Sized> Deref for Foreign<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.shared()
    }
}

impl<T: ?Sized> Drop for Foreign<T> {
    fn drop(&mut self) {
        if let Some(value) = self.0.take() {
            catch_panic(|| drop(value));
        }
    }
}

/// A waker of the user's. A panic while it is woken or dropped is caught.
struct ForeignWaker(Option<Waker>);

impl Wake for ForeignWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(waker) = &self.0 {
            catch_panic(|| waker.wake_by_ref());
        }
    }
}

impl Drop for ForeignWaker {
    fn drop(&mut self) {
        let waker = self.0.take();
        catch_panic(|| drop(waker));
    }
}

/// A future that catches the panics of the wakers with which it is polled.
///
/// It is for futures of tokio's that several tasks wait for at once: tokio wakes the tasks one after
/// another, and if a waker panics, it doesn't wake the rest.
pub(crate) struct CatchWakerPanic<F> {
    future: F,
    /// The waker of the last poll.
    waker: Option<Arc<ForeignWaker>>,
}

impl<F> CatchWakerPanic<F> {
    pub(crate) fn new(future: F) -> Self {
        Self { future, waker: None }
    }
}

impl<F: Future + Unpin> Future for CatchWakerPanic<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let is_same = |kept: &Arc<ForeignWaker>| {
            kept.0.as_ref().is_some_and(|kept| kept.will_wake(cx.waker()))
        };
        let kept = this.waker.take().filter(is_same);
        let kept = kept.unwrap_or_else(|| Arc::new(ForeignWaker(Some(cx.waker().clone()))));
        let waker = Waker::from(Arc::clone(this.waker.insert(kept)));
        Pin::new(&mut this.future).poll(&mut Context::from_waker(&waker))
    }
}

/// A future that resolves to the message of a panic if the inner future panics.
pub(crate) struct CatchPanic<F>(pub(crate) F);

impl<F: Future + Unpin> Future for CatchPanic<F> {
    type Output = Result<F::Output, PanicMessage>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let future = Pin::new(&mut self.0);
        match catch_panic_message(|| future.poll(cx)) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    }
}

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
fn located(message: String) -> PanicMessage {
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

/// Code of another crate that a process installs once, such as the subscriber of `tracing`.
///
/// No panic of such code leaves a call. After the first panic, [`call`](Self::call) does nothing any more, and one line on stderr
/// says so, if stderr can be written.
pub(crate) struct Installed {
    has_panicked: AtomicBool,
    name: &'static str,
    consequence: &'static str,
}

impl Installed {
    /// `name` and `consequence` say what has panicked, and what follows from that.
    pub(crate) const fn new(name: &'static str, consequence: &'static str) -> Self {
        Self { has_panicked: AtomicBool::new(false), name, consequence }
    }

    pub(crate) fn has_panicked(&self) -> bool {
        self.has_panicked.load(Ordering::Relaxed)
    }

    /// Calls `foreign`, unless such a call has panicked before. Returns `None` if it has or does.
    pub(crate) fn call<T>(&self, foreign: impl FnOnce() -> T) -> Option<T> {
        if self.has_panicked.load(Ordering::Relaxed) {
            return None;
        }
        let (mut foreign, mut returned) = (Some(foreign), None);
        self.catch(&mut || returned = foreign.take().map(|foreign| foreign()));
        returned
    }

    /// Calls `foreign`, also after a panic: it ends what was begun before.
    pub(crate) fn contain(&self, foreign: impl FnOnce()) {
        let mut foreign = Some(foreign);
        self.catch(&mut || _ = foreign.take().map(|foreign| foreign()));
    }

    /// Not generic: each log line would be compiled with all of this.
    fn catch(&self, foreign: &mut dyn FnMut()) {
        if catch_panic(foreign).is_none() && !self.has_panicked.swap(true, Ordering::Relaxed) {
            let Self { name, consequence, .. } = self;
            let line = format!("verger: the {name} has panicked; {consequence}\n");
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("while dropped");
        }
    }

    #[test]
    fn a_panic_is_caught_and_so_is_a_panic_of_its_payload() {
        assert_eq!(catch_panic(|| 1), Some(1));
        assert_eq!(catch_panic(|| -> u8 { panic!("no") }), None);
        assert_eq!(catch_panic(|| -> u8 { std::panic::panic_any(Bomb) }), None);
    }

    #[test]
    fn the_message_of_a_panic_is_its_text() {
        let message = |payload: Box<dyn Any + Send>| panic_message(payload);
        assert_eq!(message(Box::new("literal")), "literal");
        assert_eq!(message(Box::new("formatted".to_owned())), "formatted");
        assert_eq!(message(Box::new(Bomb)), "a value that is not a string");
    }

    #[test]
    fn a_message_is_compared_and_shown_with_and_without_a_location() {
        let located = PanicMessage::new("no: way", Some("src/a.rs:1:2"));
        assert_eq!((located.message(), located.location()), ("no: way", Some("src/a.rs:1:2")));
        assert_eq!(located.to_string(), "src/a.rs:1:2: no: way");
        assert!(located == "no: way" && located.len() == 7);

        for plain in [PanicMessage::from("no"), PanicMessage::from("no".to_owned())] {
            assert_eq!((plain.message(), plain.location()), ("no", None));
            assert_eq!(plain.to_string(), "no");
        }
        assert_ne!(located, PanicMessage::from("no: way"), "the location counts");
        assert_eq!(PanicMessage::new("", Some("a:1:1")).message(), "");
    }

    #[cfg(target_pointer_width = "64")]
    #[test]
    fn a_message_is_as_large_as_a_string() {
        assert_eq!(size_of::<PanicMessage>(), size_of::<String>());
    }
}
