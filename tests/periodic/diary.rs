//! A diary of the runs of a test, in milliseconds since its start.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use verger::periodic::RunContext;
use verger::{Backoff, Supervisor, SupervisorBuilder};

use crate::common::settle;
use crate::log::Log;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(crate) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Lets time pass, and everything react that is due.
pub(crate) async fn sleep(time: Duration) {
    tokio::time::sleep(time).await;
    settle().await;
}

/// A supervisor that restarts at once.
pub(crate) fn eager() -> SupervisorBuilder {
    let builder = Supervisor::builder("app").unlimited_restarts();
    builder.defaults(|child| child.backoff(Backoff::none()))
}

/// Returns the lines about runs since the last call.
pub(crate) fn runs_logged(log: &Log) -> Vec<String> {
    log.lines().into_iter().filter(|line| line.contains("verger::periodic")).collect()
}

/// What has happened, and when.
#[derive(Clone)]
pub(crate) struct Diary {
    began: Instant,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Diary {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), lines: Arc::default() }
    }

    /// Seconds since the start: `12.5`.
    fn now(&self) -> String {
        format!("{}", self.began.elapsed().as_secs_f64())
    }

    pub(crate) fn note(&self, what: &str) {
        self.lines.lock().unwrap().push(format!("{} {what}", self.now()));
    }

    /// Notes that a run begins, that it ends after this time, or that it is dropped before.
    pub(crate) async fn run(&self, run: &RunContext, takes: Duration) {
        struct Begun<'a>(&'a Diary, u64, bool);

        impl Drop for Begun<'_> {
            fn drop(&mut self) {
                self.0.note(&format!("{} {}", if self.2 { "done" } else { "dropped" }, self.1));
            }
        }

        self.note(&format!("run {}", run.number()));
        let mut begun = Begun(self, run.number(), false);
        tokio::time::sleep(takes).await;
        begun.2 = true;
    }

    /// Returns the lines since the last call.
    pub(crate) fn lines(&self) -> Vec<String> {
        std::mem::take(&mut *self.lines.lock().unwrap())
    }

    /// Returns the lines since the last call in one line.
    pub(crate) fn text(&self) -> String {
        self.lines().join(", ")
    }

    /// A wall clock that moves with the paused clock, from this time on.
    pub(crate) fn wall_clock(
        &self,
        from: SystemTime,
    ) -> impl Fn() -> SystemTime + Send + Sync + use<> {
        let began = self.began;
        move || from + began.elapsed()
    }
}
