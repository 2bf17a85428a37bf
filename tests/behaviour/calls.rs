//! What each call of a handle does in each state of a child: the table in rule 8 of the chapter *Semantics*.

use std::future::Future;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use verger::error::NextStep;
use verger::policy::{FailureDecision, OnExhausted};
use verger::{
    Backoff, ChildSpec, Context, ControlError, DynamicSupervisor, Exit, ExitError, ExitKind,
    Readiness, RestartType, Shutdown, Strategy, Supervisor, SupervisorHandle, once, worker,
};

use crate::common::{settle, start};

const SECOND: Duration = Duration::from_secs(1);

/// Is ready, and runs until it is cancelled.
async fn idle(ctx: Context) {
    ctx.ready();
    ctx.cancelled().await;
}

/// The first incarnation fails after a second, and others run until they are cancelled.
async fn fails_once(ctx: Context) -> Exit {
    if ctx.incarnation() == 1 {
        sleep(SECOND).await;
        return Err("connection refused".into());
    }
    ctx.cancelled().await;
    Ok(())
}

/// Needs two seconds to stop.
async fn slow(ctx: Context) {
    ctx.cancelled().await;
    sleep(2 * SECOND).await;
}

/// Is ready after two seconds.
async fn late(ctx: Context) {
    sleep(2 * SECOND).await;
    idle(ctx).await;
}

async fn declines(ctx: Context) -> Exit {
    if ctx.incarnation() == 1 {
        return Err(ExitError::ignore());
    }
    idle(ctx).await;
    Ok(())
}

fn minute() -> Backoff {
    Backoff::constant(Duration::from_secs(60))
}

async fn one(child: ChildSpec) -> SupervisorHandle {
    start(Supervisor::builder("app").child(child)).await
}

async fn group(a: ChildSpec, b: ChildSpec) -> SupervisorHandle {
    start(Supervisor::builder("app").strategy(Strategy::OneForAll).child(a).child(b)).await
}

/// Returns a tree in which the child, at this path, is in a state.
async fn tree_in(state: &str) -> (SupervisorHandle, &'static str) {
    let app = match state {
        "activating" => {
            let app = start(Supervisor::builder("app")).await;
            app.add_child(worker("b", late).readiness(Readiness::Signal)).await.unwrap();
            app
        }
        "active" => one(worker("b", idle)).await,
        "waits for its backoff" => {
            let app = one(worker("b", fails_once).backoff(minute())).await;
            sleep(2 * SECOND).await;
            app
        }
        "a callback decides" => {
            let decide = async |_| {
                sleep(3 * SECOND).await;
                FailureDecision::give_up()
            };
            let b = worker("b", fails_once);
            let app = Supervisor::builder("app").on_child_failure(decide).child(b);
            let app = start(app).await;
            sleep(2 * SECOND).await;
            app
        }
        "stopped by a call" => {
            let app = one(worker("b", slow)).await;
            let call = app.clone();
            tokio::spawn(async move { call.stop_child("b").await });
            settle().await;
            app
        }
        "its group will start it" => {
            let late = worker("a", late).readiness(Readiness::Signal);
            let app = group(late, worker("b", fails_once).backoff(Backoff::none())).await;
            sleep(2 * SECOND).await;
            app
        }
        "its group waits" => {
            let app = group(worker("a", fails_once).backoff(minute()), worker("b", idle)).await;
            sleep(2 * SECOND).await;
            app
        }
        "stopped" => {
            let app = one(worker("b", idle)).await;
            app.stop_child("b").await.unwrap();
            app
        }
        "finished" => {
            let app = one(worker("b", async |_| {}).restart(RestartType::Transient)).await;
            settle().await;
            app
        }
        "declined" => one(worker("b", declines).readiness(Readiness::Signal)).await,
        "given up" => {
            let b = worker("b", fails_once).consecutive_restarts(0);
            let app = one(b.on_exhausted(OnExhausted::Park)).await;
            sleep(2 * SECOND).await;
            app
        }
        "gated" => {
            let a = worker("a", declines).readiness(Readiness::Signal);
            let b = worker("b", idle).requires("a");
            start(Supervisor::builder("app").child(a).child(b)).await
        }
        "held" => {
            let app = one(worker("b", idle)).await;
            app.on_behalf_of("alice", "disk swap").hold("b").await.unwrap();
            app.kill("b").await.unwrap();
            sleep(3 * SECOND).await;
            app
        }
        "held, running" => {
            let app = one(worker("b", idle)).await;
            app.hold("b").await.unwrap();
            sleep(SECOND).await;
            app
        }
        "a supervisor" => one(Supervisor::builder("b").child(worker("c", idle)).into_child()).await,
        "one-shot, running" => one(once("b", idle)).await,
        "one-shot, spent" => {
            let app = one(once("b", idle)).await;
            app.stop_child("b").await.unwrap();
            app
        }
        "gone" => {
            let app =
                start(Supervisor::builder("app").child(DynamicSupervisor::builder("pool"))).await;
            let pool = app.supervisor("pool").await.unwrap();
            pool.start_child(worker("b", async |_| {}).restart(RestartType::Temporary))
                .await
                .unwrap();
            settle().await;
            return (app, "pool/b#1");
        }
        "the root" => return (one(worker("b", idle)).await, "app"),
        "its supervisor stops" => {
            let app = one(worker("b", slow)).await;
            let call = app.clone();
            tokio::spawn(async move { call.stop("done").await });
            settle().await;
            app
        }
        other => panic!("{other}"),
    };
    (app, "b")
}

