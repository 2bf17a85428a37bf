//! What the probes share: a tree with a child in each state that a call is about, all calls of a
//! handle as a table, and futures that are polled a few times and then dropped.

use std::fmt::Display;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::timeout;
use verger::policy::OnExhausted;
use verger::{
    Backoff, ChildSpec, Context, Exit, Lifecycle, Supervisor, SupervisorBuilder, SupervisorHandle,
    worker,
};

use crate::common::{killed, settle};

/// Longer than any grace and any callback here. The clock of the tests is paused.
const PATIENCE: Duration = Duration::from_secs(100);

pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A call of a handle to the tree of [`tree`], about the child of this name. It resolves to `ok`, or to
/// the text of its error.
pub(crate) type Call = fn(SupervisorHandle, &'static str) -> BoxFuture<String>;

macro_rules! call {
    (|$app:ident, $child:ident| $call:expr) => {
        |$app, $child| {
            Box::pin(async move {
                let _ = $child;
                text($call.await)
            })
        }
    };
}

/// The calls that resolve while the tree runs: name, the child of [`tree`] that it changes or `""`, call.
pub(crate) const CALLS: [(&str, &str, Call); 14] = [
    ("start_child", "added", call!(|app, child| app.start_child(idle(child)))),
    ("stop_child", "active", call!(|app, child| app.stop_child(child))),
    ("restart_child", "stopped", call!(|app, child| app.otp().restart_child(child))),
    ("restart", "active", call!(|app, child| app.restart(child))),
    ("kill", "active", call!(|app, child| app.kill(child))),
    ("delete_child", "stopped", call!(|app, child| app.otp().delete_child(child))),
    ("resume", "parked", call!(|app, child| app.resume(child))),
    ("resume", "waiting", call!(|app, child| app.resume(child))),
    ("which_child", "", call!(|app, _child| app.which_child("active"))),
    ("which_children", "", call!(|app, _child| app.children())),
    ("count_children", "", call!(|app, _child| app.otp().count_children())),
    ("child_spec", "", call!(|app, _child| app.child_spec("active"))),
    ("supervisor", "", call!(|app, _child| app.supervisor("mid"))),
    ("status", "", call!(|app, _child| app.status())),
];

/// The calls that are about the end of the tree, and `subscribe_status`.
pub(crate) const OTHER_CALLS: [(&str, Call); 3] = [
    ("subscribe_status", call!(|app, _child| app.subscribe_status())),
    ("wait", call!(|app, _child| app.wait())),
    ("stop", call!(|app, _child| app.stop("a probe"))),
];

pub(crate) fn text<T>(answer: Result<T, impl Display>) -> String {
    answer.map_or_else(|error| error.to_string(), |_| "ok".to_owned())
}

pub(crate) fn idle(name: &str) -> ChildSpec {
    worker(name, async |ctx: Context| ctx.cancelled().await)
}

/// Fails at once in its first incarnation, and waits for its end in later ones.
pub(crate) fn fails_once(name: &str) -> ChildSpec {
    worker(name, async |ctx: Context| -> Exit {
        if ctx.incarnation() == 1 {
            return Err("once".into());
        }
        ctx.cancelled().await;
        Ok(())
    })
}

/// A sibling that nothing may touch, a child in each state, and a supervisor.
pub(crate) fn tree() -> SupervisorBuilder {
    let waiting = fails_once("waiting").backoff(Backoff::constant(Duration::from_secs(3600)));
    let parked = fails_once("parked").consecutive_restarts(0).on_exhausted(OnExhausted::Park);
    let tree = Supervisor::builder("app").unlimited_restarts();
    let tree = tree.child(idle("sibling")).child(idle("active")).child(idle("stopped"));
    tree.child(waiting).child(parked).child(Supervisor::builder("mid").child(idle("low")))
}

/// Starts [`tree`], or a tree that was made from it.
pub(crate) async fn start(tree: SupervisorBuilder) -> SupervisorHandle {
    let app = tree.build().unwrap().start().await.unwrap();
    let _ = app.stop_child("stopped").await;
    settle().await;
    app
}

/// Returns the state of each child: `active active #1`.
pub(crate) async fn states(app: &SupervisorHandle) -> Vec<String> {
    let children = app.children().await.unwrap();
    let state = |child: &verger::status::ChildInfo| {
        format!("{} {} #{}", child.path.name(), child.lifecycle, child.incarnation)
    };
    children.iter().map(state).collect()
}

/// Checks that the tree answers, that the sibling was not touched, and that the tree stops.
pub(crate) async fn assert_works(app: &SupervisorHandle, probe: &str) {
    let works = async {
        let sibling = app.which_child("sibling").await.unwrap();
        assert_eq!((sibling.lifecycle, sibling.incarnation), (Lifecycle::Active, 1), "{probe}");
        app.start_child(idle("late")).await.unwrap_or_else(|error| panic!("{probe}: {error}"));
        app.stop("done").await.or_else(killed).unwrap_or_else(|error| panic!("{probe}: {error}"));
        app.wait().await.or_else(killed).unwrap_or_else(|error| panic!("{probe}: {error}"));
    };
    in_time(works, probe).await;
}

/// Awaits a future that has to resolve.
pub(crate) async fn in_time<F: Future>(future: F, probe: &str) -> F::Output {
    let result = timeout(PATIENCE, future).await;
    result.unwrap_or_else(|_| panic!("{probe}: no answer within {PATIENCE:?}"))
}

pub(crate) fn tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

/// When a future is dropped after its last poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dropped {
    AtOnce,
    /// When it was woken for a next poll, which it doesn't get.
    WhenWoken,
}

pub(crate) const DROPPED: [Dropped; 2] = [Dropped::AtOnce, Dropped::WhenWoken];

/// Polls a future so many times, each time when it is woken, and then drops it. Returns its output if it
/// has resolved before.
///
/// A future that is not woken in a while is dropped as well.
pub(crate) async fn polled<F: Future>(future: F, polls: usize, when: Dropped) -> Option<F::Output> {
    let mut future = Some(Box::pin(future));
    let mut left = polls;
    let polls = poll_fn(|cx| {
        let Some(polled) = future.as_mut().filter(|_| left > 0) else { return Poll::Ready(None) };
        left -= 1;
        match polled.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 && when == Dropped::AtOnce => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    });
    timeout(PATIENCE, polls).await.unwrap_or_default()
}

/// Polls a future once, and drops it.
pub(crate) fn poll_once<F: Future>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut TaskContext::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}
