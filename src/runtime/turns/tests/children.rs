//! Children that have ended of their own accord take the turn, and go on in the same poll.

use super::*;

/// Fails whenever it is told, and notes each run.
fn fails(over: &Arc<Notify>, runs: &Arc<AtomicUsize>) -> ChildSpec {
    let job = worker_with("job", (Arc::clone(over), Arc::clone(runs)), async |_ctx, job| {
        let (over, runs): (Arc<Notify>, Arc<AtomicUsize>) = job;
        runs.fetch_add(1, Ordering::Relaxed);
        over.notified().await;
        Exit::Err(std::io::Error::other("again").into())
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

/// From the third one on, each is the run before, used again.
#[tokio::test(start_paused = true)]
async fn each_run_in_the_same_poll_has_its_own_number_and_was_not_asked_to_stop() {
    type Told = (u32, StartCause, bool);
    let told = Arc::<Mutex<Vec<Told>>>::default();
    let job = worker_with("job", Arc::clone(&told), async |ctx: crate::Context, told| -> Exit {
        let number = ctx.incarnation();
        Mutex::lock(&told).unwrap().push((number, ctx.start_cause(), ctx.is_cancelled()));
        if number < 5 {
            return Err("again".into());
        }
        ctx.cancelled().await;
        Ok(())
    });
    let app = app().restarts(10, Duration::from_secs(1));
    let app = visited(app.child(job.backoff(Backoff::none()))).await;

    let (first, again) = (StartCause::Initial, StartCause::Restart);
    let runs =
        [1, 2, 3, 4, 5].map(|number| (number, if number == 1 { first } else { again }, false));
    assert_eq!(*told.lock().unwrap(), runs);
    assert_eq!(app.which_child("job").await.unwrap().incarnation, 5);
    let began = Instant::now();
    app.stop("done").await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO, "the last one hears that it is to stop");
}

struct Bomb;

impl Wake for Bomb {
    fn wake(self: Arc<Self>) {
        panic!("when it is woken");
    }
}

/// As soon as its supervisor's turn is over, whoever kept the context of the run before is woken.
#[tokio::test(start_paused = true)]
async fn a_run_that_was_given_to_a_task_that_panics_then_is_not_lost() {
    type Waits = Pin<Box<dyn Future<Output = ()> + Send>>;
    let over = Arc::new(Notify::new());
    let kept = Arc::<Mutex<Vec<Waits>>>::default();
    let given = (Arc::clone(&over), Arc::clone(&kept));
    let keeps = worker_with("keeps", given, async |ctx: crate::Context, (over, kept)| -> Exit {
        if ctx.incarnation() > 1 {
            ctx.cancelled().await;
            return Ok(());
        }
        let mut waits: Waits = Box::pin(async move { ctx.cancelled().await });
        let waker = Waker::from(Arc::new(Bomb));
        assert!(waits.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        Mutex::lock(&kept).unwrap().push(waits);
        let _: () = Notify::notified(&over).await;
        Err("once".into())
    });
    let app = app().restarts(5, Duration::from_secs(60)).child(keeps.backoff(Backoff::none()));
    let app = visited(app).await;
    over.notify_one();
    settle().await;

    assert_eq!(app.which_child("keeps").await.unwrap().incarnation, 3, "2 was given, and aborted");
    app.stop("done").await.unwrap();
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
        assert_eq!(runs.load(Ordering::Relaxed) - before, 16);
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
async fn a_child_whose_turn_leaves_something_to_the_task_gives_way_before_it_runs_again() {
    let (over, runs) = (Arc::default(), Arc::default());
    let kept = Arc::<Mutex<Option<crate::Context>>>::default();
    let keeps = worker_with("keeps", Arc::clone(&kept), async |ctx: crate::Context, kept| {
        let kept: Arc<Mutex<Option<crate::Context>>> = kept;
        *kept.lock().unwrap() = Some(ctx.clone());
        ctx.cancelled().await;
    });
    // While the turn is taken, there is something new.
    let fails = fails(&over, &runs).restart_if(move |_: &std::io::Error| {
        kept.lock().unwrap().as_ref().unwrap().ready();
        true
    });
    let app = app().start(Start::Concurrent).child(fails);
    let app = visited(app.child(keeps.readiness(Readiness::Signal))).await;
    in_turn(async move {
        over.notify_one();
        give_way().await;
        assert_eq!(runs.load(Ordering::Relaxed), 1);
        give_way().await;
        assert_eq!(runs.load(Ordering::Relaxed), 2);
        app.stop("done").await.unwrap();
    })
    .await;
}
