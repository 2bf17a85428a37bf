//! Whose turn it is to drive a supervisor.
//!
//! A supervisor has a task of its own, which takes its turns. But who has news for it is awake
//! already: a caller, or a child that has ended of its own accord. To wake the supervisor's task for
//! that, and to be woken by it, takes longer than most of what is to be done. So whoever brings news,
//! and finds the driver in the inbox, takes one turn himself, in the middle of his own poll. A caller
//! has his answer then, and a child that is to run again goes on at once. It is a turn like any other,
//! with all that had come in before. The task remains for what comes of itself: deadlines, being asked
//! to stop, what a turn has left over, and the supervisor's own end.
//!
//! Who was asked to stop takes no turn: of those there are often many, and one turn does for all of
//! them.
//!
//! # Invariants
//!
//! 1. One at a time drives, and nobody waits for it: who finds somebody else driving leaves his news
//!    to him, and to the task.
//! 2. What a turn panics with ends the supervisor's task, whoever has taken it.
//! 3. A turn is taken in the supervisor's runtime, and by its task alone while the log is read: what a
//!    supervisor logs is not said in somebody else's span.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

use super::hub::Hub;
use super::inbox::{Batch, Inbox, Reader};
use super::outcome::Outcome;
use super::request::Request;
use super::trace;
use crate::machine;

/// What drives a supervisor, whatever its machine is.
pub(crate) trait Turns: Reader<Request> + Send {
    /// Takes turns for the supervisor's task, until that has to wait or to give way.
    fn poll(&mut self, cx: &mut Context<'_>) -> Next;

    /// Takes one turn for who has brought news. Whether the task is needed after it.
    fn visit(&mut self) -> bool;
}

/// Boxed: a future that held the driver itself would be moved into the task, and into the box of the
/// child that it is. That came to 7.6 KB for each supervisor.
pub(crate) type BoxedDriver = Box<dyn Turns>;

/// What the supervisor's task does next.
#[derive(Debug)]
pub(crate) enum Next {
    /// Until there is something to do.
    Wait,
    /// Until all others had a turn who are ready.
    Yield,
    /// Until those had a turn who are ready on this worker.
    ///
    /// Unlike [`yield_now`](tokio::task::yield_now), which waits until the worker has also looked for
    /// input and timers: that would be a system call for each answer.
    GiveWay,
    End(Outcome),
}

impl Reader<Request> for BoxedDriver {
    fn batch(&mut self) -> &mut Batch<Request> {
        (**self).batch()
    }
}

/// The supervisor's task.
pub(super) async fn to_the_end(hub: Arc<Hub>, driver: BoxedDriver) -> Outcome {
    let mut task = OwnTask { hub, driver: Some(driver) };
    poll_fn(|cx| task.poll(cx)).await
}

struct OwnTask {
    hub: Arc<Hub>,
    /// Before the first turn, and between two of the task's own.
    driver: Option<BoxedDriver>,
}

impl OwnTask {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        let inbox = &self.hub.inbox;
        let mut driver = match self.driver.take() {
            Some(mut driver) => {
                inbox.take(&mut driver);
                driver
            }
            None => match inbox.take_reader(cx) {
                Some(driver) => driver,
                None => return Poll::Pending,
            },
        };
        loop {
            match driver.poll(cx) {
                Next::Wait => match inbox.wait(driver, cx) {
                    Ok(()) => return Poll::Pending,
                    Err(back) => driver = back,
                },
                Next::Yield => {
                    // It wakes whoever has polled it once.
                    let _ = pin!(tokio::task::yield_now()).poll(cx);
                    break;
                }
                Next::GiveWay => {
                    cx.waker().wake_by_ref();
                    break;
                }
                Next::End(outcome) => return Poll::Ready(outcome),
            }
        }
        self.driver = Some(driver);
        Poll::Pending
    }
}

impl Drop for OwnTask {
    fn drop(&mut self) {
        drop(self.hub.inbox.dismiss());
    }
}

