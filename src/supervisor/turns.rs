//! Whose turn it is to drive a supervisor.
//!
//! A supervisor has a task of its own, which takes its turns. But whoever asks it something is awake
//! already: to wake the supervisor's task for that, and to be woken by it in turn, takes longer than
//! most of what is asked. So a caller who finds the driver in the inbox takes one turn himself, in
//! the middle of his own poll, and has his answer. It is a turn like any other, with all that had come
//! in before. The task remains for what comes of itself: ends of children, deadlines, being asked to
//! stop, what one turn has left over, and the supervisor's own end.
//!
//! A child that ends takes no turn: children that end together are to be heard together, before any
//! of them is back.
//!
//! # Invariants
//!
//! 1. One at a time drives, and nobody waits for it: who finds somebody else driving leaves it to
//!    him, and to the task.
//! 2. What a turn panics with ends the supervisor's task, whoever has taken it.
//! 3. A caller's turn is taken in the supervisor's runtime, and not while the log is read: what a
//!    supervisor logs is not said in the caller's span.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::hub::Hub;
use super::inbox::{Batch, Reader};
use super::outcome::Outcome;
use super::request::Request;
use super::trace;

/// What drives a supervisor, whatever its machine is.
pub(crate) trait Turns: Reader<Request> + Send {
    /// Takes turns for the supervisor's task, until that has to wait or to give way.
    fn poll(&mut self, cx: &mut Context<'_>) -> Next;

    /// Takes one turn for somebody else. Whether the task is needed after it.
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
    let mut seat = Seat { hub, driver: Some(driver) };
    poll_fn(|cx| seat.poll(cx)).await
}

struct Seat {
    hub: Arc<Hub>,
    /// Before the first turn, and between two of the task's own.
    driver: Option<BoxedDriver>,
}

impl Seat {
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

impl Drop for Seat {
    fn drop(&mut self) {
        drop(self.hub.inbox.dismiss());
    }
}

impl Hub {
    /// Asks the supervisor. `false`: it has ended.
    pub(super) fn ask(&self, request: Request) -> bool {
        // A slice of many is asked for by who will ask for the next one at once, and others on his
        // thread are to have a turn in between.
        let runtime = self.tree.visited.as_ref();
        let Some(runtime) = runtime.filter(|_| !request.is_slice() && !trace::is_read()) else {
            return self.inbox.request(request).is_ok();
        };
        match self.inbox.request_in_person(request) {
            Err(_) => false,
            Ok(None) => true,
            Ok(Some(mut driver)) => {
                let entered = runtime.enter();
                let needed = driver.visit();
                drop(self.inbox.leave(driver, needed));
                drop(entered);
                true
            }
        }
    }
}

#[cfg(all(test, not(verger_loom)))]
mod tests {
    use std::pin::Pin;
    use std::sync::mpsc;
    use std::task::Waker;
    use std::time::Duration;

    use tokio::runtime::Handle;
    use tokio::sync::Notify;
    use tokio::task::yield_now;
    use tokio::time::Instant;

    use super::super::{Tree, supervise};
    use super::*;
    use crate::clock::{now, wall};
    use crate::{
        ChildSpec, ControlError, DynamicSupervisor, Exit, RestartType, RunError, Supervisor,
        SupervisorBuilder, SupervisorHandle, worker, worker_with,
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
        let over = Arc::new(Notify::new());
        let job = ends("job", &over, || Ok(())).restart(RestartType::Temporary);
        let app = visited(app().child(job)).await;
        over.notify_one();
        // The child comes first, and ends; its supervisor has not had its turn yet.
        yield_now().await;
        assert_eq!(polled(app.count_children()).unwrap().unwrap().active, 0);
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
