//! What still runs at a second signal: asked for, and written in one line.
//!
//! # Invariants
//!
//! 1. [`report`] returns within twice [`WITHIN`], whatever the sources, the subscriber and stderr do.
//! 2. A source that blocks or panics hides no answer of another source.

use std::fmt::Write as _;
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};

use super::OsSignal;
use super::listeners::Source;
use crate::clock::now;
use crate::panic::catch_panic;
use crate::path::Path;
use crate::subscriber;

/// How long the sources may take, and then the line.
const WITHIN: Duration = Duration::from_millis(500);

/// How many paths the line names.
const NAMED: usize = 20;

/// Writes a line that names what still runs.
pub(super) async fn report(signal: OsSignal, sources: Vec<Source>) {
    let late = names(ask(sources).await);
    let written = on_thread(move || write(signal, late.as_deref()));
    let _ = timeout(WITHIN, written).await;
}

/// Asks all sources at once.
async fn ask(sources: Vec<Source>) -> Vec<Path> {
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
        let blocks: Source = Arc::new(move || {
            let _ = blocked.lock().unwrap().recv();
            vec![Path::root("blocks")]
        });
        let panics: Source = Arc::new(|| panic!("no"));
        let answers: Source = Arc::new(|| vec![Path::root("answers")]);

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