impl Hub {
    /// Asks the supervisor. `false`: it has ended.
    pub(super) fn ask(&self, request: Request) -> bool {
        // A slice of many is asked for by who will ask for the next one at once, and others on his
        // thread are to have a turn in between.
        let Some(runtime) = self.takes_visitors().filter(|_| !request.is_slice()) else {
            return self.inbox.request(request).is_ok();
        };
        let Ok(driver) = self.inbox.request_in_person(request) else { return false };
        if let Some(driver) = driver {
            let _entered = runtime.enter();
            self.visit(driver);
        }
        true
    }

    /// Hears that a child has ended of its own accord, from its task.
    pub(super) fn hear_in_person(&self, event: machine::Event) {
        if self.takes_visitors().is_none() {
            return self.hear(event);
        }
        if let Some(Some(driver)) = self.put(event, Inbox::event_in_person) {
            self.visit(driver);
        }
    }

    /// Whether others than the supervisor's task may take its turns just now, and in which runtime.
    fn takes_visitors(&self) -> Option<&Handle> {
        self.tree.visited.as_ref().filter(|_| !trace::is_read())
    }

    fn visit(&self, mut driver: BoxedDriver) {
        let needed = driver.visit();
        drop(self.inbox.leave(driver, needed));
    }
}

#[cfg(all(test, not(verger_loom)))]
mod tests {
    use std::pin::Pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::task::Waker;
    use std::time::Duration;

    use tokio::sync::Notify;
    use tokio::task::yield_now;
    use tokio::time::Instant;

    use super::super::{Tree, supervise};
    use super::*;
    use crate::clock::{now, wall};
    use crate::{
        Backoff, ChildSpec, ControlError, DynamicSupervisor, Exit, RestartType, RunError,
        Supervisor, SupervisorBuilder, SupervisorHandle, worker, worker_with,
    };

    /// As on several threads, but with a clock that can be paused.
    async fn visited(app: SupervisorBuilder) -> SupervisorHandle {
        SupervisorHandle::new(running(app.build().unwrap()).await)
    }

    async fn running(app: Supervisor) -> Arc<Hub> {
        let blueprint = app.blueprint();
        let mut tree = Tree::new(now(), wall());
        assert!(tree.visited.is_none(), "there is one thread");
        tree.visited = Some(Handle::current());
        let name = Arc::clone(&blueprint.name);
        let hub = Hub::new(name, None, Arc::new(tree), blueprint, now());
        let run = supervise(Arc::clone(&hub), None, |_| ());
        #[expect(clippy::disallowed_methods, reason = "the root's task, as elsewhere")]
        drop(tokio::spawn(run));
        settle().await;
        hub
    }

    async fn settle() {
        for _ in 0..100 {
            yield_now().await;
        }
    }

