//! Figures of the chapters *Giving up*, *When not to use backoff* and *Checks that flap*.

mod answers {
    use std::time::Duration;

    use verger::policy::OnExhausted;
    use verger::{Backoff, Context, Exit, Strategy, Supervisor, SupervisorHandle, worker};

    async fn steady(ctx: Context) {
        ctx.cancelled().await;
    }

    async fn broken(_ctx: Context) -> Exit {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Err("no luck".into())
    }

    fn shop(then: OnExhausted) -> Supervisor {
        let offers = worker("offers", broken).backoff(Backoff::constant(Duration::from_secs(1)));
        let offers = offers.consecutive_restarts(0).on_exhausted(then);
        let shop = Supervisor::builder("shop").strategy(Strategy::RestForOne);
        let shop = shop.child(worker("db", steady)).child(offers).child(worker("web", steady));
        shop.build().unwrap()
    }

    /// The states of the three children.
    async fn states(shop: &SupervisorHandle) -> [String; 3] {
        let children = shop.children().await.unwrap();
        let states: Vec<_> = children.iter().map(|child| child.lifecycle.to_string()).collect();
        states.try_into().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn each_answer_has_its_own_end() -> Result<(), Box<dyn std::error::Error>> {
        let two_seconds = Duration::from_secs(2);

        let parked = shop(OnExhausted::Park).start().await?;
        tokio::time::sleep(two_seconds).await;
        assert_eq!(states(&parked).await, ["active", "errored", "stopped"]);
        parked.resume("offers").await?;
        assert_eq!(states(&parked).await, ["active", "active", "active"]);

        let given_up = shop(OnExhausted::StopChild).start().await?;
        tokio::time::sleep(two_seconds).await;
        assert_eq!(states(&given_up).await, ["active", "stopped", "stopped"]);
        assert_eq!(given_up.which_child("offers").await?.why, Some("given up"));

        let paused = shop(OnExhausted::Pause(Duration::from_secs(15))).start().await?;
        tokio::time::sleep(two_seconds).await;
        assert_eq!(states(&paused).await, ["active", "restarting", "stopped"]);
        tokio::time::sleep(Duration::from_millis(14_500)).await; // 15 s from the failure, and 0.5 s
        assert_eq!(states(&paused).await, ["active", "active", "active"]);

        let failed = shop(OnExhausted::Escalate).run().await.unwrap_err();
        assert_eq!(failed.to_string(), "`shop` gave up on `shop/offers`: failed: no luck");
        assert_eq!(failed.exit_code(), 1);

        let exited = shop(OnExhausted::Exit(17)).run().await.unwrap_err();
        assert_eq!(
            exited.to_string(),
            "`shop` ended the program with code 17 because of `shop/offers`: failed: no luck",
        );
        assert_eq!(exited.exit_code(), 17);
        assert!(shop(OnExhausted::Exit(0)).run().await.is_ok());
        parked.stop("the listing is over").await?;
        given_up.stop("the listing is over").await?;
        paused.stop("the listing is over").await?;
        Ok(())
    }
}

mod nested {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use tokio::time::{Instant, timeout};
    use verger::policy::Jitter;
    use verger::{Backoff, ChildSpec, Context, Exit, Supervisor, worker_with};

    async fn broken(_ctx: Context, runs: Arc<AtomicU32>) -> Exit {
        runs.fetch_add(1, Ordering::Relaxed);
        Err("no luck".into())
    }

    /// How often the child runs under so many supervisors, and after how many milliseconds the
    /// outermost gives up.
    async fn tried(levels: u32) -> Option<(u32, u128)> {
        let backoff = Backoff::exponential(Duration::from_millis(200), Duration::from_secs(30))
            .jitter(Jitter::None);
        let level = |child: ChildSpec| {
            let level = Supervisor::builder("level").child(child);
            level.defaults(|child| child.backoff(backoff.clone()))
        };
        let runs = Arc::default();
        let mut tree = level(worker_with("broken", Arc::clone(&runs), broken));
        for _ in 1..levels {
            tree = level(tree.into_child());
        }
        let began = Instant::now();
        let ended = timeout(Duration::from_secs(3_600), tree.build().unwrap().run()).await;
        ended.is_ok().then(|| (runs.load(Ordering::Relaxed), began.elapsed().as_millis()))
    }

    #[tokio::test(start_paused = true)]
    async fn seed0_51_backoffs_in_a_backoff_multiply_as_the_book_says() {
        const WHEN_NOT: &str = include_str!("../../../book/src/when-not.md");
        let (_, section) = WHEN_NOT.split_once("\n## Backoff in a backoff\n").unwrap();
        let rows = section.split("\n## ").next().unwrap().lines();
        // `| 2 | 52 | 684.6 s |`
        let numbers = |row: &str| -> Option<Vec<f64>> {
            let row = row.strip_prefix("| ")?.strip_suffix(" s |")?.replace(',', "");
            row.split(" | ").map(|number| number.parse().ok()).collect()
        };
        let listed: Vec<_> = rows.filter_map(numbers).collect();
        assert_eq!(listed, [[1.0, 13.0, 171.0], [2.0, 52.0, 684.6], [3.0, 208.0, 2_739.0]]);
        for (levels, row) in (1..).zip(listed) {
            let (runs, millis) = tried(levels).await.unwrap();
            let seconds = Duration::from_millis(millis.try_into().unwrap()).as_secs_f64();
            assert_eq!(row, [f64::from(levels), f64::from(runs), seconds]);
        }
    }
}

mod lost_work {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use tokio::sync::{Mutex, mpsc};
    use verger::{ChildSpec, Context, Exit, Supervisor, worker_with};