/// Returns the answer of a call in few words, after the seconds for which the caller has waited.
async fn answer<T>(
    call: impl Future<Output = Result<T, ControlError>>,
    text: impl Fn(T) -> String,
) -> String {
    let called = tokio::time::Instant::now();
    let answer = match timeout(Duration::from_secs(30), call).await.expect("an answer") {
        Ok(answer) => text(answer),
        Err(ControlError::Withheld { why, by, lasting, .. }) => {
            format!("withheld: {why} by {} for {lasting:?}", by.as_deref().unwrap_or("-"))
        }
        Err(ControlError::NotFound { exit, .. }) => {
            format!("not found: {}", exit.map_or("-".into(), |exit| exit.to_string()))
        }
        Err(ControlError::Root { .. }) => "root".to_owned(),
        Err(ControlError::Spent { .. }) => "spent".to_owned(),
        Err(ControlError::ShuttingDown { .. }) => "shutting down".to_owned(),
        Err(error) => panic!("{error}"),
    };
    match called.elapsed().as_secs() {
        0 => answer,
        waited => format!("{answer} after {waited} s"),
    }
}

/// Makes each call in a tree of its own, and returns the answers.
async fn answers(state: &str) -> [String; 4] {
    let started = |child: verger::ChildRef| match child.incarnation() {
        Some(incarnation) => format!("#{incarnation}"),
        None if child.is_gated() => format!("gated by {}", child.waits_for().join(", ")),
        None => panic!("{child:?}"),
    };
    let (app, path) = tree_in(state).await;
    let restart = answer(app.restart(path), started).await;
    let (app, path) = tree_in(state).await;
    let resume = answer(app.resume(path), started).await;
    let (app, path) = tree_in(state).await;
    let stop = answer(app.stop_child(path), |()| "ok".to_owned()).await;
    let (app, path) = tree_in(state).await;
    let kill = answer(app.kill(path), |it| it.was_running.to_string()).await;
    [restart, resume, stop, kill]
}

