//! Children that follow a test's script, and a log of what they do.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use tokio::sync::mpsc;
use verger::{
    Child, ChildSpec, Context, DynamicSupervisor, Exit, ExitError, RunError, Supervisor,
    SupervisorBuilder, SupervisorHandle, async_trait, child,
};

/// The result of a child's next start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextStart {
    Ok,
    Error,
    Panic,
    Ignore,
    /// The start never completes.
    Hang,
}

/// How a running child ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Normal,
    Error,
    Panic,
}

/// The scripted children of a test, by name.
#[derive(Clone, Default)]
pub(crate) struct FakeChildren {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    log: Vec<String>,
    next_starts: HashMap<String, VecDeque<NextStart>>,
    running: HashMap<String, mpsc::UnboundedSender<End>>,
    deaf: HashMap<String, bool>,
}

impl FakeChildren {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Returns a child that idles until its scripted end or its cancellation. It is ready once
    /// `activate` returns.
    pub(crate) fn child(&self, name: &str) -> ChildSpec {
        let (fakes, name) = (self.clone(), name.to_owned());
        child(name.clone(), move || FakeChild { fakes: fakes.clone(), name: name.clone() })
    }

    /// Sets the results of the child's next starts, in order; later starts succeed.
    pub(crate) fn next_starts(&self, name: &str, outcomes: impl IntoIterator<Item = NextStart>) {
        let mut inner = self.inner.lock().unwrap();
        inner.next_starts.entry(name.to_owned()).or_default().extend(outcomes);
    }

    /// Makes later incarnations of the child ignore their cancellation.
    pub(crate) fn ignore_cancellation(&self, name: &str) {
        self.inner.lock().unwrap().deaf.insert(name.to_owned(), true);
    }

    /// Ends a running child, and lets every task react that needs no timer.
    pub(crate) async fn end(&self, name: &str, end: End) {
        self.end_without_settling(name, end);
        settle().await;
    }

    /// Ends a running child, and lets no task react yet.
    pub(crate) fn end_without_settling(&self, name: &str, end: End) {
        let inner = self.inner.lock().unwrap();
        let running = inner.running.get(name).unwrap_or_else(|| panic!("`{name}` never ran"));
        running.send(end).unwrap_or_else(|_| panic!("`{name}` is not running"));
    }

    /// Returns the entries since the last call: `start a`, `try a` (a failed start), `stop a`
    /// (cancelled), `end a` (scripted end), `dead a` (dropped).
    pub(crate) fn log(&self) -> Vec<String> {
        std::mem::take(&mut self.inner.lock().unwrap().log)
    }

    /// Returns the entries since the last call, without `dead`.
    pub(crate) fn actions(&self) -> Vec<String> {
        let mut log = self.log();
        log.retain(|entry| !entry.starts_with("dead"));
        log
    }

    pub(crate) fn note(&self, what: &str, name: &str) {
        self.inner.lock().unwrap().log.push(format!("{what} {name}"));
    }
}

/// Builds and starts a tree.
pub(crate) async fn start(builder: SupervisorBuilder) -> SupervisorHandle {
    builder.build().unwrap().start().await.unwrap()
}

/// Returns the root `app` and a dynamic supervisor `conns` below it.
pub(crate) async fn conns() -> (SupervisorHandle, SupervisorHandle) {
    let tree = start(Supervisor::builder("app").child(DynamicSupervisor::builder("conns"))).await;
    let conns = tree.supervisor("conns").await.unwrap();
    (tree, conns)
}

/// Returns the numbers of specs, active children, supervisors and workers.
pub(crate) async fn counts(tree: &SupervisorHandle) -> [u32; 4] {
    let counts = tree.otp().count_children().await.unwrap();
    [counts.specs, counts.active, counts.supervisors, counts.workers]
}

/// Lets every task run that can without time passing.
pub(crate) async fn settle() {
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
}

struct FakeChild {
    fakes: FakeChildren,
    name: String,
}

#[async_trait]
impl Child for FakeChild {
    async fn activate(&mut self, _ctx: &Context) -> Exit {
        let next = {
            let mut inner = self.fakes.inner.lock().unwrap();
            let next = inner.next_starts.get_mut(&self.name).and_then(VecDeque::pop_front);
            next.unwrap_or(NextStart::Ok)
        };
        self.fakes.note(if next == NextStart::Ok { "start" } else { "try" }, &self.name);
        match next {
            NextStart::Ok => Ok(()),
            NextStart::Error => Err("no start".into()),
            NextStart::Panic => panic!("panic at start"),
            NextStart::Ignore => Err(ExitError::ignore()),
            NextStart::Hang => std::future::pending().await,
        }
    }

    async fn run(&mut self, ctx: &Context) -> Exit {
        let (sender, mut ends) = mpsc::unbounded_channel();
        let deaf = {
            let mut inner = self.fakes.inner.lock().unwrap();
            inner.running.insert(self.name.clone(), sender);
            inner.deaf.get(&self.name).copied().unwrap_or_default()
        };
        let end = if deaf {
            ends.recv().await
        } else {
            ctx.run_until_cancelled(ends.recv()).await.flatten()
        };
        match end {
            None => {
                self.fakes.note("stop", &self.name);
                Ok(())
            }
            Some(end) => {
                self.fakes.note("end", &self.name);
                match end {
                    End::Normal => Ok(()),
                    End::Error => Err(format!("{} failed", self.name).into()),
                    End::Panic => panic!("{} panicked", self.name),
                }
            }
        }
    }
}

impl Drop for FakeChild {
    fn drop(&mut self) {
        self.fakes.note("dead", &self.name);
    }
}

/// Accepts that children were killed at the end of their graces in a stop, if none of them still runs.
pub(crate) fn killed(error: RunError) -> Result<(), RunError> {
    match error {
        RunError::Forced { leaked, .. } if leaked.is_empty() => Ok(()),
        error => Err(error),
    }
}
