//! Tables of the chapters *Which failures count*, *Telling errors apart* and *Letting code decide*.

mod types {
    use std::time::Duration;

    use verger::policy::OnExhausted;
    use verger::{
        Context, Exit, HealthCheck, Readiness, RestartType, Shutdown, Supervisor, worker_with,
    };

    #[derive(Clone, Copy)]
    enum End {
        Clean,
        Error,
        Violent,
        TooLate,
        NoSign,
    }

    async fn child(ctx: Context, end: End) -> Exit {
        if let End::TooLate = end {
            std::future::pending::<()>().await;
        }
        ctx.ready();
        tokio::time::sleep(Duration::from_secs(1)).await;
        match end {
            End::Clean => Ok(()),
            End::NoSign => std::future::pending().await,
            End::Violent => panic!("as in the table"),
            End::Error | End::TooLate => Err("no luck".into()),
        }
    }

    /// What becomes of the first run.
    async fn after(end: End, restart: RestartType) -> &'static str {
        let child = worker_with("child", end, child)
            .restart(restart)
            .readiness(Readiness::Signal)
            .activation_timeout(Duration::from_secs(1))
            .shutdown(Shutdown::BrutalKill)
            // What would be restarted is given up instead.
            .consecutive_restarts(0)
            .on_exhausted(OnExhausted::StopChild);
        let check = HealthCheck::new(async |_| Err::<(), _>("no answer")).failures(1).restarts();
        let child = match end {
            End::NoSign => child.health_check(check.every(Duration::from_secs(1))),
            _ => child,
        };
        let app = Supervisor::builder("app").child(child).build().unwrap().start().await;
        let Ok(app) = app else { return "fail" };
        tokio::time::sleep(Duration::from_secs(3)).await;
        let why = match app.which_child("child").await {
            Ok(child) => child.why,
            Err(verger::ControlError::Ended { .. }) => return "fail",
            Err(_) => return "forgotten",
        };
        let _ = app.stop("it has been seen").await;
        match why {
            Some("given up") => "restart",
            _ => "–",
        }
    }

    #[tokio::test(start_paused = true)]
    async fn each_restart_type_is_a_row() {
        use RestartType::*;
        let table = [
            // clean, an error, violent, too late, no sign of life
            (Permanent, ["restart", "restart", "restart", "restart", "restart"]),
            (Transient, ["–", "restart", "restart", "restart", "restart"]),
            (Temporary, ["forgotten", "forgotten", "forgotten", "forgotten", "forgotten"]),
            (OnStop, ["restart", "fail", "fail", "fail", "fail"]),
            (OnSuccess, ["restart", "–", "–", "–", "–"]),
            (OnAbnormal, ["–", "–", "restart", "restart", "restart"]),
            (OnAbort, ["–", "–", "restart", "–", "–"]),
            (OnWatchdog, ["–", "–", "–", "–", "restart"]),
        ];
        for (restart, row) in table {
            let ends = [End::Clean, End::Error, End::Violent, End::TooLate, End::NoSign];
            for (end, expected) in ends.into_iter().zip(row) {
                assert_eq!(after(end, restart).await, expected, "{restart}");
            }
        }
    }
}

mod causes {
    use std::io::{self, ErrorKind};
    use std::time::Duration;

    use anyhow::Context as _;
    use verger::{Context, ExitError, Lifecycle, Supervisor, worker_with};

    async fn import(_ctx: Context, error: fn() -> ExitError) -> Result<(), ExitError> {
        Err(error())
    }

    async fn is_left(error: fn() -> ExitError) -> bool {
        let import = worker_with("import", error, import)
            .leave_down_if(|error: &io::Error| error.kind() == ErrorKind::NotFound);
        let app = Supervisor::builder("app").child(import).build().unwrap().start().await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
        let import = app.which_child("import").await.unwrap();
        app.stop("it has been seen").await.unwrap();
        import.lifecycle == Lifecycle::Errored
    }

    fn not_found() -> io::Error {
        ErrorKind::NotFound.into()
    }

    #[tokio::test(start_paused = true)]
    async fn causes_are_asked_by_type() {
        assert!(is_left(|| not_found().into()).await);
        let wrapped = || Err::<(), _>(not_found()).context("no list of prices").unwrap_err().into();
        assert!(is_left(wrapped).await);
        let converted = || anyhow::Error::from(not_found()).into();
        assert!(!is_left(converted).await, "anyhow hides the type of the outermost error");
        assert!(!is_left(|| not_found().to_string().into()).await);
    }
}

