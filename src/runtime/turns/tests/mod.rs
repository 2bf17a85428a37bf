mod children;

use std::future::{Future, pending};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Wake, Waker};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::Instant;
use tracing::subscriber::{NoSubscriber, set_default};
use tracing_subscriber::layer::{self, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use super::*;
use crate::clock::{now, wall};
use crate::runtime::inbox::StopRequest;
use crate::runtime::{Tree, supervise};
use crate::{
    Backoff, ChildSpec, ControlError, DynamicSupervisor, EventKind, Exit, Inbox, Lifecycle,
    Readiness, RestartType, RunError, Shutdown, Start, StartCause, Supervisor, SupervisorBuilder,
    SupervisorHandle, mailbox, worker, worker_with, worker_with_mailbox,
};

/// As on several threads, but with a clock that can be paused.
async fn visited(app: SupervisorBuilder) -> SupervisorHandle {
    SupervisorHandle::new(running(app.build().unwrap()).await.0)
}

async fn running(app: Supervisor) -> (Arc<Hub>, JoinHandle<()>) {
    let blueprint = app.blueprint();
    let mut tree = Tree::new(now(), wall());
    tree.visited = Some(Handle::current());
    let name = Arc::clone(&blueprint.name);
    let hub = Hub::new(name, None, Arc::new(tree), blueprint, now());
    let task = spawn(supervise(Arc::clone(&hub), None, |_| ()));
    settle().await;
    (hub, task)
}

fn spawn<F: Future<Output: Send> + Send + 'static>(task: F) -> JoinHandle<F::Output> {
    #[expect(clippy::disallowed_methods, reason = "a root, or a caller")]
    tokio::spawn(task)
}

async fn settle() {
    for _ in 0..100 {
        yield_now().await;
    }
}

/// The runtime polls a test itself once for many tasks, but tasks in turn.
async fn in_turn<F: Future<Output = ()> + Send + 'static>(test: F) {
    spawn(test).await.unwrap();
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
async fn who_has_started_a_child_again_can_write_to_it_before_it_runs() {
    let (address, mailbox) = mailbox::<u32>(10);
    let read = Arc::<Mutex<Vec<u32>>>::default();
    let noted = Arc::clone(&read);
    let reader = worker_with_mailbox("reader", mailbox, move |_ctx, mut inbox: Inbox<u32>| {
        let noted = Arc::clone(&noted);
        async move {
            while let Some(n) = inbox.recv().await {
                noted.lock().unwrap().push(n);
            }
        }
    });
    let app = visited(app().child(reader)).await;
    app.terminate_child("reader").await.unwrap();
    assert!(address.try_send(1).is_err());

    assert!(polled(app.restart_child("reader")).unwrap().is_ok());
    address.try_send(2).unwrap();
    // What came before it waits a while, lest it be what made the last one fail.
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(*read.lock().unwrap(), [2]);
}

#[tokio::test(start_paused = true)]
async fn a_slice_of_many_children_is_left_to_the_supervisors_task() {
    let app = visited(app().child(idle("a"))).await;
    assert!(polled(app.which_children()).is_none());
    assert_eq!(app.which_children().await.unwrap().len(), 1);
}