#[tokio::test(start_paused = true)]
async fn every_call_does_in_every_state_what_the_table_says() {
    let expected = [
        // state, restart, resume, stop_child, whether `kill` has found a task
        ("activating", ["#2 after 4 s", "#1 after 2 s", "ok after 2 s", "true"]),
        ("active", ["#2", "#1", "ok", "true"]),
        ("waits for its backoff", ["#2", "#2", "ok", "false"]),
        ("a callback decides", ["#2", "#2", "ok", "false"]),
        ("stopped by a call", ["#2 after 2 s", "#2 after 2 s", "ok after 2 s", "true"]),
        ("its group will start it", ["#2 after 1 s", "#2 after 1 s", "ok", "false"]),
        ("its group waits", ["#2", "#2", "ok", "false"]),
        ("stopped", ["#2", "#2", "ok", "false"]),
        ("finished", ["#2", "#2", "ok", "false"]),
        ("declined", ["#2", "#2", "ok", "false"]),
        ("given up", ["#2", "#2", "ok", "false"]),
        ("gated", ["gated by a", "gated by a", "ok", "false"]),
        (
            "held",
            ["withheld: held by alice for 3s", "withheld: held by alice for 3s", "ok", "false"],
        ),
        ("held, running", ["withheld: held by - for 1s", "#1", "ok", "true"]),
        ("a supervisor", ["#2", "#1", "ok", "true"]),
        ("one-shot, running", ["spent", "#1", "ok", "true"]),
        ("one-shot, spent", ["spent", "spent", "not found: shut down", "not found: shut down"]),
        (
            "gone",
            [
                "not found: ended normally",
                "not found: ended normally",
                "not found: ended normally",
                "not found: ended normally",
            ],
        ),
        ("the root", ["root"; 4]),
        ("its supervisor stops", ["shutting down", "shutting down", "ok after 2 s", "true"]),
    ];
    let mut actual = Vec::new();
    for (state, _) in &expected {
        actual.push((*state, answers(state).await));
    }
    let expected = expected.map(|(state, answers)| (state, answers.map(str::to_owned)));
    assert_eq!(actual, expected);
}

#[tokio::test(start_paused = true)]
async fn a_hold_stays_when_its_child_is_stopped_and_a_second_one_changes_nothing() {
    let app = one(worker("b", idle)).await;
    app.on_behalf_of("alice", "").hold("b").await.unwrap();
    sleep(SECOND).await;
    app.on_behalf_of("bob", "").hold("b").await.unwrap();
    app.stop_child("b").await.unwrap();

    let error = app.restart("b").await.unwrap_err();
    assert_eq!(error.to_string(), "`app/b` is held by alice for 1s; call `release`");

    app.release("b").await.unwrap();
    app.release("b").await.unwrap();
    app.reset("b").await.unwrap();
    assert_eq!(app.resume("b").await.unwrap().incarnation(), Some(2));
}

#[tokio::test(start_paused = true)]
async fn the_answer_about_a_start_that_fails_says_what_follows() {
    async fn refused(ctx: Context) -> Exit {
        if ctx.incarnation() == 1 {
            idle(ctx).await;
            return Ok(());
        }
        Err("connection refused".into())
    }
    let app = one(worker("b", refused).readiness(Readiness::Signal).backoff(minute())).await;
    let error = app.restart("b").await.unwrap_err();
    let ControlError::ActivationFailed { reason, next, .. } = error else { panic!("{error}") };
    assert_eq!(reason.to_string(), "activation failed: connection refused");
    assert_eq!(next, NextStep::Restart { after: Duration::from_secs(60) });
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_added_is_retried_where_one_that_is_started_is_removed() {
    async fn refused(ctx: Context) -> Exit {
        if ctx.incarnation() < 4 {
            return Err("connection refused".into());
        }
        idle(ctx).await;
        Ok(())
    }
    let spec = || worker("tunnel", refused).readiness(Readiness::Signal);
    let app = start(Supervisor::builder("app").strategy(Strategy::RestForOne)).await;

    app.start_child(spec()).await.unwrap_err();
    let error = app.which_child("tunnel").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no `app/tunnel` any more; its last exit: activation failed: connection refused"
    );

    let tunnel = app.add_child(spec()).await.unwrap();
    assert_eq!((tunnel.path().as_str(), tunnel.incarnation()), ("app/tunnel", None));
    let error = app.add_child(spec()).await.unwrap_err();
    assert!(matches!(error, ControlError::NameTaken { .. }));
    assert_eq!(app.child("tunnel").await.unwrap().incarnation(), Some(4));
}

