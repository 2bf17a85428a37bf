//! Values that change while the tree runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::Deserialize;
use verger::config::{ApplyError, ChildConfig};
use verger::policy::PolicySource;
use verger::{Backoff, Exit, Lifecycle, Supervisor, worker};

use super::{apply, config, idle, secs};
use crate::common::settle;

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    batch: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { batch: 100 }
    }
}

#[tokio::test(start_paused = true)]
async fn a_policy_counts_from_the_next_failure_on_and_a_drawn_delay_stays() {
    let failing = worker("a", async |ctx: verger::Context| -> Exit {
        tokio::time::sleep(secs(1)).await;
        drop(ctx);
        Err("no".into())
    });
    let backoff = Backoff::constant(secs(10)).jitter(verger::policy::Jitter::None);
    let app = Supervisor::builder("app").unlimited_restarts().child(failing.backoff(backoff));
    let app = app.build().unwrap().start().await.unwrap();
    tokio::time::sleep(secs(2)).await;
    let wait = |info: verger::status::ChildInfo| info.next.map(|next| (next.delay, next.remaining));
    assert_eq!(wait(app.which_child("a").await.unwrap()), Some((secs(10), secs(9))));

    let text = "[\"app/a\".restart]\nwhen = \"always\"\nbackoff = { curve = \"constant\", delay = \"3s\" }";
    let changes = apply(&app, text).await;
    assert_eq!(
        changes,
        [
            "~ app/a  restart.backoff.curve  (code) → \"constant\"  at the next failure  app.toml:3",
            "~ app/a  restart.backoff.delay  (code) → \"3s\"  at the next failure  app.toml:3",
            "~ app/a  restart.when  \"permanent\" → \"always\"  at the next failure  app.toml:2",
        ]
    );
    let info = app.which_child("a").await.unwrap();
    assert_eq!(wait(info.clone()), Some((secs(10), secs(9))), "the drawn delay stays");
    assert_eq!(info.policy.unwrap().backoff().source, PolicySource::File);
    assert_eq!(info.configured["backoff"].as_ref(), "app.toml:3");
    tokio::time::sleep(secs(9) + secs(1)).await;
    settle().await;
    assert_eq!(wait(app.which_child("a").await.unwrap()).unwrap().0, secs(3));
    assert_eq!(apply(&app, text).await, Vec::<String>::new(), "up to date");
}

#[tokio::test(start_paused = true)]
async fn a_child_is_taken_out_and_brought_back() {
    let app = Supervisor::builder("app").child(worker("a", idle)).child(worker("b", idle));
    let app = app.build().unwrap().start().await.unwrap();
    apply(&app, "[a]\nenabled = false").await;
    let a = app.which_child("a").await.unwrap();
    assert_eq!((a.lifecycle, a.why, a.incarnation), (Lifecycle::Discovered, Some("disabled"), 1));
    assert!(app.status().await.unwrap().is_ready());
    assert_eq!(apply(&app, "").await, ["+ app/a  enabled  false → true  live"]);
    let a = app.which_child("a").await.unwrap();
    assert_eq!((a.lifecycle, a.why, a.incarnation), (Lifecycle::Active, None, 2));
    assert_eq!(app.which_child("b").await.unwrap().incarnation, 1, "it isn't touched");
}

