//! Values that children provide to each other.

use std::sync::{Arc, Mutex, mpsc as std_mpsc};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tracing::level_filters::LevelFilter;
use verger::service::{Service, ServiceError};
use verger::{
    Backoff, ChildSpec, Context, ControlError, DynamicSupervisor, Exit, ExitReason, Readiness,
    RestartType, Strategy, Supervisor, SupervisorHandle, once, worker,
};

use crate::common::settle;
use crate::log::Log;

/// What the children provide: the path of the provider, and its incarnation.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pool(String);

fn pool(ctx: &Context) -> Pool {
    Pool(format!("{} {}", ctx.path(), ctx.incarnation()))
}

/// A child that provides a pool, and is restarted after a second.
fn provider(name: &str) -> ChildSpec {
    let run = async |ctx: Context| -> Exit {
        ctx.provide(pool(&ctx))?;
        ctx.cancelled().await;
        Ok(())
    };
    worker(name, run).backoff(Backoff::constant(Duration::from_secs(1)))
}

type Journal = Arc<Mutex<Vec<String>>>;

fn taken(journal: &Journal) -> Vec<String> {
    std::mem::take(&mut journal.lock().unwrap())
}

/// A child that notes the pool that it gets.
fn user(name: &str, journal: &Journal) -> ChildSpec {
    let journal = Arc::clone(journal);
    worker(name, move |ctx: Context| {
        let journal = Arc::clone(&journal);
        async move {
            let Pool(found) = ctx.service().await?;
            journal.lock().unwrap().push(format!("{}: {found}", ctx.path().name()));
            ctx.cancelled().await;
            Exit::Ok(())
        }
    })
}

async fn start(app: verger::SupervisorBuilder) -> SupervisorHandle {
    let app = app.build().unwrap().start().await.unwrap();
    settle().await;
    app
}

