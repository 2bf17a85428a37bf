//! The tables that say what counts as a restart, and which limits can be reached.

mod table {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use verger::policy::{OnExhausted, OnExit, Preset};
    use verger::{
        Backoff, ChildSpec, Context, ControlError, Exit, ExitError, ExitKind, Readiness,
        RestartType, Strategy, Supervisor, SupervisorHandle, worker, worker_with,
    };

    /// For ever.
    const EVER: Duration = Duration::MAX;

    fn after_a_second(end: fn() -> Exit) -> ChildSpec {
        worker_with("child", end, async |ctx: Context, end: fn() -> Exit| -> Exit {
            if ctx.incarnation() == 1 {
                tokio::time::sleep(Duration::from_secs(1)).await;
                return end();
            }
            ctx.cancelled().await;
            Ok(())
        })
    }

    /// The first run fails before it is active.
    fn before_active() -> ChildSpec {
        worker("child", async |ctx: Context| -> Exit {
            if ctx.incarnation() == 1 {
                return Err("not yet".into());
            }
            ctx.ready();
            ctx.cancelled().await;
            Ok(())
        })
        .readiness(Readiness::Signal)
    }

    fn steady(name: &str) -> ChildSpec {
        worker(name.to_owned(), async |ctx: Context| ctx.cancelled().await)
    }

    fn failure() -> Exit {
        Err("no luck".into())
    }

    async fn seen(
        strategy: Strategy,
        child: ChildSpec,
        call: impl AsyncFn(&SupervisorHandle) -> Result<(), ControlError>,
    ) -> (usize, bool) {
        let app = |child: ChildSpec| {
            let app = Supervisor::builder("app").strategy(strategy).restarts(9, EVER);
            app.child(steady("first")).child(child).child(steady("last")).build().unwrap()
        };
        let counted = app(child.clone()).start().await.unwrap();
        let _ = call(&counted).await;
        tokio::time::sleep(Duration::from_secs(9)).await;
        let status = counted.status().await.unwrap();
        let supervisor = status.root.supervisor.unwrap().restarts_in_period;
        counted.stop("it has been seen").await.unwrap();

        // Of a child that may not be restarted once, the first failure that is counted is the last.
        let limited = child.own_restarts(0, EVER).on_exhausted(OnExhausted::StopChild);
        let limited = app(limited).start().await.unwrap();
        let _ = call(&limited).await;
        tokio::time::sleep(Duration::from_secs(9)).await;
        let why = limited.which_child("child").await.unwrap().why;
        limited.stop("it has been seen").await.unwrap();
        (supervisor, why == Some("given up"))
    }