    #[derive(Clone)]
    struct Shop {
        orders: Arc<Mutex<mpsc::Receiver<u32>>>,
        placed: Arc<AtomicU32>,
    }

    /// The database is there from the fourth run on.
    async fn connect(ctx: &Context) -> Exit {
        if ctx.incarnation() < 4 { Err("connection refused".into()) } else { Ok(()) }
    }

    async fn takes_first(ctx: Context, shop: Shop) -> Exit {
        let mut orders = shop.orders.lock().await;
        while let Some(_order) = orders.recv().await {
            connect(&ctx).await?;
            shop.placed.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    async fn connects_first(ctx: Context, shop: Shop) -> Exit {
        connect(&ctx).await?;
        let mut orders = shop.orders.lock().await;
        while let Some(_order) = orders.recv().await {
            shop.placed.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// How many of ten orders are placed.
    async fn placed(child: impl FnOnce(Shop) -> ChildSpec) -> u32 {
        let (sender, orders) = mpsc::channel(10);
        for order in 1..=10 {
            sender.send(order).await.unwrap();
        }
        let shop = Shop { orders: Arc::new(Mutex::new(orders)), placed: Arc::default() };
        let app = Supervisor::builder("app").child(child(shop.clone())).build().unwrap();
        let app = app.start().await.unwrap();
        tokio::time::sleep(Duration::from_secs(60)).await;
        // The last child waits for an order that doesn't come, and is killed.
        let _ = app.stop("it has been seen").await;
        shop.placed.load(Ordering::Relaxed)
    }

    #[tokio::test(start_paused = true)]
    async fn seed0_51_work_that_is_taken_before_the_child_can_do_it_is_lost() {
        assert_eq!(placed(|shop| worker_with("orders", shop, takes_first)).await, 7);
        assert_eq!(placed(|shop| worker_with("orders", shop, connects_first)).await, 10);
    }
}

mod wake {
    use std::time::Duration;

    use tokio::sync::watch;
    use tokio::time::Instant;
    use verger::{Backoff, Context, Exit, Lifecycle, Readiness, Supervisor, worker_with};

    async fn poll(ctx: Context, database: watch::Receiver<bool>) -> Exit {
        if !*database.borrow() {
            return Err("connection refused".into());
        }
        ctx.ready();
        ctx.cancelled().await;
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn wake_ends_a_delay() -> Result<(), Box<dyn std::error::Error>> {
        let (database, is_there) = watch::channel(true);
        let slowly = Backoff::constant(Duration::from_secs(600));
        let poll = worker_with("poll", is_there, poll).readiness(Readiness::Signal).backoff(slowly);
        let app =
            Supervisor::builder("app").unlimited_restarts().child(poll).build()?.start().await?;

        database.send_replace(false);
        app.kill("poll").await?;
        tokio::time::sleep(Duration::from_secs(700)).await;
        let waits = app.which_child("poll").await?.next.unwrap();
        assert_eq!((waits.attempt, waits.remaining), (2, Duration::from_secs(500)));

        database.send_replace(true);
        let back = Instant::now();
        app.resume("poll").await?;
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(app.which_child("poll").await?.lifecycle, Lifecycle::Active);
        assert!(back.elapsed() < Duration::from_secs(1));
        app.stop("the listing is over").await?;
        Ok(())
    }
}

mod flapping {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use tokio::time::sleep;
    use verger::policy::Jitter;
    use verger::{Backoff, ChildSpec, Context, HealthCheck, Supervisor, worker};

    async fn db(ctx: Context) {
        ctx.cancelled().await;
    }

    /// How often it is started within an hour.
    async fn starts(db: ChildSpec) -> u32 {
        let app = Supervisor::builder("app").unlimited_restarts().child(db);
        let app = app.build().unwrap().start().await.unwrap();
        sleep(Duration::from_secs(3_600)).await;
        let db = app.which_child("db").await.unwrap();
        app.stop("the hour is over").await.unwrap();
        db.incarnation
    }

    /// Every other check fails.
    fn flaps() -> HealthCheck {
        let checks = Arc::new(AtomicU32::new(0));
        HealthCheck::new(move |_ctx| {
            let even = checks.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
            async move { if even { Err("no answer") } else { Ok(()) } }
        })
    }

    fn never_well() -> HealthCheck {
        HealthCheck::new(async |_ctx| Err::<(), _>("no answer"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_check_that_flaps_restarts_seldom() {
        let backoff = Backoff::exponential(Duration::from_millis(200), Duration::from_secs(30))
            .jitter(Jitter::None);
        let db = || worker("db", db).backoff(backoff.clone());

        // It reports.
        assert_eq!(starts(db().health_check(never_well())).await, 1);

        // It restarts.
        assert_eq!(starts(db().health_check(flaps().failures(1).restarts())).await, 76);
        assert_eq!(starts(db().health_check(flaps().restarts())).await, 1);

        // It is never well: the delay grows up to 30 s.
        assert_eq!(starts(db().health_check(never_well().restarts())).await, 64);
    }
}
