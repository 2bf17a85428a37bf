//! What trees record with a recorder of `metrics`, and under which labels.

use std::time::Duration;

use metrics::set_default_local_recorder;
use tokio::time::sleep;
use verger::dead_letter::DeadLetterReason;
use verger::metrics::{ALL, Gauges, describe};
use verger::policy::{Jitter, OnExhausted};
use verger::{
    Backoff, ChildSpec, Context, DynamicSupervisor, Exit, Lifecycle, RestartType, Strategy,
    Supervisor, every, mailbox_with_capacity, worker, worker_with_mailbox,
};

use crate::common::{End, FakeChildren, killed, settle, start};
use crate::recorder::Recorded;

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

async fn idle(ctx: Context) -> Exit {
    ctx.cancelled().await;
    Ok(())
}

fn delayed(child: ChildSpec, delay: Duration) -> ChildSpec {
    child.backoff(Backoff::constant(delay).jitter(Jitter::None))
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_an_exit_a_delay_and_a_restart_of_its_path() {
    let recorded = Recorded::default();
    let _guard = set_default_local_recorder(&recorded);
    let fakes = FakeChildren::new();
    let below = Supervisor::builder("ingest").child(delayed(fakes.child("mqtt"), secs(2)));
    let app = start(Supervisor::builder("app").child(below).child(fakes.child("db"))).await;
    assert_eq!(recorded.count("verger_starts_total path=app/ingest/mqtt"), 1);
    assert_eq!(recorded.count("verger_restarts_total path=app/ingest/mqtt"), 0);
    assert_eq!(recorded.counts("verger_exits_total"), []);

    fakes.end("mqtt", End::Error).await;
    fakes.end("db", End::Panic).await;
    settle().await;
    assert_eq!(recorded.count("verger_restarts_total path=app/ingest/mqtt"), 0, "it waits");
    sleep(secs(2)).await;
    settle().await;
    let counts = |name| recorded.counts(name);
    let [ingest, mqtt, db] =
        ["path=app/ingest", "path=app/ingest/mqtt", "path=app/db"].map(str::to_owned);
    assert_eq!(
        counts("verger_starts_total"),
        [(db.clone(), 2), (ingest.clone(), 1), (mqtt.clone(), 2)]
    );
    assert_eq!(counts("verger_restarts_total"), [(db, 1), (ingest, 0), (mqtt, 1)]);
    assert_eq!(
        counts("verger_exits_total"),
        [
            ("path=app/db reason=panicked".to_owned(), 1),
            ("path=app/ingest/mqtt reason=failed".to_owned(), 1),
        ]
    );
    assert_eq!(recorded.histogram("verger_restart_delay_seconds path=app/ingest/mqtt"), [2.0]);
    assert!(!recorded.keys().iter().any(|key| key.starts_with("verger_stop_seconds")));
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_sibling_that_restarts_too_is_a_restart_and_its_exit_a_shutdown() {
    let recorded = Recorded::default();
    let _guard = set_default_local_recorder(&recorded);
    let fakes = FakeChildren::new();
    let app = Supervisor::builder("app").strategy(Strategy::OneForAll);
    let app = start(app.child(fakes.child("a")).child(fakes.child("b"))).await;
    fakes.end("a", End::Error).await;
    sleep(secs(1)).await;
    settle().await;
    for child in ["a", "b"] {
        assert_eq!(recorded.count(&format!("verger_restarts_total path=app/{child}")), 1);
    }
    assert_eq!(recorded.count("verger_exits_total path=app/b reason=shutdown"), 1);
    assert!(recorded.histogram("verger_restart_delay_seconds path=app/b").is_empty());
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_starts_a_child_again_is_a_start_and_no_restart() {
    let recorded = Recorded::default();
    let _guard = set_default_local_recorder(&recorded);
    let app = start(Supervisor::builder("app").child(worker("a", idle))).await;
    app.stop_child("a").await.unwrap();
    app.otp().restart_child("a").await.unwrap();
    assert_eq!(recorded.count("verger_starts_total path=app/a"), 2);
    assert_eq!(recorded.count("verger_restarts_total path=app/a"), 0);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn stops_are_timed_from_the_cancellation_to_the_end_of_each_child_and_of_the_root() {
    let recorded = Recorded::default();
    let _guard = set_default_local_recorder(&recorded);
    let slow = worker("slow", async |ctx: Context| {
        ctx.cancelled().await;
        sleep(secs(2)).await;
    });
    let deaf = worker("deaf", async |_ctx| std::future::pending::<()>().await);
    let returns = worker("returns", async |_ctx| {}).restart(RestartType::Temporary);
    let below = Supervisor::builder("below").child(slow).child(deaf.shutdown(secs(3)));
    let app = start(Supervisor::builder("app").child(below).child(returns)).await;
    settle().await;
    assert_eq!(recorded.count("verger_exits_total path=app/returns reason=normal"), 1);
    app.stop("enough").await.or_else(killed).unwrap();
    let stop = |path| recorded.histogram(&format!("verger_stop_seconds path={path}"));
    assert_eq!(stop("app/below/slow"), [2.0]);
    assert_eq!(stop("app/below/deaf"), [3.0]);
    assert_eq!(stop("app/below"), [5.0]);
    assert_eq!(stop("app"), [5.0]);
    assert_eq!(stop("app/returns"), [0.0; 0], "nothing has stopped it");
    assert_eq!(recorded.count("verger_exits_total path=app/below/deaf reason=killed"), 1);
}

/// Each connection is a child with a name that no other has, one in a thousand with children of its own.
#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_dynamic_children_have_the_labels_of_their_supervisor() {
    const CHILDREN: u64 = 100_000;
    let recorded = Recorded::default();
    let _guard = set_default_local_recorder(&recorded);
    let conns = DynamicSupervisor::builder("conns").max_children(200_000);
    let app = Supervisor::builder("app").child(conns).child(worker("db", idle));
    let app = start(app).await;
    let conns = app.supervisor("conns").await.unwrap();
    for number in 0..CHILDREN {
        let name = format!("conn-{number}");
        let started = if number % 1_000 == 0 {
            let child = worker("reader", idle);
            conns.start_child(Supervisor::builder(name).child(child)).await
        } else {
            conns.start_child(worker(name, idle)).await
        };
        started.unwrap();
    }
    settle().await;
    Gauges::new().record(&app.status().await.unwrap());
    let (own, readers) = (1, CHILDREN / 1_000);
    let conns = ("path=app/conns".to_owned(), own + CHILDREN + readers);
    assert_eq!(
        recorded.counts("verger_starts_total"),
        [conns, ("path=app/db".to_owned(), 1)],
        "what is below the children of `conns` is counted there too"
    );
    app.stop("enough").await.unwrap();
    let exits = ("path=app/conns reason=shutdown".to_owned(), own + CHILDREN + readers);
    let db = ("path=app/db reason=shutdown".to_owned(), 1);
    assert_eq!(recorded.counts("verger_exits_total"), [exits, db]);
    let in_state = |state| format!("verger_children supervisor=app/conns state={state}");
    assert_eq!(recorded.gauge(&in_state("active")), Some((CHILDREN + readers) as f64));
    assert_eq!(recorded.gauge(&in_state("errored")), Some(0.0));
    let mut keys = recorded.keys();
    keys.retain(|key| !key.contains(" state=") && !key.contains(" kind="));
    assert_eq!(
        recorded.keys().len() - keys.len(),
        8 * 4 + 8,
        "of three children and one supervisor, and the problems"
    );
    keys.sort();
    assert_eq!(
        keys,
        [
            "verger_busy_seconds_total path=app/conns",
            "verger_busy_seconds_total path=app/db",
            "verger_exits_total path=app/conns reason=shutdown",
            "verger_exits_total path=app/db reason=shutdown",
            concat!("verger_info version=", env!("CARGO_PKG_VERSION")),
            "verger_limit_used_ratio path=app/conns",
            "verger_limit_used_ratio path=app/db",
            "verger_restarts_total path=app/conns",
            "verger_restarts_total path=app/db",
            "verger_starts_total path=app/conns",
            "verger_starts_total path=app/db",
            "verger_stop_seconds path=app",
            "verger_stop_seconds path=app/conns",
            "verger_stop_seconds path=app/db",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn the_stop_of_a_worker_with_its_own_children_is_timed_once() {
    let recorded = Recorded::default();
    let _guard = set_default_local_recorder(&recorded);
    let owner = worker("owner", async |ctx: Context| -> Exit {
        let slow = worker("slow", async |ctx: Context| {
            ctx.cancelled().await;
            sleep(secs(2)).await;
        });
        ctx.children_with(Supervisor::builder("own").child(slow))?;
        ctx.cancelled().await;
        Ok(())
    });
    let app = start(Supervisor::builder("app").child(owner)).await;
    settle().await;
    app.stop("enough").await.unwrap();
    for path in ["app", "app/owner", "app/owner/slow"] {
        assert_eq!(
            recorded.histogram(&format!("verger_stop_seconds path={path}")),
            [2.0],
            "{path}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn children_that_are_added_while_the_tree_runs_have_the_label_of_their_supervisor() {
    let recorded = Recorded::default();
    let _guard = set_default_local_recorder(&recorded);
    let rooms = worker("rooms", async |ctx: Context| -> Exit {
        let room = ctx.children().start_child(worker("lobby", idle)).await;
        room.map_err(|error| error.to_string())?;
        ctx.cancelled().await;
        Ok(())
    });
    let app = start(Supervisor::builder("app").child(worker("db", idle)).child(rooms)).await;
    settle().await;
    let below = Supervisor::builder("tenant-17").child(worker("cache", idle));
    app.start_child(below).await.unwrap();
    settle().await;
    assert_eq!(
        recorded.counts("verger_starts_total"),
        [
            ("path=app".to_owned(), 2),
            ("path=app/db".to_owned(), 1),
            ("path=app/rooms".to_owned(), 2),
        ]
    );
    // A declared child that is deleted and added again has its label again.
    app.stop_child("db").await.unwrap();
    app.otp().delete_child("db").await.unwrap();
    app.start_child(worker("db", idle)).await.unwrap();
    assert_eq!(recorded.count("verger_starts_total path=app/db"), 2);
    app.stop("enough").await.unwrap();
    assert!(recorded.keys().iter().all(|key| !key.contains('#') && !key.contains("tenant")));
}

#[tokio::test(start_paused = true)]
async fn dead_letters_are_counted_by_target_and_reason_and_suppressed_ones_are_not() {
    struct Unwanted;

    let recorded = Recorded::default();
    let _guard = set_default_local_recorder(&recorded);
    let (to_a, inbox) = mailbox_with_capacity::<u32>(8);
    let a = worker_with_mailbox("a", inbox, async |ctx: Context, _inbox| ctx.cancelled().await);
    let (to_b, inbox) = mailbox_with_capacity::<Unwanted>(8);
    let b = worker_with_mailbox("b", inbox, async |ctx: Context, _inbox| ctx.cancelled().await);
    let fails = worker("conn", async |_ctx| -> Exit { Err("no".into()) });
    let fails = fails.consecutive_restarts(0).on_exhausted(OnExhausted::Remove);
    let conns = DynamicSupervisor::builder("conns");
    let app = Supervisor::builder("app").suppress_dead_letters::<Unwanted>();
    let app = start(app.child(a).child(b).child(conns)).await;
    let conns = app.supervisor("conns").await.unwrap();
    for _ in 0..3 {
        conns.start_child(fails.clone()).await.unwrap();
    }
    settle().await;
    to_a.try_send(1).unwrap();
    to_a.try_send(2).unwrap();
    assert!(to_b.try_send(Unwanted).is_ok());
    app.stop("enough").await.unwrap();
    assert_eq!(
        recorded.counts("verger_dead_letters_total"),
        [
            ("path=app/a reason=undelivered_at_stop".to_owned(), 2),
            (format!("path=app/conns reason={}", DeadLetterReason::GaveUp), 3),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn failed_runs_are_counted_from_zero_by_the_path_of_their_child() {
    let recorded = Recorded::default();
    let _guard = set_default_local_recorder(&recorded);
    let failing = |name: &str| every(name, secs(10), async |_| -> Exit { Err("no".into()) });
    let works = every("works", secs(10), async |_| {});
    let conns = DynamicSupervisor::builder("conns");
    let app = Supervisor::builder("app").child(failing("a")).child(works).child(conns);
    let app = start(app).await;
    let conns = app.supervisor("conns").await.unwrap();
    conns.start_child(failing("one")).await.unwrap();
    conns.start_child(failing("two")).await.unwrap();
    sleep(secs(25)).await;
    assert_eq!(
        recorded.counts("verger_failed_runs_total"),
        [
            ("path=app/a".to_owned(), 3),
            ("path=app/conns".to_owned(), 6),
            ("path=app/works".to_owned(), 0),
        ]
    );
    assert_eq!(recorded.counts("verger_exits_total"), []);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn gauges_are_the_used_limits_and_the_sums_of_the_mailboxes_of_a_snapshot() {
    let recorded = Recorded::default();
    let _guard = set_default_local_recorder(&recorded);
    let fakes = FakeChildren::new();
    let reader = |name: &str| {
        let (address, inbox) = mailbox_with_capacity::<u32>(8);
        let idle = async |ctx: Context, _inbox| ctx.cancelled().await;
        (address, worker_with_mailbox(name, inbox, idle))
    };
    let (address, own) = reader("reader");
    let below = Supervisor::builder("below").restarts(4, secs(60)).child(fakes.child("a"));
    let free = Supervisor::builder("free").unlimited_restarts();
    let conns = DynamicSupervisor::builder("conns").unlimited_restarts();
    let app = Supervisor::builder("app").child(below).child(free).child(conns).child(own);
    let app = start(app).await;
    let conns = app.supervisor("conns").await.unwrap();
    let (one, first) = reader("conn");
    let (two, second) = reader("conn");
    conns.start_child(first).await.unwrap();
    conns.start_child(second).await.unwrap();
    let (added, third) = reader("added");
    app.start_child(third).await.unwrap();
    for address in [&address, &one, &one, &two, &added] {
        address.try_send(1).unwrap();
    }
    for _ in 0..3 {
        fakes.end("a", End::Error).await;
        sleep(secs(2)).await;
    }
    settle().await;
    let mut gauges = Gauges::new();
    gauges.record(&app.status().await.unwrap());
    let limit = |path| recorded.gauge(&format!("verger_limit_used_ratio path={path}"));
    let depth = |path| recorded.gauge(&format!("verger_mailbox_depth path={path}"));
    let capacity = |path| recorded.gauge(&format!("verger_mailbox_capacity path={path}"));
    assert_eq!((capacity("app/reader"), capacity("app/conns")), (Some(8.0), Some(16.0)));
    assert_eq!(
        (limit("app"), limit("app/below"), limit("app/free")),
        (Some(0.0), Some(0.75), Some(0.0))
    );
    assert_eq!((depth("app/reader"), depth("app/conns")), (Some(1.0), Some(3.0)));
    assert_eq!(depth("app"), Some(1.0), "that of the child which was added");

    sleep(secs(60)).await;
    gauges.record(&app.status().await.unwrap());
    assert_eq!(limit("app/below"), Some(0.0), "the period is over");

    app.stop_child("below").await.unwrap();
    Gauges::new().record(&conns.status().await.unwrap());
    assert_eq!(depth("app/conns"), Some(3.0), "a snapshot of a part has the same labels");
    gauges.record(&app.status().await.unwrap());
    assert_eq!(limit("app/below"), Some(0.0));
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_recorder_that_is_installed_late_counts_from_then_on() {
    let recorded = Recorded::default();
    let fakes = FakeChildren::new();
    let app = start(Supervisor::builder("app").child(fakes.child("a"))).await;
    let _guard = set_default_local_recorder(&recorded);
    fakes.end("a", End::Error).await;
    sleep(secs(1)).await;
    settle().await;
    assert_eq!(recorded.count("verger_starts_total path=app/a"), 1);
    assert_eq!(recorded.count("verger_exits_total path=app/a reason=failed"), 1);
    app.stop("enough").await.unwrap();
}

#[cfg(feature = "config-file")]
mod configurations {
    use metrics::set_default_local_recorder;
    use serde::Deserialize;
    use verger::config::{ChildConfig, Config};
    use verger::{Exit, Supervisor, worker};

    use super::{idle, start};
    use crate::recorder::Recorded;

    #[derive(Deserialize)]
    struct Server {
        port: u16,
    }

    fn port(port: u16) -> Config {
        Config::from_toml(&format!("[a.config]\nport = {port}"), "app.toml")
    }

    #[tokio::test(start_paused = true)]
    async fn a_plan_is_counted_by_its_result_once_it_is_applied_or_refused() {
        let recorded = Recorded::default();
        let _guard = set_default_local_recorder(&recorded);
        let validated = ChildConfig::<Server>::new().validate(async |new| -> Exit {
            if new.port == 0 { Err("port 0".into()) } else { Ok(()) }
        });
        let a = worker("a", idle).config(validated);
        let tree = start(Supervisor::builder("app").child(a)).await;
        let first = tree.plan(&port(1)).await.unwrap();
        assert_eq!(recorded.counts("verger_reloads_total"), [], "nothing is applied yet");
        tree.apply(first).await.unwrap();
        let second = tree.plan(&port(2)).await.unwrap();
        tree.apply(second).await.unwrap();
        let refused = tree.plan(&port(0)).await.unwrap();
        tree.apply(refused).await.unwrap_err();
        let late = tree.plan(&port(3)).await.unwrap();
        tree.stop("enough").await.unwrap();
        tree.apply(late).await.unwrap_err();
        assert_eq!(
            recorded.counts("verger_reloads_total"),
            [
                ("path=app result=applied".to_owned(), 2),
                ("path=app result=failed".to_owned(), 1),
                ("path=app result=refused".to_owned(), 1),
            ]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_child_of_new_code_has_a_label_of_its_own() {
        let recorded = Recorded::default();
        let _guard = set_default_local_recorder(&recorded);
        let tree = start(Supervisor::builder("app").child(worker("a", idle))).await;
        tree.start_child(worker("b", idle)).await.unwrap();
        let b = ("path=app".to_owned(), 1);
        let a = ("path=app/a".to_owned(), 1);
        assert_eq!(recorded.counts("verger_starts_total"), [b.clone(), a.clone()]);

        let new = Supervisor::builder("app").child(worker("a", idle)).child(worker("c", idle));
        let plan = tree.plan_tree(&new.build().unwrap(), &Config::new()).await.unwrap();
        tree.apply(plan).await.unwrap();
        let c = ("path=app/c".to_owned(), 1);
        assert_eq!(recorded.counts("verger_starts_total"), [b, a, c]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_declared_child_is_in_one_state_and_in_none_while_its_supervisor_is_down() {
    let recorded = Recorded::default();
    let _guard = set_default_local_recorder(&recorded);
    let fakes = FakeChildren::new();
    let below = Supervisor::builder("below").child(delayed(fakes.child("a"), secs(5)));
    let app = start(Supervisor::builder("app").child(below)).await;
    let mut gauges = Gauges::new();
    let states = |path: &str| {
        let value = |state: &Lifecycle| {
            let key = format!("verger_child_state path={path} state={state}");
            recorded.gauge(&key).unwrap() > 0.0
        };
        Lifecycle::ALL.into_iter().filter(value).collect::<Vec<_>>()
    };
    gauges.record(&app.status().await.unwrap());
    assert_eq!(states("app/below/a"), [Lifecycle::Active]);
    fakes.end("a", End::Error).await;
    gauges.record(&app.status().await.unwrap());
    assert_eq!(states("app/below/a"), [Lifecycle::Restarting]);
    app.stop_child("below").await.unwrap();
    gauges.record(&app.status().await.unwrap());
    assert_eq!((states("app/below"), states("app/below/a")), (vec![Lifecycle::Stopped], vec![]));
    app.stop("enough").await.unwrap();
}

#[test]
fn each_metric_is_described_with_its_kind_and_unit() {
    let recorded = Recorded::default();
    let _guard = set_default_local_recorder(&recorded);
    describe();
    let described = recorded.described();
    assert_eq!(described.len(), ALL.len());
    assert_eq!(described[0], "counter verger_starts_total Some(\"count\")");
    assert_eq!(described[3], "histogram verger_restart_delay_seconds Some(\"seconds\")");
    assert_eq!(described[9], "gauge verger_limit_used_ratio Some(\"count\")");
}
