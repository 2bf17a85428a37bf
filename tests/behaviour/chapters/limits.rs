//! Tables of the chapters *Restart limits*, *What counts as a restart* and *Giving up and what the parent does*.

mod dynamic {
    use std::time::Duration;

    use verger::{Context, DynamicSupervisor, Exit, worker_with};

    async fn serve(ctx: Context, broken: bool) -> Exit {
        if broken {
            tokio::time::sleep(Duration::from_secs(1)).await;
            return Err("reset by peer".into());
        }
        ctx.cancelled().await;
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn a_dynamic_supervisor_limits_each_child() -> Result<(), Box<dyn std::error::Error>> {
        let conns = DynamicSupervisor::builder("conns").build()?.start().await?;
        for broken in [true, true, true, false] {
            conns.start_child(worker_with("conn", broken, serve)).await?;
        }

        tokio::time::sleep(Duration::from_secs(4 * 60)).await;

        let left = conns.children().await?;
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].path.as_str(), "conns/conn#4");
        conns.stop("the listing is over").await?;
        Ok(())
    }
}

mod nested {
    use std::time::Duration;

    use verger::{Context, Exit, RunError, Supervisor, worker};

    async fn broken(_ctx: Context) -> Exit {
        tokio::time::sleep(Duration::from_secs(10)).await;
        Err("no luck".into())
    }

    #[tokio::test(start_paused = true)]
    async fn default_periods_grow_with_the_levels_below() -> Result<(), Box<dyn std::error::Error>>
    {
        let bottom = Supervisor::builder("bottom").child(worker("broken", broken));
        let middle = Supervisor::builder("middle").child(bottom);
        let top = Supervisor::builder("top").child(middle).build()?;

        let status = top.clone().start().await?.status().await?;
        let (middle, bottom) = (&status.root.children[0], &status.root.children[0].children[0]);
        let limits = [middle, bottom, &bottom.children[0]].map(|node| {
            let limit = node.child.limit.as_ref().expect("each has one");
            (limit.max_restarts, limit.period.as_secs() / 60)
        });
        assert_eq!(limits, [(3, 69), (3, 17), (12, 5)]);

        assert!(matches!(top.run().await, Err(RunError::GaveUp { .. })));
        Ok(())
    }
}

mod windows {
    use std::time::Duration;

    use tokio::time::{Instant, sleep_until};
    use verger::policy::Intensity;
    use verger::{Backoff, Context, Exit, Supervisor, worker_with};

    const MINUTE: Duration = Duration::from_secs(60);
    const FAILURES: [u64; 7] = [1, 50, 55, 62, 65, 68, 70];

    async fn sensor(ctx: Context, began: Instant) -> Exit {
        let at = FAILURES[ctx.incarnation() as usize - 1];
        sleep_until(began + Duration::from_secs(at)).await;
        Err("the line dropped".into())
    }

    /// After how many seconds the supervisor gives up.
    async fn gives_up_at(intensity: Intensity) -> u64 {
        let began = Instant::now();
        let station = Supervisor::builder("station")
            .intensity(intensity)
            .child(worker_with("sensor", began, sensor).backoff(Backoff::none()));
        station.build().unwrap().run().await.unwrap_err();
        began.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn windows_differ_in_how_they_forget() {
        assert_eq!(gives_up_at(Intensity::sliding(3, MINUTE)).await, 65);
        assert_eq!(gives_up_at(Intensity::tumbling(3, MINUTE)).await, 70);
        assert_eq!(gives_up_at(Intensity::decaying(3.0, MINUTE)).await, 62);
    }
}

mod of_a_child {
    use std::time::Duration;

    use tokio::time::{Instant, sleep, timeout};
    use verger::policy::{Intensity, Jitter};
    use verger::{Backoff, ChildSpec, Context, Exit, Readiness, Supervisor, worker_with};

    const MINUTE: Duration = Duration::from_secs(60);
    const HOUR: Duration = Duration::from_secs(3_600);

    fn child(life: Duration) -> ChildSpec {
        let run = async |_ctx: Context, life: Duration| -> Exit {
            sleep(life).await;
            Err("no luck".into())
        };
        let backoff = Backoff::exponential(Duration::from_millis(200), Duration::from_secs(30))
            .jitter(Jitter::None);
        worker_with("child", life, run).backoff(backoff)
    }

    /// After how long it is given up; `None`: not within four hours.
    async fn lasts(of_all: Option<Intensity>, child: ChildSpec) -> Option<Duration> {
        let app = Supervisor::builder("app").child(child);
        let app = match of_all {
            Some(intensity) => app.intensity(intensity),
            None => app.unlimited_restarts(),
        };
        let began = Instant::now();
        let ended = timeout(4 * HOUR, app.build().unwrap().run()).await;
        ended.is_ok().then(|| began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn limits_notice_different_failures() {
        let ms = |millis| Some(Duration::from_millis(millis));
        let default = Some(Intensity::sliding(5, MINUTE));
        let at_once = || child(Duration::ZERO);
        let slowly = || child(2 * MINUTE);
        let never_up = || child(Duration::ZERO).readiness(Readiness::Signal);

        assert_eq!(lasts(default, at_once()).await, ms(6_200));
        assert_eq!(lasts(default, slowly()).await, None);
        assert_eq!(lasts(default, never_up()).await, None);

        assert_eq!(lasts(None, at_once().own_restarts(20, HOUR)).await, ms(411_000));
        assert_eq!(lasts(None, slowly().own_restarts(20, HOUR)).await, ms(2_524_000));
        assert_eq!(lasts(None, never_up().own_restarts(20, HOUR)).await, ms(411_000));

        assert_eq!(lasts(None, at_once().consecutive_restarts(5)).await, ms(6_200));
        assert_eq!(lasts(None, slowly().consecutive_restarts(5)).await, None);
        assert_eq!(lasts(None, never_up().consecutive_restarts(5)).await, ms(6_200));

        assert_eq!(lasts(None, at_once().failing_for(5 * MINUTE)).await, ms(321_000));
        assert_eq!(lasts(None, slowly().failing_for(5 * MINUTE)).await, None);
        assert_eq!(lasts(None, never_up().failing_for(5 * MINUTE)).await, ms(321_000));
    }
}

mod fallback {
    use std::time::Duration;

    use verger::{Context, Exit, Supervisor, worker};

    /// Asks a service that is down.
    async fn recommend(_ctx: Context) -> Exit {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Err("connection refused".into())
    }

    async fn bestsellers(ctx: Context) {
        ctx.set_status("the list of last week");
        ctx.cancelled().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_fallback_starts_at_once() -> Result<(), Box<dyn std::error::Error>> {
        let offers = worker("offers", recommend).consecutive_restarts(3);
        let shop = Supervisor::builder("shop")
            .child(offers.fallback(worker("bestsellers", bestsellers)))
            .build()?
            .start()
            .await?;

        tokio::time::sleep(Duration::from_secs(10)).await;

        let offers = shop.which_child("offers").await?;
        assert_eq!(offers.status.as_deref(), Some("the list of last week"));
        assert_eq!(offers.incarnation, 5, "one, three restarts, and the fallback");
        shop.stop("the listing is over").await?;
        Ok(())
    }
}