#[tokio::test(start_paused = true)]
async fn an_added_child_whose_group_waits_does_not_end_the_wait() {
    let app = group(worker("a", fails_once).backoff(minute()), worker("b", idle)).await;
    sleep(2 * SECOND).await;
    let added = tokio::time::Instant::now();
    app.add_child(worker("c", idle)).await.unwrap();
    assert_eq!(app.child("c").await.unwrap().incarnation(), Some(1));
    assert_eq!(added.elapsed(), Duration::from_secs(59));
}

#[tokio::test(start_paused = true)]
async fn a_child_that_replaces_another_has_its_place_and_none_of_its_counts() {
    let app = Supervisor::builder("app")
        .strategy(Strategy::RestForOne)
        .child(worker("a", idle))
        .child(worker("b", slow))
        .child(worker("c", idle).requires("b"));
    let app = start(app).await;
    app.kill("b").await.unwrap();
    sleep(SECOND).await;

    let replacing = tokio::time::Instant::now();
    let b = app.replace_child(worker("b", idle)).await.unwrap();
    assert_eq!((b.incarnation(), replacing.elapsed()), (Some(1), 2 * SECOND));

    let children = app.children().await.unwrap();
    let listed: Vec<_> = children.iter().map(|it| (it.path.name(), it.incarnation)).collect();
    assert_eq!(listed, [("a", 1), ("b", 1), ("c", 2)]);
    assert_eq!(children[1].restarts, 0);

    // Its place decides which children restart with it.
    app.kill("b").await.unwrap();
    sleep(SECOND).await;
    let children = app.children().await.unwrap();
    let incarnations: Vec<_> = children.iter().map(|it| it.incarnation).collect();
    assert_eq!(incarnations, [1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn a_replacement_goes_on_without_its_caller_and_the_spec_stays_if_its_start_fails() {
    async fn refused(ctx: Context) -> Exit {
        if ctx.incarnation() == 1 {
            return Err("connection refused".into());
        }
        idle(ctx).await;
        Ok(())
    }
    let app = one(worker("b", slow)).await;
    let new = worker("b", refused).readiness(Readiness::Signal);
    let given_up = timeout(SECOND, app.replace_child(new)).await;
    assert!(given_up.is_err(), "the old child needs two seconds");
    sleep(3 * SECOND).await;
    assert_eq!(app.child("b").await.unwrap().incarnation(), Some(2));
    let last = app.which_child("b").await.unwrap().last_exit.unwrap();
    assert_eq!(last.reason.exit_kind(), ExitKind::ActivationFailed);
}

#[tokio::test(start_paused = true)]
async fn a_replacement_is_refused_before_the_old_child_is_stopped() {
    let app = one(worker("b", idle)).await;
    let error = app.replace_child(worker("b", idle).requires("db")).await.unwrap_err();
    assert!(matches!(error, ControlError::InvalidSpec(_)), "{error}");
    assert_eq!(app.child("b").await.unwrap().incarnation(), Some(1));

    let pool = start(Supervisor::builder("app").child(DynamicSupervisor::builder("pool"))).await;
    let pool = pool.supervisor("pool").await.unwrap();
    let error = pool.replace_child(worker("b", idle)).await.unwrap_err();
    assert!(matches!(error, ControlError::IsDynamic { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_sibling_that_requires_a_removed_child_waits_for_one_of_its_name() {
    let app = Supervisor::builder("app").child(worker("a", idle));
    let app = start(app.child(worker("b", idle).requires("a"))).await;
    app.remove("a").await.unwrap();
    assert!(app.restart("b").await.unwrap().is_gated());
    app.add_child(worker("a", idle)).await.unwrap();
    assert_eq!(app.child("b").await.unwrap().incarnation(), Some(2));
}

#[tokio::test(start_paused = true)]
async fn a_child_is_killed_while_its_supervisor_stops() {
    let app = one(worker("b", slow).shutdown(Shutdown::Infinity)).await;
    let (stopped, killed) = tokio::join!(app.stop("done"), async {
        settle().await;
        app.kill("b").await
    });
    assert!(killed.unwrap().was_running);
    let Err(verger::RunError::Forced { killed, .. }) = stopped else { panic!("{stopped:?}") };
    assert_eq!(killed[0].as_str(), "app/b");
}
