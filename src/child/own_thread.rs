//! Children that have a thread of their own: the thread, and what its child waits for.
//!
//! # Invariants
//!
//! 1. The thread holds a guard of its incarnation until the child's code has ended, so the child has not ended
//!    before, and is reported as leaked if that takes too long.
//! 2. Nothing waits for the thread itself: neither the runtime nor the end of the process.
//! 3. The thread of an incarnation that has ended before it began calls no code of the child's.

use std::io;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tracing::Span;

use super::busy::BusyClosure;
use super::clock_hold::{AbortOnDrop, ClockHold, CloseOnDrop};
use super::context::Context;
use super::helpers::HelperGuard;
use super::incarnation::{Incarnation, Signal};
use super::spec::Phases;
use super::task::{log_panics, panicked};
use crate::exit::{Exit, ExitError, ExitReason};
use crate::panic::catch_panic_message;
use crate::path::Path;
use crate::subscriber;

/// A thread could not be started.
#[derive(Debug, thiserror::Error)]
#[error("can't start a thread for `{path}`")]
struct ThreadError {
    path: Path,
    source: io::Error,
}

/// What the code of a child gets on its thread.
pub(super) struct Inside {
    pub(super) ctx: Context,
    pub(super) hold: Option<ClockHold>,
    /// Resolves when the child's task has ended, and nothing waits for the result any more.
    pub(super) abandoned: oneshot::Receiver<()>,
}

/// Runs `work` on a new thread, and waits until it has ended. This is the life of one incarnation.
pub(super) async fn live<W>(ctx: Context, phases: Phases, work: W) -> Exit
where
    W: FnOnce(Inside) -> Exit + Send + 'static,
{
    let Some(guard) = ctx.incarnation.admit_helper() else { return Ok(()) };
    let hold = ClockHold::new();
    let _abort = AbortOnDrop(hold.clone());
    let (report, reported) = oneshot::channel();
    let (_abandon, abandoned) = oneshot::channel();
    let path = ctx.path();
    let incarnation = Arc::clone(&ctx.incarnation);
    let thread = Thread {
        work,
        incarnation: Arc::clone(&incarnation),
        span: subscriber::call(Span::current).unwrap_or_else(Span::none),
        runtime: Handle::current(),
        close: CloseOnDrop(hold.clone()),
        inside: Inside { ctx, hold, abandoned },
        guard,
        report,
    };
    let builder = std::thread::Builder::new().name(thread_name(path.as_str()).to_owned());
    // Dropping the handle detaches the thread: what waits for it is the guard.
    builder.spawn(|| thread.run()).map_err(|source| ThreadError { path, source })?;
    if phases.signals_ready {
        incarnation.notify(Signal::Ready);
    }
    let aborted = |_| Err(ExitError::from_reason(ExitReason::Aborted));
    reported.await.unwrap_or_else(aborted)
}

struct Thread<W> {
    work: W,
    incarnation: Arc<Incarnation>,
    span: Span,
    runtime: Handle,
    inside: Inside,
    close: CloseOnDrop,
    guard: HelperGuard,
    report: oneshot::Sender<Exit>,
}

impl<W: FnOnce(Inside) -> Exit> Thread<W> {
    fn run(self) {
        let Self { work, incarnation, span, runtime, inside, close, guard, report } = self;
        let _entered = runtime.enter();
        let busy = BusyClosure::new(&incarnation, inside.hold.as_ref());
        let call = || {
            if incarnation.has_ended() {
                // Dropped here, where a panic is caught.
                drop((work, inside));
                return Ok(());
            }
            work(inside)
        };
        let exit = log_panics(&incarnation, || {
            let ended = subscriber::in_span(&span, || catch_panic_message(call));
            ended.unwrap_or_else(|panic| Err(panicked(panic)))
        });
        subscriber::close(span);
        // They hold the tree.
        drop((busy, incarnation));
        // From here on the child may have ended.
        drop(guard);
        let _ = report.send(exit);
        drop(close);
    }
}

/// The most bytes of a thread's name that the system keeps.
const MAX_NAME: usize =
    if cfg!(any(target_os = "linux", target_os = "android")) { 15 } else { usize::MAX };

/// Returns the end of a path that a thread can be named after: whole names if the last one fits.
fn thread_name(path: &str) -> &str {
    end_of(path, MAX_NAME)
}

fn end_of(path: &str, max: usize) -> &str {
    let Some(mut from) = path.len().checked_sub(max) else { return path };
    while !path.is_char_boundary(from) {
        from += 1;
    }
    let end = &path[from..];
    if from == 0 || path[..from].ends_with('/') {
        return end;
    }
    match end.split_once('/') {
        Some((_, names)) => names,
        None => end,
    }
}

#[cfg(test)]
mod tests {
    use super::end_of;

    #[test]
    fn a_thread_is_named_after_the_end_of_its_path() {
        let name = |path| end_of(path, 15);
        assert_eq!(name("app/hash"), "app/hash");
        assert_eq!(name("app/ingest/hash"), "app/ingest/hash");
        assert_eq!(name("app/ingest/parse"), "ingest/parse");
        assert_eq!(name("application/hash"), "hash");
        assert_eq!(name("a/fifteen/letters"), "fifteen/letters");
        assert_eq!(name("app/thumbnail-resizer#12"), "nail-resizer#12");
        assert_eq!(name("app/größenänderung"), "ößenänderung");
    }
}
