//! What a child waits for without a limit: its status shows it, and it is logged once it takes long.
//!
//! A wait for a service, a lock or a call has a timer, as soon as it is pending. A question to a mailbox is too
//! short for one. It is noted in the slot of its thread while a [`PollWatch`](super::PollWatch) exists, and the
//! thread that has the watch looks at those that are open.
//!
//! # Invariants
//!
//! 1. A wait that is over when it is polled first has no timer, and isn't shown.
//! 2. A wait is logged after 10 s, and then every 30 s.
//! 3. A wait that is dropped or over is no longer shown. A question: when the thread looks next.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use super::incarnation::Incarnation;
use crate::clock::now;
use crate::path::Path;

/// A wait is logged after this time, and again after each [`FURTHER`].
const FIRST: Duration = Duration::from_secs(10);
const FURTHER: Duration = Duration::from_secs(30);

/// Waits. Meanwhile the status of the child shows `what`, and `log` is called with the time in whole seconds once
/// it takes long.
pub(crate) async fn reported<T>(
    child: Option<&Arc<Incarnation>>,
    what: impl FnOnce() -> String,
    mut log: impl FnMut(Duration),
    wait: impl Future<Output = T>,
) -> T {
    let mut wait = pin!(wait);
    let began = now();
    if let Poll::Ready(value) = poll_fn(|cx| Poll::Ready(wait.as_mut().poll(cx))).await {
        return value;
    }
    // Outside of a runtime there is no timer.
    if child.is_none() && Handle::try_current().is_err() {
        return wait.await;
    }
    let _shown = child.map(|child| ShownWait::new(child, what().into()));
    let mut pause = FIRST;
    loop {
        if let Ok(value) = tokio::time::timeout(pause, &mut wait).await {
            return value;
        }
        log(Duration::from_secs(now().saturating_duration_since(began).as_secs()));
        pause = FURTHER;
    }
}

/// What the status of a child shows as long as this exists.
pub(super) struct ShownWait {
    child: Arc<Incarnation>,
    number: u64,
}

impl ShownWait {
    fn new(child: &Arc<Incarnation>, what: Arc<str>) -> Self {
        Self { child: Arc::clone(child), number: child.cell.begin_wait(what) }
    }
}

impl Drop for ShownWait {
    fn drop(&mut self) {
        self.child.cell.end_wait(self.number);
    }
}

/// A question that may have no answer yet.
pub(crate) trait AwaitedAnswer: Send + Sync {
    /// Whether somebody still waits for the answer.
    fn is_open(&self) -> bool;

    /// Returns the path of the child that is to answer.
    fn of(&self) -> Option<Path>;
}

/// A question that was asked on one thread.
pub(super) struct NotedQuestion {
    question: Weak<dyn AwaitedAnswer>,
    /// The child that was polled.
    child: Option<Weak<Incarnation>>,
    /// When the thread has first looked at it.
    seen: Option<Instant>,
    /// After which time it is logged.
    next: Duration,
    shown: Option<ShownWait>,
}

/// A question that is to be logged.
pub(crate) struct LongQuestion {
    pub(crate) child: Option<Arc<Incarnation>>,
    pub(crate) of: Option<Path>,
    pub(crate) waited: Duration,
}

impl NotedQuestion {
    pub(super) fn new(question: Weak<dyn AwaitedAnswer>, child: Option<&Arc<Incarnation>>) -> Self {
        let child = child.map(Arc::downgrade);
        Self { question, child, seen: None, next: FIRST, shown: None }
    }

    /// Whether the question is still open.
    pub(super) fn is_open(&self) -> bool {
        self.question.upgrade().is_some_and(|question| question.is_open())
    }

    /// Looks at a question that is open. The second look shows it.
    pub(super) fn look(&mut self, now: Instant) -> Option<LongQuestion> {
        let question = self.question.upgrade()?;
        let child = self.child.as_ref().and_then(Weak::upgrade);
        let Some(seen) = self.seen else {
            self.seen = Some(now);
            return None;
        };
        if self.shown.is_none() {
            self.shown = child.as_ref().map(|child| {
                let of = question.of().map(|path| format!(" of {path}")).unwrap_or_default();
                ShownWait::new(child, format!("an answer{of}").into())
            });
        }
        let waited = now.saturating_duration_since(seen);
        if waited < self.next {
            return None;
        }
        self.next = waited + FURTHER;
        let waited = Duration::from_secs(waited.as_secs());
        Some(LongQuestion { child, of: question.of(), waited })
    }
}

#[cfg(all(test, not(verger_loom)))]
mod tests {
    use super::*;
    use crate::child::orphan::incarnation;

    struct Question;

    impl AwaitedAnswer for Question {
        fn is_open(&self) -> bool {
            true
        }

        fn of(&self) -> Option<Path> {
            Some(Path::root("app").join("db"))
        }
    }

    #[test]
    fn an_open_question_is_shown_by_the_second_look_and_logged_after_10_s_and_every_30() {
        let (question, child) = (Arc::new(Question), incarnation(1));
        let weak: Weak<dyn AwaitedAnswer> = Arc::downgrade(&question) as _;
        let mut asked = NotedQuestion::new(weak, Some(&child));
        let began = Instant::now();
        let mut logged = Vec::new();
        for second in 0..=75 {
            let long = asked.look(began + Duration::from_secs(second));
            logged.extend(long.map(|long| (second, long.waited.as_secs())));
            let shown = child.cell.awaits();
            let expected = (second > 0).then_some("an answer of app/db");
            assert_eq!(shown.as_deref(), expected, "{second}");
        }
        assert_eq!(logged, [(10, 10), (40, 40), (70, 70)]);

        drop(question);
        assert!(!asked.is_open());
        drop(asked);
        assert_eq!(child.cell.awaits(), None);
    }
}