#[cfg(not(verger_in_person))]
#[tokio::test(start_paused = true)]
async fn nobody_takes_a_turn_for_the_supervisor_on_a_runtime_with_one_thread() {
    let app = app().child(idle("a")).build().unwrap().start().await.unwrap();
    assert!(polled(app.count_children()).is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn somebody_does_on_a_runtime_with_several() {
    let app = app().child(idle("a")).build().unwrap().start().await.unwrap();
    // On the supervisor's own thread, so that its task doesn't run meanwhile.
    in_turn(async move { assert!(polled(app.count_children()).is_some()) }).await;
}

/// In which spans each line was logged, the innermost first.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<String>>>);

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_event(&self, event: &tracing::Event<'_>, ctx: layer::Context<'_, S>) {
        let target = event.metadata().target();
        let spans = ctx.event_scope(event).into_iter().flatten();
        let spans: Vec<_> = spans.map(|span| span.name()).collect();
        self.0.lock().unwrap().push(format!("{target} in {spans:?}"));
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_logged_in_anothers_turn_is_said_in_the_supervisors_own_span() {
    let spans = Spans::default();
    let subscriber = tracing_subscriber::registry().with(spans.clone());
    let _reading = set_default(subscriber);
    // A listener alone would not hear a line that another thread, which doesn't listen, was the
    // first to come by.
    let _second = tracing::Dispatch::new(NoSubscriber::new());
    let inner = Supervisor::builder("inner").child(idle("a"));
    let app = visited(app().child(inner)).await;
    let inner = app.supervisor("inner").await.unwrap();
    spans.0.lock().unwrap().clear();

    tracing::info_span!("request").in_scope(|| {
        tracing::info_span!("step").in_scope(|| {
            assert!(polled(app.start_child(idle("b"))).is_some());
            assert!(polled(inner.start_child(idle("c"))).is_some());
            tracing::info!(target: "caller", "done");
        });
        tracing::info!(target: "caller", "done");
    });

    let logged = std::mem::take(&mut *spans.0.lock().unwrap());
    assert_eq!(
        logged,
        [
            "verger::lifecycle in []",
            "verger::lifecycle in []",
            "verger::lifecycle in []",
            "verger::lifecycle in [\"child\"]",
            "verger::lifecycle in [\"child\"]",
            "verger::lifecycle in [\"child\"]",
            "caller in [\"step\", \"request\"]",
            "caller in [\"request\"]",
        ]
    );
}

/// Lets a child end that waits for this, and its end lie in the inbox, for whoever comes first.
async fn end_unheard(hub: &Hub, over: &Notify) {
    let answer = tokio::sync::oneshot::channel().0;
    let driver = hub.inbox.request_in_person(Request::Count { answer }).unwrap().unwrap();
    over.notify_one();
    give_way().await;
    assert!(matches!(hub.inbox.leave(driver, false), Left::Awake));
}

#[tokio::test(start_paused = true)]
async fn what_came_before_a_call_is_heard_before_it() {
    let over = Arc::new(Notify::new());
    let job = ends("job", &over, || Ok(())).restart(RestartType::Temporary);
    let (hub, _) = running(app().child(job).build().unwrap()).await;
    let app = SupervisorHandle::new(Arc::clone(&hub));
    in_turn(async move {
        assert_eq!(polled(app.count_children()).unwrap().unwrap().specs, 1);
        end_unheard(&hub, &over).await;
        let mut call = pin!(app.count_children());
        assert!(polled_again(&mut call).is_none(), "the task is on its way");
        assert_eq!(polled_again(&mut call).unwrap().unwrap().specs, 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn who_finds_another_driving_is_answered_by_the_task() {
    let (hub, _) = running(app().child(idle("a")).build().unwrap()).await;
    let app = SupervisorHandle::new(Arc::clone(&hub));
    let (answer, answered) = tokio::sync::oneshot::channel();
    let driver = hub.inbox.request_in_person(Request::Count { answer }).unwrap().unwrap();

    let mut call = pin!(app.count_children());
    assert!(polled_again(&mut call).is_none());
    hub.inbox.stop(StopRequest { reason: "x".into(), within: None });
    settle().await;
    assert!(polled_again(&mut call).is_none(), "nobody has the driver but us");

    assert!(matches!(hub.inbox.leave(driver, false), Left::Awake));
    assert_eq!(answered.await.unwrap().unwrap().specs, 1);
    assert!(call.await.is_ok());
    app.wait().await.unwrap();
}

fn deaf(name: &str, grace: Duration) -> ChildSpec {
    let deaf = worker(name, async |_ctx: crate::Context| -> Exit { pending().await });
    deaf.shutdown(Shutdown::Timeout(grace))
}

#[tokio::test(start_paused = true)]
async fn deadlines_of_callers_turns_are_kept_by_the_task() {
    let secs = Duration::from_secs;
    let app = app().child(deaf("a", secs(3))).child(deaf("b", secs(1)));
    let app = visited(app.child(deaf("c", secs(7)))).await;
    let began = Instant::now();
    let ended = async |name| {
        app.terminate_child(name).await.unwrap();
        began.elapsed()
    };
    // The second is nearer than the one that the task sleeps for; of the third, that is long over.
    assert_eq!(tokio::join!(ended("a"), ended("b")), (secs(3), secs(1)));
    assert_eq!(ended("c").await, secs(10));
}

#[tokio::test(start_paused = true)]
async fn who_has_no_time_to_stop_is_polled_before_anybody_takes_the_next_turn() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&heard);
    let child = worker_with("a", log, async |ctx: crate::Context, log: Arc<Mutex<Vec<_>>>| {
        ctx.cancelled().await;
        log.lock().unwrap().push("cancelled");
    });
    let app = visited(app().child(child.shutdown(Shutdown::Timeout(Duration::ZERO)))).await;
    let mut terminated = pin!(app.terminate_child("a"));
    assert!(polled_again(&mut terminated).is_none());
    assert!(polled(app.count_children()).is_none(), "that is for the task, later");
    terminated.await.unwrap();
    assert_eq!(*heard.lock().unwrap(), ["cancelled"]);
}

#[tokio::test(start_paused = true)]
async fn a_caller_whose_turn_leaves_something_to_the_task_gives_way_to_it() {
    let app = visited(app().child(idle("a"))).await;
    in_turn(async move {
        // The supervisor sees to it that the child is gone in time.
        let mut call = pin!(app.kill_child("a"));
        assert!(polled_again(&mut call).is_none());
        assert!(polled_again(&mut call).unwrap().is_ok());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn who_was_asked_to_stop_takes_no_turn() {
    let child = idle("a").shutdown(Shutdown::Infinity);
    let (hub, _) = running(app().child(child).build().unwrap()).await;
    let app = SupervisorHandle::new(Arc::clone(&hub));
    in_turn(async move {
        let mut call = pin!(app.terminate_child("a"));
        assert!(polled_again(&mut call).is_none());
        give_way().await;
        assert!(hub.inbox.has_news(), "it has ended, and its end waits for the task");
        assert!(call.await.is_ok());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_driver_whose_task_is_gone_aborts_the_children_when_it_is_left() {
    let dropped = Arc::<AtomicUsize>::default();
    struct Drops(Arc<AtomicUsize>);
    impl Drop for Drops {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let notes = Arc::clone(&dropped);
    let child = worker_with("a", notes, async |_ctx, notes: Arc<AtomicUsize>| -> Exit {
        let _drops = Drops(notes);
        pending().await
    });
    let (hub, task) = running(app().child(child).build().unwrap()).await;
    let (answer, answered) = tokio::sync::oneshot::channel();
    let driver = hub.inbox.request_in_person(Request::Count { answer }).unwrap().unwrap();
    task.abort();
    settle().await;
    assert_eq!(dropped.load(Ordering::Relaxed), 0);

    assert!(!Visitor { hub: &hub, driver: Some(driver) }.drive(None, &mut None));
    settle().await;
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
    assert!(answered.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_supervisor_that_fails_in_a_callers_turn_ends() {
    let over = Arc::new(Notify::new());
    let job = ends("job", &over, || Err("no".into()));
    let app = app().restarts(0, Duration::from_secs(1)).child(job);
    let (hub, _) = running(app.build().unwrap()).await;
    let app = SupervisorHandle::new(Arc::clone(&hub));
    let caller = app.clone();
    in_turn(async move {
        end_unheard(&hub, &over).await;
        let mut call = pin!(caller.start_child(idle("b")));
        assert!(polled_again(&mut call).is_none());
        let error = call.await.unwrap_err();
        assert!(matches!(error, ControlError::ShuttingDown { .. }), "{error}");
    })
    .await;
    let error = app.wait().await.unwrap_err();
    assert!(matches!(error, RunError::GaveUp { .. }), "{error}");
}

/// Can't read of restarts.
struct Panics;

impl<S: tracing::Subscriber> Layer<S> for Panics {
    fn on_event(&self, event: &tracing::Event<'_>, _ctx: layer::Context<'_, S>) {
        assert_ne!(event.metadata().target(), "verger::restart");
    }
}

#[tokio::test(start_paused = true)]
async fn anothers_turn_that_panics_ends_the_supervisor_and_not_him() {
    let _reading = set_default(tracing_subscriber::registry().with(Panics));
    // As above.
    let _second = tracing::Dispatch::new(NoSubscriber::new());
    for by_caller in [true, false] {
        let over = Arc::new(Notify::new());
        let job = ends("job", &over, || Err("no".into()));
        let (hub, _) = running(app().child(job).build().unwrap()).await;
        let app = SupervisorHandle::new(Arc::clone(&hub));
        let caller = app.clone();
        in_turn(async move {
            if by_caller {
                end_unheard(&hub, &over).await;
            } else {
                over.notify_one();
                give_way().await;
            }
            let called = caller.count_children().await;
            assert!(matches!(called, Err(ControlError::Ended { .. })), "{called:?}");
        })
        .await;
        assert!(matches!(app.wait().await, Err(RunError::Aborted { .. })));
    }
}

#[tokio::test]
async fn who_calls_from_outside_of_the_runtime_takes_the_turn_in_it() {
    let (conns, _) = running(DynamicSupervisor::builder("conns").build().unwrap()).await;
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

#[tokio::test(start_paused = true)]
async fn the_end_of_a_child_that_is_aborted_before_its_first_poll_is_told_once() {
    let runs = Arc::<AtomicUsize>::default();
    let app = visited(app()).await;
    let job = worker_with("job", Arc::clone(&runs), async |ctx: crate::Context, runs| {
        AtomicUsize::fetch_add(&runs, 1, Ordering::Relaxed);
        ctx.cancelled().await;
    });
    let mut events = app.events();
    assert!(polled(app.start_child(job.backoff(Backoff::none()))).unwrap().is_ok());
    // It is made at the first poll.
    polled(app.kill_child("job"));
    settle().await;

    let job = app.which_child("job").await.unwrap();
    assert_eq!((job.incarnation, runs.load(Ordering::Relaxed)), (2, 1));
    let happened = std::iter::from_fn(|| events.try_next());
    let is_end = |kind| matches!(kind, EventKind::Moved { to: Lifecycle::Errored, .. });
    assert_eq!(happened.filter(|event| is_end(event.kind.clone())).count(), 1);
}