#[tokio::test(start_paused = true)]
async fn a_child_waits_for_a_value_however_late_it_is_provided() {
    let journal = Journal::default();
    let late = worker("late", async |ctx: Context| -> Exit {
        sleep(Duration::from_secs(5)).await;
        ctx.provide(pool(&ctx))?;
        ctx.cancelled().await;
        Ok(())
    });
    let app = start(Supervisor::builder("app").child(user("api", &journal)).child(late)).await;
    assert_eq!(taken(&journal), [""; 0]);
    sleep(Duration::from_secs(5)).await;
    settle().await;
    assert_eq!(taken(&journal), ["api: app/late 1"]);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_watching_child_learns_that_its_provider_was_restarted() {
    let (note, mut notes) = mpsc::unbounded_channel();
    let watching = worker("api", move |ctx: Context| {
        let note = note.clone();
        async move {
            let mut pool: Service<Pool> = ctx.watch_service();
            note.send((Instant::now(), Some(pool.get().await?))).unwrap();
            loop {
                let changed = pool.changed().await?;
                note.send((Instant::now(), changed)).unwrap();
            }
            #[expect(unreachable_code, reason = "it names the type")]
            Exit::Ok(())
        }
    });
    let app = start(Supervisor::builder("app").child(provider("db")).child(watching)).await;
    let began = Instant::now();
    app.kill("db").await.unwrap();
    sleep(Duration::from_secs(2)).await;
    app.restart("db").await.unwrap();
    settle().await;

    let mut seen = Vec::new();
    while let Ok((at, pool)) = notes.try_recv() {
        seen.push((at.saturating_duration_since(began).as_secs(), pool.map(|Pool(pool)| pool)));
    }
    let db = |number| Some(format!("app/db {number}"));
    assert_eq!(seen, [(0, db(1)), (0, None), (1, db(2)), (2, None), (2, db(3))]);
    assert_eq!(app.which_child("api").await.unwrap().incarnation, 1, "it was not restarted");
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_restarted_with_its_provider_gets_the_new_value() {
    let journal = Journal::default();
    let app = Supervisor::builder("app")
        .strategy(Strategy::RestForOne)
        .child(provider("db"))
        .child(user("api", &journal).requires("db"));
    let app = start(app).await;
    assert_eq!(taken(&journal), ["api: app/db 1"]);
    app.kill("db").await.unwrap();
    sleep(Duration::from_secs(2)).await;
    assert_eq!(taken(&journal), ["api: app/db 2"]);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_value_is_found_in_the_nearest_scope_that_has_one() {
    let journal = Journal::default();
    let inner = |name: &str| Supervisor::builder(name).child(user(&format!("of-{name}"), &journal));
    let app = Supervisor::builder("app")
        .child(provider("db"))
        .child(inner("near").child(provider("cache")))
        .child(inner("far"))
        .child(user("beside", &journal));
    let app = start(app).await;
    let mut found = taken(&journal);
    found.sort();
    // `of-near` was first: its sibling was not there yet.
    assert_eq!(found, ["beside: app/db 1", "of-far: app/db 1", "of-near: app/db 1"]);

    app.restart("near/of-near").await.unwrap();
    settle().await;
    assert_eq!(taken(&journal), ["of-near: app/near/cache 1"]);
    app.stop_child("near/cache").await.unwrap();
    app.restart("near/of-near").await.unwrap();
    settle().await;
    assert_eq!(taken(&journal), ["of-near: app/db 1"]);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_finds_what_is_provided_below_a_sibling_that_it_requires() {
    let journal = Journal::default();
    let storage = Supervisor::builder("storage").child(provider("db"));
    let api = Supervisor::builder("api").child(user("http", &journal));
    let app = Supervisor::builder("app")
        .child(storage)
        .child(api.into_child().requires("storage"))
        .child(user("jobs", &journal).requires("storage"))
        .child(user("alone", &journal));
    let app = start(app).await;
    app.start_child(user("added", &journal).requires("storage")).await.unwrap();
    settle().await;
    assert_eq!(
        taken(&journal),
        ["http: app/storage/db 1", "jobs: app/storage/db 1", "added: app/storage/db 1"]
    );

    // The whole subtree is restarted, and a watch goes on.
    app.restart("storage").await.unwrap();
    app.restart("jobs").await.unwrap();
    settle().await;
    assert_eq!(taken(&journal), ["jobs: app/storage/db 1"], "of the next supervisor");
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn values_of_one_type_are_told_apart_by_name() {
    let both = worker("both", async |ctx: Context| -> Exit {
        ctx.provide(Pool("unnamed".into()))?;
        ctx.provide_named("replica", Pool("first".into()))?;
        ctx.provide_named("replica", Pool("second".into()))?;
        ctx.cancelled().await;
        Ok(())
    });
    let (pass, mut passed) = mpsc::unbounded_channel();
    let user = worker("user", move |ctx: Context| {
        let pass = pass.clone();
        async move {
            let unnamed = ctx.try_service::<Pool>();
            let replica = ctx.service_named::<Pool>("replica").await?;
            let other = ctx.try_service_named::<Pool>("other");
            pass.send((unnamed, replica, other, ctx.try_service::<String>())).unwrap();
            ctx.cancelled().await;
            Exit::Ok(())
        }
    });
    let app = start(Supervisor::builder("app").child(both).child(user)).await;
    let pool = |text: &str| Pool(text.into());
    let seen = passed.recv().await.unwrap();
    assert_eq!(seen, (Some(pool("unnamed")), pool("second"), None, None));
    let listed: Vec<_> = app.services().into_iter().map(|it| (it.provider, it.name)).collect();
    let path = app.which_child("both").await.unwrap().path;
    assert_eq!(listed, [(path.clone(), None), (path, Some("replica".to_owned()))]);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_second_provider_is_an_error_until_the_first_has_left() {
    let app = start(Supervisor::builder("app").child(provider("first"))).await;
    let second = provider("second").restart(RestartType::Temporary);
    let mut events = app.events();
    app.start_child(second.clone()).await.unwrap();
    settle().await;
    let mut reasons = Vec::new();
    while let Some(event) = events.try_next() {
        if let verger::status::EventKind::Moved { reason: Some(reason), .. } = event.kind {
            let ExitReason::Failed(error) = &*reason else { panic!("{reason}") };
            reasons.push(error.downcast_ref::<ServiceError>().unwrap().to_string());
        }
    }
    let text = "`app/second` can't provide `finding::services::Pool`: `app/first` does already; give each a \
                name of its own with `provide_named`";
    assert_eq!(reasons, [text]);
    assert_eq!(app.try_service::<Pool>(), Some(Pool("app/first 1".into())));

    app.stop_child("first").await.unwrap();
    app.start_child(second).await.unwrap();
    settle().await;
    assert_eq!(app.try_service::<Pool>(), Some(Pool("app/second 1".into())));
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_value_is_withdrawn_as_soon_as_its_child_is_cancelled() {
    let slow = worker("slow", async |ctx: Context| -> Exit {
        ctx.provide(pool(&ctx))?;
        ctx.cancelled().await;
        ctx.provide(pool(&ctx))?;
        sleep(Duration::from_secs(2)).await;
        Ok(())
    });
    let app = start(Supervisor::builder("app").child(slow)).await;
    assert_eq!(app.try_service::<Pool>(), Some(Pool("app/slow 1".into())));
    let stopping = {
        let app = app.clone();
        tokio::spawn(async move { app.stop_child("slow").await })
    };
    sleep(Duration::from_secs(1)).await;
    assert_eq!((app.try_service::<Pool>(), app.services()), (None, Vec::new()));
    stopping.await.unwrap().unwrap();
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_withdraws_its_own_values() {
    let (pass, mut passed) = mpsc::unbounded_channel();
    let child = worker("a", move |ctx: Context| {
        let pass = pass.clone();
        async move {
            ctx.provide(Pool("a".into()))?;
            ctx.provide_named("b", Pool("b".into()))?;
            ctx.withdraw::<Pool>();
            ctx.withdraw::<String>();
            pass.send((ctx.try_service::<Pool>(), ctx.try_service_named::<Pool>("b"))).unwrap();
            ctx.withdraw_named::<Pool>("b");
            pass.send((ctx.try_service::<Pool>(), ctx.try_service_named::<Pool>("b"))).unwrap();
            ctx.provide(Pool("again".into()))?;
            ctx.cancelled().await;
            Exit::Ok(())
        }
    });
    let app = start(Supervisor::builder("app").child(child)).await;
    assert_eq!(passed.recv().await.unwrap(), (None, Some(Pool("b".into()))));
    assert_eq!(passed.recv().await.unwrap(), (None, None));
    assert_eq!(app.try_service::<Pool>(), Some(Pool("again".into())));
    app.stop("enough").await.unwrap();
    assert_eq!(app.try_service::<Pool>(), None);
}

#[tokio::test(start_paused = true)]
async fn the_contexts_of_ended_incarnations_provide_and_find_nothing() {
    let (pass, mut passed) = mpsc::unbounded_channel();
    let child = once("a", async move |ctx: Context| drop(pass.send(ctx)));
    let app = start(Supervisor::builder("app").child(provider("db")).child(child)).await;
    let stale: Context = passed.recv().await.unwrap();
    stale.provide("stale").unwrap();
    assert_eq!(app.try_service::<&str>(), None);
    assert_eq!(stale.try_service::<Pool>(), None);
    assert_eq!(stale.watch_service::<Pool>().try_get(), None);
    let ended = stale.service::<Pool>().await.unwrap_err();
    assert_eq!(ended.to_string(), "shut down");
    assert!(stale.lock("a").await.is_err());
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_with_the_stop_of_the_child_and_is_a_clean_exit() {
    let journal = Journal::default();
    let api = user("api", &journal).restart(RestartType::Transient);
    let app = start(Supervisor::builder("app").child(api)).await;
    let mut events = app.events();
    let began = Instant::now();
    app.stop("enough").await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
    let mut reasons = Vec::new();
    while let Some(event) = events.next().await {
        if let verger::status::EventKind::Moved { reason: Some(reason), .. } = event.kind {
            reasons.push(reason.to_string());
        }
    }
    assert_eq!(reasons, ["shut down"]);
}

/// A child that serves requests while the database is away doesn't require it, and finds its pool further up.
#[tokio::test(start_paused = true)]
async fn a_value_is_provided_to_any_supervisor_above_and_withdrawn_with_its_child() {
    let run = async |ctx: Context| -> Exit {
        ctx.provide_to("app", pool(&ctx))?;
        ctx.provide_to("app/storage", 7_u8)?;
        if ctx.incarnation() == 2 {
            ctx.withdraw::<Pool>();
        }
        ctx.cancelled().await;
        Ok(())
    };
    let storage = Supervisor::builder("storage").child(worker("db", run));
    let app = start(Supervisor::builder("app").child(storage)).await;
    assert_eq!(app.try_service::<Pool>(), Some(Pool("app/storage/db 1".to_owned())));
    assert_eq!(app.try_service::<u8>(), None, "it is the scope of `storage`");
    assert_eq!(app.supervisor("storage").await.unwrap().try_service::<u8>(), Some(7));
    let scopes: Vec<_> = app.services().into_iter().map(|it| it.scope.to_string()).collect();
    assert_eq!(scopes, ["app", "app/storage"]);

    app.stop_child("storage/db").await.unwrap();
    assert_eq!(app.services(), []);
    app.resume("storage/db").await.unwrap();
    settle().await;
    assert_eq!(app.try_service::<Pool>(), None, "it was withdrawn");
    app.stop("the test is over").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_below_a_dynamic_supervisor_names_its_ancestors_with_or_without_serial_numbers() {
    let run = async |ctx: Context| -> Exit {
        ctx.provide_to("app/sessions/session", 1_u8)?;
        ctx.provide_to(ctx.path().parent().unwrap().as_str(), 2_u16)?;
        ctx.cancelled().await;
        Ok(())
    };
    let app = start(Supervisor::builder("app").child(DynamicSupervisor::builder("sessions"))).await;
    let sessions = app.supervisor("sessions").await.unwrap();
    let session = Supervisor::builder("session").child(worker("reader", run));
    sessions.start_child(session).await.unwrap();
    settle().await;
    let scopes: Vec<_> = app.services().into_iter().map(|it| it.scope.to_string()).collect();
    assert_eq!(scopes, ["app/sessions/session#1"; 2]);
    app.stop("the test is over").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_value_for_a_supervisor_that_is_not_above_is_refused_with_those_that_are() {
    let run = async |ctx: Context| -> Exit {
        let mut refused = Vec::new();
        for wrong in ["app/api", "", "app/storage/db", "ap", "app/"] {
            let error = ctx.provide_to(wrong, 1_u8).unwrap_err();
            assert!(
                matches!(&error, ServiceError::NotAnAncestor { requested, .. } if requested == wrong)
            );
            refused.push(error.to_string());
        }
        ctx.set_status(refused[0].clone());
        ctx.cancelled().await;
        Ok(())
    };
    let storage = Supervisor::builder("storage").child(worker("db", run));
    let app = start(Supervisor::builder("app").child(storage)).await;
    let status = app.which_child("storage/db").await.unwrap().status.unwrap();
    let expected = "`app/storage/db` can't provide `u8` to `app/api`, which is no supervisor above it; \
                    write `app` or `app/storage`";
    assert_eq!(status, expected);
    app.stop("the test is over").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_service_out_of_scope_is_named_immediately_and_a_long_wait_is_logged() {
    let log = Log::at(LevelFilter::WARN);
    let journal = Journal::default();
    let storage = Supervisor::builder("storage").child(provider("db"));
    let app = Supervisor::builder("app").child(storage).child(user("api", &journal));
    let app = start(app).await;
    let hint = "hint=\"one is provided to the children of `app/storage`, and not above; require `storage`\"";
    let immediately = format!(
        "WARN verger::lifecycle: the service is out of scope child=app/api \
         service=\"finding::services::Pool\" {hint}"
    );
    assert_eq!(log.lines(), [immediately]);
    let api = app.which_child("api").await.unwrap();
    assert_eq!(api.awaits.as_deref(), Some("the service `finding::services::Pool`"));
    let text = app.status().await.unwrap().to_string();
    assert!(text.contains("waits for the service"), "{text}");
    sleep(Duration::from_secs(9)).await;
    assert_eq!(log.lines(), [""; 0]);
    sleep(Duration::from_secs(32)).await;
    let line = |waited: &str| {
        format!(
            "WARN verger::lifecycle: waiting for a service child=app/api \
             service=\"finding::services::Pool\" waited={waited} {hint}"
        )
    };
    assert_eq!(log.lines(), [line("10s"), line("40s")]);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_provided_out_of_scope_during_a_wait_is_named_then() {
    let log = Log::at(LevelFilter::WARN);
    let journal = Journal::default();
    let late = worker("db", async |ctx: Context| -> Exit {
        sleep(Duration::from_secs(1)).await;
        ctx.provide(pool(&ctx))?;
        ctx.cancelled().await;
        Ok(())
    });
    let storage = Supervisor::builder("storage").child(late);
    let app = Supervisor::builder("app").child(storage).child(user("api", &journal));
    let app = start(app).await;
    assert_eq!(log.lines(), [""; 0]);
    sleep(Duration::from_secs(2)).await;
    let lines = log.lines();
    assert!(matches!(&*lines, [line] if line.contains("out of scope child=app/api")), "{lines:?}");
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_lock_is_shown_immediately_and_logged_with_the_holder() {
    let log = Log::at(LevelFilter::WARN);
    let holds = worker("holds", async |ctx: Context| -> Exit {
        let _lock = ctx.lock("reindex").await?;
        ctx.cancelled().await;
        Ok(())
    });
    let waits = worker("waits", async |ctx: Context| -> Exit {
        let _lock = ctx.lock("reindex").await?;
        ctx.cancelled().await;
        Ok(())
    });
    let app = start(Supervisor::builder("app").child(holds).child(waits)).await;
    settle().await;
    let awaits = async |child| app.which_child(child).await.unwrap().awaits;
    assert_eq!(awaits("waits").await.as_deref(), Some("the lock `reindex`"));
    assert_eq!(awaits("holds").await, None);
    sleep(Duration::from_secs(9)).await;
    assert_eq!(log.lines(), [""; 0]);
    sleep(Duration::from_secs(32)).await;
    let line = |waited: &str| {
        format!(
            "WARN verger::lifecycle: waiting for a lock child=app/waits lock=\"reindex\" \
             holder=app/holds waited={waited}"
        )
    };
    assert_eq!(log.lines(), [line("10s"), line("40s")]);
    app.stop_child("holds").await.unwrap();
    settle().await;
    assert_eq!(awaits("waits").await, None);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_sibling_that_starts_later_is_logged_with_the_remedy() {
    let log = Log::at(LevelFilter::WARN);
    let waiting = worker("api", async |ctx: Context| -> Exit {
        let Pool(_) = ctx.service().await?;
        ctx.ready();
        ctx.cancelled().await;
        Ok(())
    });
    let inner = Supervisor::builder("inner").child(waiting.readiness(Readiness::Signal));
    let app = Supervisor::builder("app").child(inner).child(provider("db")).build().unwrap();
    let running = tokio::spawn(app.start());
    sleep(Duration::from_secs(11)).await;
    let hint = "hint=\"`app/inner` isn't ready, so `app/db` is not started yet; declare the provider before \
                `app/inner`, or don't wait before `app/inner` is ready\"";
    let lines = log.lines();
    assert!(lines.iter().any(|line| line.contains(hint)), "{lines:#?}");
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn code_outside_of_the_tree_waits_for_a_service_and_learns_of_the_end() {
    let app = start(Supervisor::builder("app").child(provider("db").stop_order(1))).await;
    assert_eq!(app.service::<Pool>().await.unwrap(), Pool("app/db 1".into()));
    let waiting = {
        let app = app.clone();
        tokio::spawn(async move { app.service::<String>().await })
    };
    settle().await;
    app.stop("enough").await.unwrap();
    let ended = waiting.await.unwrap().unwrap_err();
    assert!(matches!(ended, ControlError::Ended { .. }), "{ended}");
    assert!(matches!(app.service::<Pool>().await.unwrap_err(), ControlError::Ended { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_wait_goes_on_while_the_provider_is_parked() {
    let journal = Journal::default();
    let failing = worker("db", async |ctx: Context| -> Exit {
        if ctx.incarnation() < 2 {
            return Err("no".into());
        }
        ctx.provide(pool(&ctx))?;
        ctx.cancelled().await;
        Ok(())
    });
    let failing = failing.consecutive_restarts(0).on_exhausted(verger::policy::OnExhausted::Park);
    let app = start(Supervisor::builder("app").child(failing).child(user("api", &journal))).await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(taken(&journal), [""; 0]);
    app.resume("db").await.unwrap();
    settle().await;
    assert_eq!(taken(&journal), ["api: app/db 2"]);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_children_of_a_child_find_what_it_and_its_siblings_provide() {
    let owner = worker("owner", async |ctx: Context| -> Exit {
        ctx.provide_named("own", pool(&ctx))?;
        ctx.children()
            .start_once("a", async |ctx: Context| -> Exit {
                let Pool(own) = ctx.service_named("own").await?;
                let Pool(db) = ctx.service().await?;
                ctx.set_status(format!("{own}, {db}"));
                ctx.cancelled().await;
                Ok(())
            })
            .await?;
        ctx.cancelled().await;
        Ok(())
    });
    let app = start(Supervisor::builder("app").child(provider("db")).child(owner)).await;
    let status = app.which_child("owner/a#1").await.unwrap().status;
    assert_eq!(status.as_deref(), Some("app/owner 1, app/db 1"));
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn otp_19_a_name_taken_by_an_outsider_fails_the_start_with_the_outsider_and_adds_no_child() {
    let conns = DynamicSupervisor::builder("conns");
    let app = start(Supervisor::builder("app").child(provider("outsider")).child(conns)).await;
    let named = provider("named").readiness(Readiness::Signal);

    let refused = app.start_child(named).await.unwrap_err();
    let ControlError::ActivationFailed { reason: ExitReason::ActivationFailed(error), .. } =
        &refused
    else {
        panic!("{refused:?}");
    };
    let Some(ServiceError::AlreadyProvided { provider, .. }) = error.downcast_ref() else {
        panic!("{error}");
    };
    assert_eq!(provider.as_str(), "app/outsider");
    let outsider = app.which_child(provider.name()).await.unwrap();
    assert_eq!(outsider.incarnation, 1);
    let children = app.children().await.unwrap();
    let names: Vec<_> = children.iter().map(|child| child.path.name()).collect();
    assert_eq!(names, ["outsider", "conns"]);
    app.stop("enough").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn otp_104_a_stalled_cleanup_of_a_dead_owner_blocks_no_other_owner() {
    /// A value whose drop waits for the test.
    struct Stalls(std_mpsc::Sender<()>, std_mpsc::Receiver<()>);
    impl Drop for Stalls {
        fn drop(&mut self) {
            self.0.send(()).unwrap();
            self.1.recv().unwrap();
        }
    }
    #[derive(Clone)]
    #[expect(dead_code, reason = "it is dropped")]
    struct Shared(Arc<Mutex<Stalls>>);

    let (stalled, is_stalled) = std_mpsc::channel();
    let (go_on, goes_on) = std_mpsc::channel();
    let stalls = Shared(Arc::new(Mutex::new(Stalls(stalled, goes_on))));
    let (own, mut owned) = mpsc::unbounded_channel();
    let owner = once("owner", async move |ctx: Context| -> Exit {
        ctx.provide(stalls)?;
        ctx.provide(pool(&ctx))?;
        own.send(()).unwrap();
        ctx.cancelled().await;
        Ok(())
    });
    let app = Supervisor::builder("app").child(owner).build().unwrap().start().await.unwrap();
    owned.recv().await.unwrap();
    assert_eq!(app.try_service::<Pool>(), Some(Pool("app/owner 1".into())));

    app.kill("owner").await.unwrap();
    tokio::task::block_in_place(|| is_stalled.recv().unwrap());
    // The drop of the first value blocks, so the second one is still in the table.
    let (own, mut owned) = mpsc::unbounded_channel();
    app.start_once("next", async move |ctx: Context| -> Exit {
        own.send(ctx.provide(pool(&ctx))).unwrap();
        ctx.cancelled().await;
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(owned.recv().await, Some(Ok(())));
    let providers: Vec<_> = app.services().into_iter().map(|it| it.provider.to_string()).collect();
    assert_eq!(providers, ["app/next"]);
    assert_eq!(app.try_service::<Pool>(), Some(Pool("app/next 1".into())));

    go_on.send(()).unwrap();
    app.stop_child("next").await.unwrap();
    app.stop("enough").await.unwrap();
    assert_eq!(app.try_service::<Pool>(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_exit_of_a_child_is_known_only_when_its_values_are_withdrawn() {
    #[derive(Clone)]
    #[expect(dead_code, reason = "it is dropped")]
    struct Stalling(Arc<Mutex<Stall>>);

    struct Stall(mpsc::UnboundedSender<()>, std_mpsc::Receiver<()>);
    impl Drop for Stall {
        fn drop(&mut self) {
            self.0.send(()).unwrap();
            _ = self.1.recv();
        }
    }

    let (stalled, mut is_stalled) = mpsc::unbounded_channel();
    let (go_on, goes_on) = std_mpsc::channel();
    let value = Stalling(Arc::new(Mutex::new(Stall(stalled, goes_on))));
    let app = Supervisor::builder("app").build().unwrap().start().await.unwrap();
    app.start_once("a", async move |ctx: Context| -> Exit {
        ctx.provide(value)?;
        Err("over".into())
    })
    .await
    .unwrap();
    is_stalled.recv().await.unwrap();
    // The call is answered behind everything that was reported before.
    assert_eq!(app.which_child("a").await.unwrap().incarnation, 1);
    assert_eq!(app.services(), []);
    let mut events = app.events();
    go_on.send(()).unwrap();
    let removed = |kind| matches!(kind, verger::status::EventKind::Removed);
    while !removed(events.next().await.unwrap().kind) {}
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn otp_105_nothing_is_left_of_an_owner_that_has_died() {
    let app = start(Supervisor::builder("app")).await;
    for number in 0..100 {
        app.start_once(format!("a{number}"), async move |ctx: Context| -> Exit {
            ctx.provide_named(&number.to_string(), pool(&ctx))?;
            ctx.cancelled().await;
            Ok(())
        })
        .await
        .unwrap();
    }
    settle().await;
    assert_eq!(app.services().len(), 100);
    for number in 0..100 {
        app.kill(&format!("a{number}")).await.unwrap();
    }
    settle().await;
    assert_eq!(app.services(), []);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn otp_107_a_lock_goes_to_the_next_waiter_when_its_holder_panics_or_is_killed() {
    let (note, mut notes) = mpsc::unbounded_channel();
    let locker = move |name: &'static str| {
        let note = note.clone();
        once(name, async move |ctx: Context| -> Exit {
            let lock = ctx.lock("jobs").await?;
            note.send(ctx.path().name().to_owned()).unwrap();
            match name {
                "panics" => {
                    sleep(Duration::from_secs(1)).await;
                    panic!("with the lock");
                }
                _ => ctx.cancelled().await,
            }
            drop(lock);
            Ok(())
        })
    };
    let app = Supervisor::builder("app");
    let names = ["panics", "killed", "dies", "last", "after"];
    let app = start(names.into_iter().fold(app, |app, name| app.child(locker(name)))).await;
    assert_eq!(notes.try_recv().unwrap(), "panics");
    assert!(notes.try_recv().is_err());
    app.kill("dies").await.unwrap();
    sleep(Duration::from_secs(1)).await;
    settle().await;
    assert_eq!(notes.try_recv().unwrap(), "killed");
    assert!(notes.try_recv().is_err());
    app.kill("killed").await.unwrap();
    settle().await;
    assert_eq!(notes.try_recv().unwrap(), "last", "the waiter that died was skipped");
    app.stop_child("last").await.unwrap();
    settle().await;
    assert_eq!(notes.try_recv().unwrap(), "after");
    app.stop("enough").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_value_of_an_incarnation_is_found_once_its_exit_is_known() {
    const RESTARTS: u32 = 2_000;
    let child = worker("a", async |ctx: Context| -> Exit {
        ctx.provide(ctx.incarnation())?;
        for _ in 0..ctx.incarnation() % 4 {
            tokio::task::yield_now().await;
        }
        match ctx.incarnation() {
            RESTARTS => ctx.cancelled().await,
            number if number % 3 == 0 => return Ok(()),
            _ => return Err("again".into()),
        }
        Ok(())
    });
    let app = Supervisor::builder("app").unlimited_restarts();
    let app = app.child(child.backoff(Backoff::none())).build().unwrap();
    let app = app.start().await.unwrap();
    let mut events = app.events();
    let (mut seen, mut last) = (0, 0);
    while last < RESTARTS - 1 && events.missed() == 0 {
        let event = events.next().await.unwrap();
        if let verger::status::EventKind::Moved { reason: Some(_), .. } = event.kind {
            last = event.incarnation;
            if let Some(found) = app.try_service::<u32>() {
                assert!(found > last, "found {found} after the exit of {last}");
                seen += 1;
            }
        }
    }
    // How many depends on the scheduler; the last one stays.
    assert!(seen <= RESTARTS);
    app.stop("enough").await.unwrap();
}