mod order {
    use std::io::{self, ErrorKind};
    use std::time::Duration;

    use verger::policy::OnExit;
    use verger::{Context, ExitKind, RestartType, Supervisor, worker_with};

    async fn import(_ctx: Context, kind: ErrorKind) -> Result<(), io::Error> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Err(kind.into())
    }

    async fn state_after(kind: ErrorKind) -> String {
        let import = worker_with("import", kind, import)
            .restart(RestartType::Transient) // 5
            .on_exit(ExitKind::Failed, OnExit::Leave) // 3
            .restart_if(|error: &io::Error| error.kind() != ErrorKind::Other) // 2
            .leave_down_if(|error: &io::Error| error.kind() == ErrorKind::NotFound); // 1
        let app = Supervisor::builder("app").child(import).build().unwrap().start().await.unwrap();
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        let import = app.which_child("import").await.unwrap();
        app.stop("it has been seen").await.unwrap();
        import.lifecycle.to_string()
    }

    #[tokio::test(start_paused = true)]
    async fn exceptions_decide_in_order() {
        assert_eq!(state_after(ErrorKind::NotFound).await, "errored", "1 before 2");
        assert_eq!(state_after(ErrorKind::TimedOut).await, "restarting", "2 before 3");
        assert_eq!(state_after(ErrorKind::Other).await, "errored", "3 before 5");
    }
}

mod activation_only {
    use std::time::Duration;

    use verger::policy::Trigger;
    use verger::{Context, Exit, Lifecycle, Readiness, RestartType, Supervisor, worker};

    /// Comes up the third time, and fails a second later.
    async fn plugin(ctx: Context) -> Exit {
        if ctx.incarnation() < 3 {
            return Err("a dependency is missing".into());
        }
        ctx.ready();
        tokio::time::sleep(Duration::from_secs(1)).await;
        Err("out of memory".into())
    }

    #[tokio::test(start_paused = true)]
    async fn activation_only_leaves_an_active_child() -> Result<(), Box<dyn std::error::Error>> {
        let until_up = Trigger::from(RestartType::Transient).activation_only();
        let plugin = worker("plugin", plugin).readiness(Readiness::Signal).restart(until_up);
        let app = Supervisor::builder("app").child(plugin).build()?.start().await?;

        tokio::time::sleep(Duration::from_secs(10)).await;

        let plugin = app.which_child("plugin").await?;
        assert_eq!((plugin.lifecycle, plugin.incarnation), (Lifecycle::Errored, 3));
        app.stop("the listing is over").await?;
        Ok(())
    }
}

mod presets {
    use verger::policy::{OnExit, Preset, Trigger};
    use verger::{ExitKind, RestartType};

    #[test]
    fn presets_have_these_triggers() {
        let transient = || Trigger::from(RestartType::Transient);
        for preset in Preset::all() {
            let expected = match preset.name() {
                "pekko_on_failure" => Trigger::failure()
                    .on(ExitKind::ActivationFailed, OnExit::EndSupervisor)
                    .on(ExitKind::Aborted, OnExit::EndSupervisor),
                "pekko_typed" | "systemd" => transient(),
                "elfo" => RestartType::Temporary.into(),
                "signalpy" => {
                    transient().activation_only().on(ExitKind::Escalated, OnExit::Restart)
                }
                _ => Trigger::any(),
            };
            assert_eq!(*preset.trigger(), expected, "{}", preset.name());
        }
    }
}

mod own_policy {
    use std::time::Duration;

    use verger::policy::RestartPolicy;
    use verger::{Context, Exit, Lifecycle, RestartType, Supervisor, worker};

    async fn migrate(ctx: Context) -> Exit {
        if ctx.incarnation() == 1 {
            return Err("the database is locked".into()); // nothing has been done yet
        }
        ctx.set_restart_policy(Some(RestartPolicy::new().restart(RestartType::Temporary)))?;
        Err("half of it is done".into()) // and must not be done twice
    }

    #[tokio::test(start_paused = true)]
    async fn a_child_can_decide_about_its_own_end() -> Result<(), Box<dyn std::error::Error>> {
        let app =
            Supervisor::builder("app").child(worker("migrate", migrate)).build()?.start().await?;

        tokio::time::sleep(Duration::from_secs(10)).await;

        let migrate = app.which_child("migrate").await?;
        assert_eq!((migrate.lifecycle, migrate.incarnation), (Lifecycle::Errored, 2));
        app.stop("the listing is over").await?;
        Ok(())
    }
}
