//! Policies that come from a file, and children under them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::common::{End, FakeChildren, settle, start};
use tokio::time::{Instant, advance};
use verger::policy::{Intensity, OnExhausted, OnExit, RestartPolicy, Trigger};
use verger::{
    Backoff, BuildError, ChildDefaults, Context, Exit, ExitKind, Lifecycle, RestartType,
    Supervisor, SupervisorBuilder, worker,
};

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn read(text: &str) -> RestartPolicy {
    toml::from_str(text).unwrap()
}

fn eager() -> SupervisorBuilder {
    let builder = Supervisor::builder("app").unlimited_restarts();
    builder.defaults(|child| child.backoff(Backoff::none()))
}

/// Returns how often a child runs after each of these exits, under a policy from a file.
async fn runs(text: &str) -> [u32; 3] {
    let mut runs = [0; 3];
    for (runs, end) in runs.iter_mut().zip([End::Normal, End::Error, End::Panic]) {
        let fakes = FakeChildren::new();
        let app = start(eager().child(fakes.child("a").policy(read(text)))).await;
        fakes.end("a", end).await;
        *runs = app.which_child("a").await.map_or(0, |child| child.incarnation);
        app.stop("done").await.unwrap();
    }
    runs
}

#[tokio::test(start_paused = true)]
async fn seed4_21_on_failure_restarts_after_an_error_or_a_panic_and_not_after_ok() {
    assert_eq!(runs(r#"restart = "on_failure""#).await, [1, 2, 2]);
}

#[tokio::test(start_paused = true)]
async fn seed4_22_always_also_restarts_after_ok() {
    assert_eq!(runs(r#"restart = "always""#).await, [2, 2, 2]);
}

#[tokio::test(start_paused = true)]
async fn seed4_25_policy_names_have_synonyms_and_an_unknown_name_lists_all() {
    let words = [
        ("never", RestartType::Temporary),
        ("always", RestartType::Permanent),
        ("on_failure", RestartType::Transient),
    ];
    for (word, restart) in words {
        assert_eq!(read(&format!("restart = {word:?}")), RestartPolicy::new().restart(restart));
    }
    // A child that is never restarted is removed, as in OTP.
    assert_eq!(runs(r#"restart = "never""#).await, [0, 0, 0]);

    let error = toml::from_str::<RestartPolicy>(r#"restart = "Sometimes""#).unwrap_err();
    let expected = "unknown restart type `Sometimes`; write `permanent`, `always`, `transient`, \
                    `on_failure`, `temporary`, `never`, `no`, `on_stop`, `on_success`, \
                    `on_abnormal`, `on_abort` or `on_watchdog`";
    assert!(error.message().starts_with(expected), "{error}");
}

#[test]
fn seed4_26_a_string_in_place_of_a_number_is_an_error() {
    let error = |text: &str| toml::from_str::<RestartPolicy>(text).unwrap_err().to_string();
    let factor = error(r#"backoff = { min = "5s", max = "30s", factor = "2.0" }"#);
    assert!(factor.contains(r#"invalid type: string "2.0", expected f64"#), "{factor}");
    let max = error(r#"consecutive_restarts = "3""#);
    assert!(max.contains(r#"invalid type: string "3", expected u32"#), "{max}");
    let backoff = Backoff::exponential(secs(5), secs(30)).factor(3.0);
    let text = r#"backoff = { min = "5s", max = "30s", factor = 3 }"#;
    assert_eq!(read(text), RestartPolicy::new().backoff(backoff));
}

#[tokio::test(start_paused = true)]
async fn seed4_27_a_setting_absent_from_the_file_comes_from_the_spec() {
    let spec = worker("a", async |ctx: Context| ctx.cancelled().await);
    let spec = spec.restart(RestartType::Transient).backoff(Backoff::constant(secs(3)));
    let app = eager().child(spec.clone().named("a").policy(read("")));
    let app = app.child(spec.named("b").policy(read(r#"restart = "always""#)));
    let app = start(app).await;
    let (a, b) = (app.child_spec("a").await.unwrap(), app.child_spec("b").await.unwrap());
    assert_eq!((a.restart, a.backoff), (RestartType::Transient, Backoff::constant(secs(3))));
    assert_eq!((b.restart, b.backoff), (RestartType::Permanent, Backoff::constant(secs(3))));
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_file_has_a_table_per_child_and_every_setting_reaches_the_spec() {
    let file = r#"
        [mqtt]
        restart = { type = "on_failure", on_exit = { panicked = "fail_supervisor" } }
        backoff = { curve = "constant", delay = "2s" }
        own_restarts = { max = 5, period = "60s" }
        consecutive_restarts = 10
        failing_for = "1h"
        on_exhausted = { pause = "15s" }

        [db]
        intensity = { max = 2.5, half_life = "30s" }
        on_exhausted = "park"
    "#;
    let mut file: BTreeMap<String, RestartPolicy> = toml::from_str(file).unwrap();
    let fakes = FakeChildren::new();
    let mqtt = fakes.child("mqtt").policy(file.remove("mqtt").unwrap());
    let db = file.remove("db").unwrap();
    let app = eager().defaults(|child: ChildDefaults| child.policy(db));
    let app = start(app.child(mqtt).child(fakes.child("db"))).await;

    let mqtt = app.child_spec("mqtt").await.unwrap();
    let trigger = Trigger::from(RestartType::Transient);
    assert_eq!(mqtt.trigger, trigger.on(ExitKind::Panicked, OnExit::FailSupervisor));
    assert_eq!(mqtt.backoff, Backoff::constant(secs(2)));
    assert_eq!(mqtt.intensity, Some(Intensity::sliding(5, secs(60))));
    assert_eq!(mqtt.consecutive_restarts, Some(10));
    assert_eq!(mqtt.failing_for, Some(secs(3600)));
    assert_eq!(mqtt.on_exhausted, OnExhausted::Pause(secs(15)));

    let db = app.child_spec("db").await.unwrap();
    assert_eq!(db.intensity, Some(Intensity::decaying(2.5, secs(30))));
    assert_eq!(db.on_exhausted, OnExhausted::Park);

    // The JSON of a spec can be read again.
    let json = serde_json::to_value(&mqtt).unwrap();
    assert_eq!(serde_json::from_value::<Trigger>(json["trigger"].clone()).unwrap(), mqtt.trigger);
    let exhausted: OnExhausted = serde_json::from_value(json["on_exhausted"].clone()).unwrap();
    assert_eq!(exhausted, mqtt.on_exhausted);
    assert_eq!(json["intensity"], serde_json::json!({ "max": 5, "period": "1m" }));
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn limits_from_a_file_are_enforced() {
    let fakes = FakeChildren::new();
    let policy = read(
        r#"
        own_restarts = { max = 1, period = "60s" }
        on_exhausted = "park"
        "#,
    );
    let app = start(eager().child(fakes.child("a").policy(policy))).await;
    fakes.end("a", End::Error).await;
    assert_eq!(app.which_child("a").await.unwrap().lifecycle, Lifecycle::Active);
    fakes.end("a", End::Error).await;
    let child = app.which_child("a").await.unwrap();
    assert_eq!((child.lifecycle, child.why), (Lifecycle::Errored, Some("given up")));
    app.stop("done").await.unwrap();
}

#[test]
fn a_limit_repeated_by_a_policy_is_set_twice() {
    let spec = worker("a", async |ctx: Context| ctx.cancelled().await);
    let spec = spec.consecutive_restarts(3).policy(read("consecutive_restarts = 4"));
    match eager().child(spec).build().unwrap_err() {
        BuildError::SetTwice { path, first, second } => {
            assert_eq!(path.as_str(), "app/a");
            assert_eq!((&*first, &*second), ("consecutive_restarts(3)", "consecutive_restarts(4)"));
        }
        other => panic!("{other}"),
    }
}

/// A child that sets a policy and fails, repeatedly.
fn insisting(policy: RestartPolicy, runs: &Arc<AtomicU32>) -> verger::ChildSpec {
    let runs = Arc::clone(runs);
    worker("child", move |ctx: Context| {
        let (policy, runs) = (policy.clone(), Arc::clone(&runs));
        async move {
            runs.fetch_add(1, Ordering::Relaxed);
            ctx.set_restart_policy(Some(policy))?;
            Exit::Err("it fails".into())
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_child_can_override_its_limits_and_what_follows_them() {
    let policy = RestartPolicy::new().consecutive_restarts(2).on_exhausted(OnExhausted::StopChild);
    let runs = Arc::default();
    let app = start(eager().child(insisting(policy, &runs))).await;
    settle().await;
    let child = app.which_child("child").await.unwrap();
    assert_eq!((child.lifecycle, child.why), (Lifecycle::Stopped, Some("given up")));
    assert_eq!(runs.load(Ordering::Relaxed), 3);
    app.stop("done").await.unwrap();

    let policy =
        RestartPolicy::new().own_restarts(0, secs(60)).on_exhausted(OnExhausted::Pause(secs(9)));
    let (runs, began) = (Arc::default(), Instant::now());
    let app = start(eager().child(insisting(policy, &runs))).await;
    settle().await;
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    advance(secs(9)).await;
    settle().await;
    assert_eq!((runs.load(Ordering::Relaxed), began.elapsed()), (2, secs(9)));
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_invalid_policy_from_a_file_is_refused_with_the_builders_text() {
    let table = [
        (RestartPolicy::new().own_restarts(3, Duration::ZERO), "`app/child`"),
        (RestartPolicy::new().intensity(Intensity::decaying(-1.0, secs(1))), "`app/child`"),
        (RestartPolicy::new().failing_for(Duration::ZERO), "`app/child`"),
        (RestartPolicy::new().on_exhausted(OnExhausted::Pause(Duration::ZERO)), "`app/child`"),
        (RestartPolicy::new().consecutive_restarts(1).consecutive_restarts(2), "`app/child`"),
        (RestartPolicy::new().backoff(Backoff::exponential(secs(2), secs(1))), "`app/child`"),
    ];
    for (policy, path) in table {
        let built = worker("child", async |_| {}).policy(policy.clone());
        let built = eager().child(built).build().unwrap_err().to_string();
        assert!(built.contains(path), "{built}");

        let (sender, said) = tokio::sync::oneshot::channel();
        let sender = std::sync::Mutex::new(Some(sender));
        let child = worker("child", move |ctx: Context| {
            let refused = ctx.set_restart_policy(Some(policy.clone())).unwrap_err();
            if let Some(sender) = sender.lock().unwrap().take() {
                sender.send(refused.to_string()).unwrap();
            }
            async move { ctx.cancelled().await }
        });
        let app = start(eager().child(child)).await;
        assert_eq!(said.await.unwrap(), built, "the same is said");
        app.stop("done").await.unwrap();
    }
}
