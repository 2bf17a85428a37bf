//! The effective policy of a child, and the source of each part.

use std::time::Duration;

use crate::common::{settle, start};
use serde_json::json;
use verger::policy::{
    FailureLog, Intensity, LogLevel, OnExhausted, OnExit, PolicySource, Preset, RestartPolicy,
};
use verger::status::ChildInfo;
use verger::{
    Backoff, ChildSpec, Context, DynamicSupervisor, Exit, ExitKind, RestartType, Supervisor,
    SupervisorHandle, worker,
};

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn idle(name: &str) -> ChildSpec {
    worker(name, async |ctx: Context| ctx.cancelled().await)
}

/// A child that overrides its policy and idles in its first incarnation, and overrides nothing in
/// its next.
fn saying(name: &str, policy: RestartPolicy) -> ChildSpec {
    worker(name, move |ctx: Context| {
        let policy = policy.clone();
        async move {
            if ctx.incarnation() == 1 {
                ctx.set_restart_policy(Some(policy))?;
            }
            ctx.cancelled().await;
            Exit::Ok(())
        }
    })
}

async fn seen(tree: &SupervisorHandle, name: &str) -> ChildInfo {
    settle().await;
    tree.which_child(name).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn status_shows_the_effective_policy_and_the_source_of_each_part() {
    let own = RestartPolicy::new().restart(RestartType::Temporary).own_restarts(3, secs(60));
    let tree = Supervisor::builder("app")
        .on_exhausted(OnExhausted::Park)
        .defaults(|child| child.backoff(Backoff::constant(secs(5))).consecutive_restarts(9))
        .child(idle("plain"))
        .child(saying("own", own).failing_for(secs(3600)).on_exhausted(OnExhausted::Exit(3)));
    let tree = start(tree).await;

    let plain = seen(&tree, "plain").await.policy.unwrap();
    assert!(!plain.is_own());
    assert_eq!(plain.restart().value, RestartType::Permanent.into());
    assert_eq!(plain.restart().source, PolicySource::Default);
    let backoff = plain.backoff();
    assert_eq!(
        (backoff.value, backoff.source),
        (&Backoff::constant(secs(5)), PolicySource::Defaults)
    );
    assert_eq!(plain.intensity(), None);
    let consecutive = plain.consecutive_restarts().unwrap();
    assert_eq!((consecutive.value, consecutive.source), (9, PolicySource::Defaults));
    let what = plain.on_exhausted();
    assert_eq!((what.value, what.source), (OnExhausted::Park, PolicySource::Supervisor));
    assert_eq!(plain.failure_log().source, PolicySource::Default);

    let own = seen(&tree, "own").await.policy.unwrap();
    assert!(own.is_own());
    assert_eq!(own.restart().value, RestartType::Temporary.into());
    assert_eq!(own.restart().source, PolicySource::Child);
    let intensity = own.intensity().unwrap();
    assert_eq!(intensity.value, Intensity::sliding(3, secs(60)));
    assert_eq!(intensity.source, PolicySource::Child);
    let failing = own.failing_for().unwrap();
    assert_eq!((failing.value, failing.source), (secs(3600), PolicySource::Spec));
    assert_eq!(own.on_exhausted().source, PolicySource::Spec);
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_setting_from_a_preset_has_the_preset_as_its_source() {
    let tree = Supervisor::builder("app").preset(Preset::otp());
    let tree = start(tree.child(idle("a")).child(idle("b").backoff(Backoff::none()))).await;
    let a = seen(&tree, "a").await.policy.unwrap();
    assert_eq!((a.backoff().value, a.backoff().source), (&Backoff::none(), PolicySource::Preset));
    let b = seen(&tree, "b").await.policy.unwrap();
    assert_eq!((b.backoff().value, b.backoff().source), (&Backoff::none(), PolicySource::Spec));
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn json_writes_each_part_as_in_a_file_and_omits_absent_limits() {
    let own = RestartPolicy::new().intensity(Intensity::tumbling(3, secs(60)));
    let own = own.failure_log(FailureLog::at(LogLevel::Info));
    let child = saying("a", own)
        .restart(RestartType::Transient)
        .on_exit(ExitKind::Panicked, OnExit::FailSupervisor)
        .failing_for(secs(90))
        .on_exhausted(OnExhausted::Pause(secs(15)));
    let tree = Supervisor::builder("app").defaults(|child| child.backoff(Backoff::none()));
    let tree = start(tree.child(child)).await;
    let child = seen(&tree, "a").await;
    let json = serde_json::to_value(&child).unwrap();
    assert_eq!(
        json["policy"],
        json!({
            "restart": {
                "value": { "type": "transient", "on_exit": { "panicked": "fail_supervisor" } },
                "source": "spec",
            },
            "backoff": { "value": { "curve": "none" }, "source": "defaults" },
            "intensity": {
                "value": { "max": 3, "period": "1m", "window": "tumbling" },
                "source": "child",
            },
            "failing_for": { "value": "1m 30s", "source": "spec" },
            "on_exhausted": { "value": { "pause": "15s" }, "source": "spec" },
            "failure_log": { "value": { "level": "info" }, "source": "child" },
        }),
    );
    assert_eq!(json["restart"], "transient", "what the spec says is still there");
    assert_eq!(json["healthy"], json!(null));
    let status = serde_json::to_value(tree.status().await.unwrap()).unwrap();
    assert_eq!(status["root"]["policy"], json!(null), "the root has no parent");
    assert_eq!(status["root"]["children"][0]["policy"], json["policy"]);
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_childs_override_is_shown_until_its_next_incarnation_and_marked_in_the_text() {
    let own = RestartPolicy::new().backoff(Backoff::constant(secs(7)));
    let tree = Supervisor::builder("app").child(saying("a", own)).child(idle("b"));
    let tree = start(tree).await;
    settle().await;
    let text = async || {
        let text = tree.status().await.unwrap().to_string();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        text().await[1..],
        [
            "├─ a                   permanent    active       up 0s  own policy",
            "└─ b                   permanent    active       up 0s",
        ],
    );
    tree.kill("a").await.unwrap();
    settle().await;
    assert_eq!(
        text().await[1],
        "├─ a                   permanent    RESTARTING   retry in 7s (attempt 1)",
    );
    let waiting = seen(&tree, "a").await;
    assert_eq!(waiting.policy.unwrap().backoff().source, PolicySource::Child);
    tokio::time::sleep(secs(7)).await;
    let next = seen(&tree, "a").await;
    let policy = next.policy.unwrap();
    assert_eq!((next.incarnation, policy.is_own()), (2, false));
    assert_eq!(policy.backoff().source, PolicySource::Default);
    assert!(!text().await[1].contains("own policy"));
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_spec_shows_the_source_of_each_part_and_not_the_childs_override() {
    let own = RestartPolicy::new().restart(RestartType::Temporary);
    let tree = Supervisor::builder("app").defaults(|child| child.consecutive_restarts(3));
    let tree = tree.child(saying("a", own).restart(RestartType::Transient));
    let tree = start(tree).await;
    settle().await;
    let spec = tree.child_spec("a").await.unwrap();
    assert_eq!(spec.restart, RestartType::Transient);
    assert_eq!(spec.failure_log, FailureLog::default());
    assert_eq!(
        serde_json::to_value(spec.sources).unwrap(),
        json!({
            "restart": "spec",
            "backoff": "default",
            "intensity": "default",
            "consecutive_restarts": "defaults",
            "failing_for": "default",
            "on_exhausted": "default",
            "failure_log": "default",
        }),
    );
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_fallback_and_a_dynamic_child_each_have_their_own_policy() {
    let failing = worker("a", async |_: Context| -> Exit { Err("it fails".into()) });
    let fallback = idle("b").backoff(Backoff::constant(secs(3)));
    let tree = Supervisor::builder("app")
        .child(failing.consecutive_restarts(0).fallback(fallback))
        .child(DynamicSupervisor::builder("conns").on_exhausted(OnExhausted::Park));
    let tree = start(tree).await;
    let a = seen(&tree, "a").await.policy.unwrap();
    assert_eq!(a.consecutive_restarts(), None);
    assert_eq!(
        (a.backoff().value, a.backoff().source),
        (&Backoff::constant(secs(3)), PolicySource::Spec)
    );

    let conns = tree.supervisor("conns").await.unwrap();
    conns.start_child(idle("c")).await.unwrap();
    let children = conns.children().await.unwrap();
    let policy = children[0].policy.as_ref().unwrap();
    assert_eq!(policy.on_exhausted().value, OnExhausted::Park);
    assert_eq!(policy.on_exhausted().source, PolicySource::Supervisor);
    tree.stop("done").await.unwrap();
}