#[tokio::test(start_paused = true)]
async fn a_child_sees_its_new_configuration_live() {
    let seen = Arc::new(AtomicU32::new(0));
    let report = Arc::clone(&seen);
    let child = worker("writer", move |ctx: verger::Context| {
        let seen = Arc::clone(&report);
        async move {
            let mut config = ctx.config::<Settings>()?;
            loop {
                seen.store(config.get().batch as u32, Ordering::Relaxed);
                tokio::select! {
                    () = config.changed() => {}
                    () = ctx.cancelled() => return Exit::Ok(()),
                }
            }
        }
    });
    let checked = ChildConfig::<Settings>::new().validate(async |new: Arc<Settings>| -> Exit {
        if new.batch == 0 { Err("`batch` is zero".into()) } else { Ok(()) }
    });
    let app = Supervisor::builder("app").child(child.config(checked));
    let app = app.build().unwrap().start().await.unwrap();
    settle().await;
    assert_eq!(seen.load(Ordering::Relaxed), 100);
    let changes = apply(&app, "[writer.config]\nbatch = 7").await;
    assert_eq!(changes, ["~ app/writer  config.batch  (code) → 7  live  app.toml:2"]);
    settle().await;
    assert_eq!(seen.load(Ordering::Relaxed), 7);
    let plan = app.plan(&config("[writer.config]\nbatch = 0")).await.unwrap();
    let refused = app.apply(plan).await.unwrap_err();
    assert_eq!(refused.to_string(), "refused by `app/writer` (app.toml:1): `batch` is zero");
    settle().await;
    assert_eq!(seen.load(Ordering::Relaxed), 7);
    let ApplyError::Invalid(mistakes) = app
        .plan(&config("[writer.config]\nbatch = \"x\"\nbtach = 1\n[wirter]\n"))
        .await
        .unwrap_err()
    else {
        panic!("it is invalid")
    };
    assert_eq!(mistakes.mistakes().len(), 3);
}

/// A child that fails whenever it is told to.
fn failing() -> (verger::ChildSpec, Arc<tokio::sync::Notify>) {
    let fail = Arc::new(tokio::sync::Notify::new());
    let told = Arc::clone(&fail);
    let run = move |ctx: verger::Context| {
        let told = Arc::clone(&told);
        async move {
            tokio::select! {
                () = told.notified() => Exit::Err("told to".into()),
                () = ctx.cancelled() => Ok(()),
            }
        }
    };
    (worker("a", run).backoff(Backoff::none()), fail)
}

#[tokio::test(start_paused = true)]
async fn a_lower_limit_counts_the_restarts_so_far_and_is_judged_at_the_next_failure() {
    // The supervisor's own limit, and that of the child.
    let shared = |max| format!("[app]\nmax_restarts = {max}\nperiod = \"60s\"");
    let own = |max| format!("[a]\nrestart.own_restarts = {{ max = {max}, period = \"60s\" }}");
    let limits: [&dyn Fn(u32) -> String; 2] = [&shared, &own];
    for limit in limits {
        let (child, fail) = failing();
        let app = Supervisor::builder("app").restarts(9, secs(60)).child(child);
        let app = app.build().unwrap().start().await.unwrap();
        apply(&app, &limit(5)).await;
        for _ in 0..3 {
            fail.notify_one();
            settle().await;
        }
        apply(&app, &limit(2)).await;
        settle().await;
        assert_eq!(app.which_child("a").await.unwrap().incarnation, 4, "nothing is taken back");
        apply(&app, &limit(4)).await;
        fail.notify_one();
        settle().await;
        assert_eq!(app.which_child("a").await.unwrap().incarnation, 5, "three count, and four may");
        apply(&app, &limit(2)).await;
        fail.notify_one();
        let error = app.wait().await.unwrap_err().to_string();
        assert!(error.contains("gave up"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watchdog_that_is_set_counts_from_then_on() {
    let app = Supervisor::builder("app").child(worker("a", idle));
    let app = app.build().unwrap().start().await.unwrap();
    tokio::time::sleep(secs(100)).await;
    apply(&app, "[a]\nwatchdog = \"3s\"").await;
    tokio::time::sleep(secs(2)).await;
    apply(&app, "").await;
    tokio::time::sleep(secs(100)).await;
    assert_eq!(app.which_child("a").await.unwrap().incarnation, 1, "it isn't watched any more");
    apply(&app, "[a]\nwatchdog = \"3s\"").await;
    tokio::time::sleep(secs(4)).await;
    settle().await;
    assert_eq!(app.which_child("a").await.unwrap().incarnation, 2);
}