    /// The runtime polls a test itself once for many tasks, but tasks in turn.
    async fn in_turn<F: Future<Output = ()> + Send + 'static>(test: F) {
        #[expect(clippy::disallowed_methods, reason = "a caller, not a child")]
        let done = tokio::spawn(test);
        done.await.unwrap();
    }

    /// Lets those have one turn each who were woken already; see [`in_turn`].
    async fn give_way() {
        let mut given = false;
        poll_fn(|cx| {
            if std::mem::replace(&mut given, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// What comes of one poll, in which nobody else has a turn.
    fn polled<F: Future>(call: F) -> Option<F::Output> {
        polled_again(&mut pin!(call).as_mut())
    }

    fn polled_again<F: Future>(call: &mut Pin<&mut F>) -> Option<F::Output> {
        match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    fn app() -> SupervisorBuilder {
        Supervisor::builder("app")
    }

    fn idle(name: &str) -> ChildSpec {
        worker(name, async |ctx: crate::Context| ctx.cancelled().await)
    }

    /// Ends, well or by an error, when it is told.
    fn ends(name: &str, over: &Arc<Notify>, exit: fn() -> Exit) -> ChildSpec {
        worker_with(name, (Arc::clone(over), exit), async |_ctx, (over, exit)| -> Exit {
            let _: () = Notify::notified(&over).await;
            exit()
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_answered_in_the_callers_own_poll() {
        let app = visited(app().child(idle("a"))).await;
        assert_eq!(polled(app.count_children()).unwrap().unwrap().active, 1);
        assert_eq!(polled(app.which_child("a")).unwrap().unwrap().incarnation, 1);
        assert_eq!(polled(app.start_child(idle("b"))).unwrap().unwrap().incarnation(), Some(1));
        assert_eq!(app.which_child("b").await.unwrap().path.as_str(), "app/b");
        app.stop("done").await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_slice_of_many_children_is_left_to_the_supervisors_task() {
        let app = visited(app().child(idle("a"))).await;
        assert!(polled(app.which_children()).is_none());
        assert_eq!(app.which_children().await.unwrap().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_takes_a_turn_for_the_supervisor_on_a_runtime_with_one_thread() {
        let app = app().child(idle("a")).build().unwrap().start().await.unwrap();
        assert!(polled(app.count_children()).is_none());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn somebody_does_on_a_runtime_with_several() {
        let app = app().child(idle("a")).build().unwrap().start().await.unwrap();
        // On the supervisor's own thread, so that its task doesn't run meanwhile.
        let calling = async move { polled(app.count_children()).is_some() };
        #[expect(clippy::disallowed_methods, reason = "a caller, not a child")]
        let called = tokio::spawn(calling);
        assert!(called.await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn while_the_log_is_read_only_the_supervisors_task_takes_turns() {
        let app = visited(app().child(idle("a"))).await;
        let reading = tracing::subscriber::set_default(tracing_subscriber::registry());
        assert!(polled(app.count_children()).is_none());
        drop(reading);
        assert!(polled(app.count_children()).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn what_came_before_a_call_is_heard_before_it() {
        let app = visited(app().child(idle("a").restart(RestartType::Temporary))).await;
        let specs = |app: &SupervisorHandle| polled(app.count_children()).unwrap().unwrap().specs;
        in_turn(async move {
            assert!(polled(app.kill_child("a")).is_some());
            assert_eq!(specs(&app), 1);
            // It is dropped, and the supervisor's task comes behind us.
            give_way().await;
            assert_eq!(specs(&app), 0);
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn who_finds_another_driving_is_answered_by_the_task() {
        let hub = running(app().child(idle("a")).build().unwrap()).await;
        let app = SupervisorHandle::new(Arc::clone(&hub));
        let (answer, answered) = tokio::sync::oneshot::channel();
        let driver = hub.inbox.request_in_person(Request::Count { answer }).unwrap().unwrap();

        let mut call = pin!(app.count_children());
        assert!(polled_again(&mut call).is_none());
        hub.inbox.stop(super::super::inbox::StopRequest { reason: "x".into(), within: None });
        settle().await;
        assert!(polled_again(&mut call).is_none(), "nobody has the driver but us");

        assert!(hub.inbox.leave(driver, false).is_none());
        assert_eq!(answered.await.unwrap().unwrap().specs, 1);
        assert!(call.await.is_ok());
        app.wait().await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_of_a_callers_turn_is_kept_by_the_task() {
        let deaf =
            worker("deaf", async |_ctx: crate::Context| -> Exit { std::future::pending().await });
        let deaf = deaf.shutdown(crate::Shutdown::Timeout(Duration::from_secs(3)));
        let app = visited(app().child(deaf)).await;
        let began = Instant::now();
        app.terminate_child("deaf").await.unwrap();
        assert_eq!(began.elapsed(), Duration::from_secs(3));
    }

    /// Fails whenever it is told, and notes each run.
    fn fails(over: &Arc<Notify>, runs: &Arc<AtomicUsize>) -> ChildSpec {
        let job = worker_with("job", (Arc::clone(over), Arc::clone(runs)), async |_ctx, job| {
            let (over, runs): (Arc<Notify>, Arc<AtomicUsize>) = job;
            runs.fetch_add(1, Ordering::Relaxed);
            over.notified().await;
            Exit::Err("again".into())
        });
        job.backoff(Backoff::none())
    }

    #[tokio::test(start_paused = true)]
    async fn a_child_that_fails_is_back_in_the_same_poll() {
        let (over, runs) = (Arc::default(), Arc::default());
        let app = visited(app().child(fails(&over, &runs))).await;
        in_turn(async move {
            assert_eq!(runs.load(Ordering::Relaxed), 1);
            over.notify_one();
            give_way().await;
            assert_eq!(runs.load(Ordering::Relaxed), 2);
            assert_eq!(polled(app.which_child("job")).unwrap().unwrap().incarnation, 2);
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_child_that_fails_at_once_again_and_again_gives_way_to_others() {
        let runs = Arc::<AtomicUsize>::default();
        let job = worker_with("job", Arc::clone(&runs), async |_ctx, runs: Arc<AtomicUsize>| {
            runs.fetch_add(1, Ordering::Relaxed);
            Exit::Err("again".into())
        });
        let app = app().restarts(1_000_000, Duration::from_secs(1));
        let app = visited(app.child(job.backoff(Backoff::none()))).await;
        in_turn(async move {
            give_way().await;
            let before = runs.load(Ordering::Relaxed);
            give_way().await;
            assert_eq!(runs.load(Ordering::Relaxed) - before, 4);
            app.stop("done").await.unwrap();
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_child_that_fails_with_its_supervisor_ends_both() {
        let (over, runs) = (Arc::default(), Arc::default());
        let inner = Supervisor::builder("inner").restarts(0, Duration::from_secs(1));
        let inner = inner.child(fails(&over, &runs)).into_child();
        let app = app().restarts(1, Duration::from_secs(1));
        let app = visited(app.child(inner.backoff(Backoff::none()))).await;
        over.notify_one();
        settle().await;
        assert_eq!(runs.load(Ordering::Relaxed), 2);
        assert_eq!(polled(app.which_child("inner")).unwrap().unwrap().incarnation, 2);
        over.notify_one();
        let error = app.wait().await.unwrap_err();
        assert!(matches!(error, RunError::GaveUp { .. }), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_supervisor_that_fails_in_a_callers_turn_ends() {
        let over = Arc::new(Notify::new());
        let job = ends("job", &over, || Err("no".into()));
        let app = visited(app().restarts(0, Duration::from_secs(1)).child(job)).await;
        over.notify_one();
        yield_now().await;
        assert!(matches!(polled(app.start_child(idle("b"))), None | Some(Err(_))));
        let error = app.wait().await.unwrap_err();
        assert!(matches!(error, RunError::GaveUp { .. }), "{error}");
    }

    /// An error that nobody can let go of.
    #[derive(Debug, thiserror::Error)]
    #[error("sticky")]
    struct Sticky;

    impl Drop for Sticky {
        fn drop(&mut self) {
            assert!(std::thread::panicking(), "it is dropped");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_callers_turn_that_panics_ends_the_supervisor_and_not_the_caller() {
        let over = Arc::new(Notify::new());
        let job = ends("job", &over, || Err(Sticky.into())).restart(RestartType::Temporary);
        let app = visited(app().child(job)).await;
        over.notify_one();
        yield_now().await;
        let called = app.count_children().await;
        assert!(matches!(called, Err(ControlError::Ended { .. })), "{called:?}");
        assert!(matches!(app.wait().await, Err(RunError::Aborted { .. })));
    }

    #[tokio::test]
    async fn who_calls_from_outside_of_the_runtime_takes_the_turn_in_it() {
        let conns = running(DynamicSupervisor::builder("conns").build().unwrap()).await;
        let conns = SupervisorHandle::new(conns);
        let (sends, began) = mpsc::channel();
        let conn = worker_with("conn", sends, async |_ctx, sends: mpsc::Sender<()>| {
            sends.send(()).unwrap();
        });
        let called = std::thread::spawn(move || polled(conns.start_child(conn))).join().unwrap();
        assert!(called.unwrap().is_ok());
        settle().await;
        assert_eq!(began.try_recv(), Ok(()));
    }
}
