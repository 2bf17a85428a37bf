//! Scripted workers as children of verger.
//!
//! A worker follows its script and records its events in the words of a trace. It knows its own
//! path in the scenario and nothing else of the tree.

use std::collections::{HashMap, VecDeque};
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex};

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::yield_now;
use verger::{Child, Context, Exit, ExitError, async_trait};

use crate::scenario::{End, Outcome, SlowStart};

/// How many times a worker that starts slowly yields.
const SLOW: usize = 50;

/// The state that the workers of a scenario share.
#[derive(Clone, Default)]
pub(crate) struct Workers {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    lines: Vec<String>,
    next_starts: HashMap<String, VecDeque<Outcome>>,
    running: HashMap<String, UnboundedSender<End>>,
    slow_start: Option<SlowStart>,
    /// The worker whose end the slow start waits for, and the sender that tells it.
    awaited: Option<(String, oneshot::Sender<()>)>,
}

impl Workers {
    pub(crate) fn worker(&self, path: &str) -> Worker {
        Worker { workers: self.clone(), path: path.to_owned(), runs: false }
    }

    pub(crate) fn next_starts(&self, path: &str, outcomes: &[Outcome]) {
        let mut inner = self.inner.lock().unwrap();
        inner.next_starts.entry(path.to_owned()).or_default().extend(outcomes);
    }

    /// Ends a worker, and returns whether it was running.
    pub(crate) fn end(&self, path: &str, end: End) -> bool {
        let inner = self.inner.lock().unwrap();
        inner.running.get(path).is_some_and(|worker| worker.send(end).is_ok())
    }

    pub(crate) fn start_slowly(&self, slow_start: Option<SlowStart>) {
        self.inner.lock().unwrap().slow_start = slow_start;
    }

    /// Ends the sibling that ends during the slow start of this worker, and waits for its end. Returns
    /// whether the start is the slow one.
    async fn end_sibling(&self, path: &str) -> bool {
        let slow = self.inner.lock().unwrap().slow_start.take_if(|slow| slow.worker == path);
        let Some(SlowStart { sibling, end, .. }) = slow else { return false };
        let (sender, ended) = oneshot::channel();
        self.inner.lock().unwrap().awaited = Some((sibling.clone(), sender));
        self.end(&sibling, end) && ended.await.is_ok()
    }

    pub(crate) fn record(&self, what: &str, path: &str) {
        let mut inner = self.inner.lock().unwrap();
        inner.lines.push(format!("{what} {path}"));
        let awaited = inner.awaited.take_if(|(ended, _)| what == "end" && ended == path);
        if let Some((_, sender)) = awaited {
            let _ = sender.send(());
        }
    }

    /// Returns the lines since the last call.
    pub(crate) fn take_lines(&self) -> Vec<String> {
        std::mem::take(&mut self.inner.lock().unwrap().lines)
    }
}

/// One incarnation of a worker.
pub(crate) struct Worker {
    workers: Workers,
    path: String,
    /// Whether the worker has started and hasn't recorded its end.
    runs: bool,
}

impl Worker {
    fn record(&self, what: &str) {
        self.workers.record(what, &self.path);
    }
}

#[async_trait]
impl Child for Worker {
    async fn activate(&mut self, _ctx: &Context) -> Exit {
        let slow = self.workers.end_sibling(&self.path).await;
        let next = {
            let mut inner = self.workers.inner.lock().unwrap();
            inner.next_starts.get_mut(&self.path).and_then(VecDeque::pop_front)
        };
        let outcome = next.unwrap_or(Outcome::Ok);
        self.runs = outcome == Outcome::Ok;
        self.record(if self.runs { "start" } else { "try" });
        if slow {
            // Until the supervisor has processed the end of the sibling.
            for _ in 0..SLOW {
                yield_now().await;
            }
        }
        match outcome {
            Outcome::Ok => Ok(()),
            Outcome::Error => Err("no start".into()),
            // Avoids the message that a panic hook would print.
            Outcome::Panic => resume_unwind(Box::new("no start")),
            Outcome::Ignore => Err(ExitError::ignore()),
        }
    }

    async fn run(&mut self, ctx: &Context) -> Exit {
        let (sender, mut ends) = unbounded_channel();
        self.workers.inner.lock().unwrap().running.insert(self.path.clone(), sender);
        let end = tokio::select! {
            biased;
            Some(end) = ends.recv() => Some(end),
            () = ctx.cancelled() => None,
        };
        self.runs = false;
        self.record(if end.is_some() { "end" } else { "stop" });
        match end {
            None | Some(End::Normal | End::Shutdown) => Ok(()),
            Some(End::StopSelf) => {
                ctx.stop_self();
                ctx.cancelled().await;
                Ok(())
            }
            Some(End::Error) => Err("failed".into()),
            Some(End::Panic) => resume_unwind(Box::new("panicked")),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.runs {
            self.record("kill");
        }
    }
}
