//! The one thread of the process that receives signals.
//!
//! A separate thread receives them, so that the second one ends the process even if every thread of
//! the program's runtime is blocked. Before that, it asks which children still run, and writes them in one line.
//!
//! # Invariants
//!
//! 1. [`report`] returns within twice [`WITHIN`], whatever the sources, the subscriber and stderr do.
//! 2. A source that blocks or panics hides no answer of another source.

use std::fmt::Write as _;
use std::sync::{OnceLock, mpsc};
use std::time::Duration;
use std::{io, thread};

use tokio::runtime::{self, Runtime};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};

use super::listeners::StillRunning;
use super::{Handlers, LISTENERS, OsSignal, is_claimed};
use crate::app::exit_thread::exit_process;
use crate::clock::now;
use crate::panic::catch_panic;
use crate::path::Path;
use crate::subscriber;

/// How long after the first signal another one is taken for the same: `timeout`, a shell or a terminal may send one
/// signal both to the process and to its process group, and a launcher may send a different one to it.
const ECHO: Duration = Duration::from_millis(100);

/// Starts the thread if that was not tried before, and returns whether it receives signals.
pub(super) fn is_running() -> bool {
    static STARTED: OnceLock<bool> = OnceLock::new();

    *STARTED.get_or_init(|| match start() {
        Ok(()) => true,
        Err(error) => {
            subscriber::error!(target: "verger::shutdown", error = error.to_string(), "can't listen for signals");
            false
        }
    })
}

/// Starts the thread, and waits until it has installed the handlers.
fn start() -> io::Result<()> {
    let (done, installed) = mpsc::channel();
    let run = move || {
        // tokio panics if it can't make the pipe of its handlers.
        let tried = catch_panic(install).unwrap_or_else(|| Err(io::Error::other("tokio panicked")));
        let (result, receiver) = match tried {
            Ok(receiver) => (Ok(()), Some(receiver)),
            Err(error) => (Err(error), None),
        };
        let _ = done.send(result);
        if let Some((runtime, handlers)) = receiver {
            runtime.block_on(receive(handlers));
        }
    };
    thread::Builder::new().name("verger-signals".to_owned()).spawn(run)?;
    installed.recv().map_err(io::Error::other)?
}

fn install() -> io::Result<(Runtime, Handlers)> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let within = runtime.enter();
    let handlers = Handlers::install()?;
    drop(within);
    Ok((runtime, handlers))
}

/// Reports the first signal to the listeners, and ends the process at the second.
async fn receive(mut handlers: Handlers) -> ! {
    let first = next(&mut handlers).await;
    if !LISTENERS.first(first) {
        exit_process(first.exit_code());
    }
    let echoes = async {
        loop {
            next(&mut handlers).await;
        }
    };
    let _ = timeout(ECHO, echoes).await;
    let second = next(&mut handlers).await;
    report(second, LISTENERS.sources()).await;
    exit_process(second.exit_code());
}

/// Waits for the next signal that stops the program.
async fn next(handlers: &mut Handlers) -> OsSignal {
    loop {
        let signal = handlers.next().await;
        if !is_claimed(signal) {
            return signal;
        }
    }
}

/// How long the sources may take, and then the line.
const WITHIN: Duration = Duration::from_millis(500);

/// How many paths the line names.
const NAMED: usize = 20;

/// Writes a line that names what still runs.
async fn report(signal: OsSignal, sources: Vec<StillRunning>) {
    let late = names(ask(sources).await);
    let written = on_thread(move || write(signal, late.as_deref()));
    let _ = timeout(WITHIN, written).await;
}

/// Asks all sources at once.
async fn ask(sources: Vec<StillRunning>) -> Vec<Path> {
    let until = Instant::from_std(now() + WITHIN);
    let asked: Vec<_> = sources.into_iter().map(|source| on_thread(move || source())).collect();
    let mut late = Vec::new();
    for answer in asked {
        // An answer that exists is taken even if the time is over.
        if let Ok(Ok(paths)) = timeout_at(until, answer).await {
            late.extend(paths);
        }
    }
    late
}

/// Calls `f` on a thread of its own. If the thread can't be started or `f` panics, the answer is an
/// error.
fn on_thread<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> oneshot::Receiver<T> {
    let (answer, answered) = oneshot::channel();
    let call = move || {
        if let Some(answered) = catch_panic(f) {
            let _ = answer.send(answered);
        }
    };
    let _ = thread::Builder::new().name("verger-late".to_owned()).spawn(call);
    answered
}

/// Returns the paths as a text: sorted, each once. `None` if there are none.
fn names(paths: Vec<Path>) -> Option<String> {
    let mut names: Vec<_> = paths.iter().map(Path::as_str).collect();
    names.sort_unstable();
    names.dedup();
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let mut text = names.join(", ");
    if more > 0 {
        let _ = write!(text, ", and {more} more");
    }
    (!text.is_empty()).then_some(text)
}

/// Logs the line, or writes it to stderr if no subscriber takes it.
fn write(signal: OsSignal, still_running: Option<&str>) {
    subscriber::error!(
        target: "verger::shutdown", still_running, "second {signal}: ending at once"
    );
    let late = still_running.map(|late| format!(", still running: {late}")).unwrap_or_default();
    subscriber::write_unless_logged(&format!("second {signal}: ending at once{late}"));
}

#[cfg(all(test, not(verger_loom)))]
mod tests {
    use std::sync::{Arc, mpsc};

    use super::*;

    /// With the real clock, because the sources answer on threads of their own.
    #[tokio::test]
    async fn a_source_that_blocks_or_panics_hides_no_answer_of_another() {
        let (unblock, blocked) = mpsc::channel::<()>();
        let blocked = std::sync::Mutex::new(blocked);
        let blocks: StillRunning = Arc::new(move || {
            let _ = blocked.lock().unwrap().recv();
            vec![Path::root("blocks")]
        });
        let panics: StillRunning = Arc::new(|| panic!("no"));
        let answers: StillRunning = Arc::new(|| vec![Path::root("answers")]);

        assert_eq!(ask(vec![blocks, panics, answers]).await, [Path::root("answers")]);
        drop(unblock);
    }

    #[test]
    fn the_line_names_each_path_once_and_at_most_twenty() {
        let app = Path::root("app");
        assert_eq!(names(vec![]), None);
        let paths = vec![app.join("b"), app.join("a"), app.join("b")];
        assert_eq!(names(paths).as_deref(), Some("app/a, app/b"));

        let many = (10..40).map(|number| app.join(&number.to_string())).collect();
        let text = names(many).expect("there are names");
        assert!(text.starts_with("app/10, app/11, "), "{text}");
        assert!(text.ends_with(", app/29, and 10 more"), "{text}");
    }
}