    /// Of two runs one isn't active before it fails, and one stays.
    async fn by_turns(ctx: Context, runs: Arc<AtomicU32>) -> Exit {
        if runs.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            return Err("not yet".into());
        }
        ctx.ready();
        ctx.cancelled().await;
        Ok(())
    }

    async fn counted(child: ChildSpec) -> (usize, bool) {
        seen(Strategy::OneForOne, child, async |_| Ok(())).await
    }

    #[tokio::test(start_paused = true)]
    async fn each_event_counts_as_the_table_says() {
        // What its supervisor counts, and whether the child's own limits count it.
        assert_eq!(counted(after_a_second(failure)).await, (1, true));
        assert_eq!(counted(after_a_second(|| Ok(()))).await, (1, true));
        assert_eq!(counted(before_active()).await, (0, true));
        assert_eq!(counted(before_active().backoff(Backoff::none())).await, (1, true));
        let uncharged =
            || after_a_second(failure).on_exit(ExitKind::Failed, OnExit::RestartUncharged);
        assert_eq!(counted(uncharged()).await, (0, true));
        assert_eq!(counted(uncharged().backoff(Backoff::none())).await, (1, true));
        let transient = after_a_second(|| Ok(())).restart(RestartType::Transient);
        assert_eq!(counted(transient).await, (0, false));
        let left = after_a_second(failure).restart(RestartType::OnSuccess);
        assert_eq!(counted(left).await, (0, false));
        assert_eq!(counted(after_a_second(|| Err(ExitError::ignore()))).await, (0, false));

        let group = seen(Strategy::OneForAll, after_a_second(failure), async |_| Ok(())).await;
        assert_eq!(group, (1, true));

        let falls_back =
            after_a_second(failure).consecutive_restarts(0).fallback(steady("fallback"));
        assert_eq!(counted(falls_back).await.0, 0);
        let pause = OnExhausted::Pause(Duration::from_secs(1));
        let pauses = after_a_second(failure).consecutive_restarts(0).on_exhausted(pause);
        assert_eq!(counted(pauses).await.0, 0);
        let refused =
            after_a_second(failure).consecutive_restarts(0).on_exhausted(OnExhausted::Park);
        assert_eq!(counted(refused).await.0, 0);

        let calls = async |handle: &SupervisorHandle| {
            handle.restart("child").await?;
            handle.stop_child("child").await?;
            handle.otp().restart_child("child").await.map(drop)
        };
        assert_eq!(seen(Strategy::OneForOne, steady("child"), calls).await, (0, false));
        let kill = async |handle: &SupervisorHandle| handle.kill("child").await.map(drop);
        assert_eq!(seen(Strategy::OneForOne, steady("child"), kill).await, (1, true));
        // Where the limit allows no restart, it brings back the child that was given up.
        let resume = async |handle: &SupervisorHandle| {
            tokio::time::sleep(Duration::from_millis(1_100)).await;
            handle.resume("child").await.map(drop)
        };
        assert_eq!(seen(Strategy::OneForOne, after_a_second(failure), resume).await, (1, false));

        let by_turns = worker_with("grandchild", Arc::new(AtomicU32::new(0)), by_turns);
        let by_turns = by_turns.readiness(Readiness::Signal);
        let gives_up = Supervisor::builder("child").preset(Preset::oversight());
        let gives_up = gives_up.restarts(0, EVER).child(by_turns);
        assert_eq!(counted(gives_up.into_child()).await, (1, true));
    }
}

mod unreachable {
    use std::time::Duration;

    use verger::error::BuildWarning;
    use verger::{Backoff, Context, Supervisor, worker};

    async fn sensor(ctx: Context) {
        ctx.cancelled().await;
    }

    /// How many restarts there can be at most, if that is not more than the limit.
    fn most(backoff: &Backoff, max: u32, period: u64, children: u32) -> Option<u64> {
        let station = Supervisor::builder("station").restarts(max, Duration::from_secs(period));
        let station = (0..children).fold(station, |station, number| {
            station.child(worker(format!("sensor-{number}"), sensor).backoff(backoff.clone()))
        });
        match station.build().unwrap().warnings() {
            [BuildWarning::UnreachableLimit { most, .. }] => Some(*most),
            _ => None,
        }
    }

    #[test]
    fn a_limit_that_the_delays_make_unreachable_is_a_warning() {
        let secs = Duration::from_secs;
        let constant = Backoff::constant(secs(15));
        assert_eq!(most(&constant, 5, 10, 1), Some(1));
        assert_eq!(most(&constant, 5, 10, 5), Some(5));
        assert_eq!(most(&constant, 5, 10, 6), None);
        assert_eq!(most(&constant, 6, 10, 6), Some(6));
        assert_eq!(most(&Backoff::exponential(secs(20), secs(60)), 3, 60, 1), Some(3));
        let quickly = Backoff::exponential(Duration::from_millis(200), secs(30));
        assert_eq!(most(&quickly, 6, 10, 1), Some(6));
        assert_eq!(most(&Backoff::default(), 5, 60, 1), None);
        assert_eq!(most(&Backoff::default(), 12, 60, 1), None);
        assert_eq!(most(&Backoff::default(), 13, 60, 1), Some(13));
        assert_eq!(most(&Backoff::constant(secs(60)), 5, 60, 1), Some(2));
    }
}
