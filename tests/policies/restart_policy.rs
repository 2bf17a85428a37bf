//! A child's override of its own restart policy, for one incarnation.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{settle, start};
use tokio::time::{Instant, sleep};
use verger::policy::RestartPolicy;
use verger::{
    Backoff, ChildSpec, Context, DynamicSupervisor, Exit, ExitError, Lifecycle, RestartType,
    Supervisor, SupervisorBuilder, worker,
};

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn never() -> RestartPolicy {
    RestartPolicy::new().restart(RestartType::Temporary)
}

fn always() -> RestartPolicy {
    RestartPolicy::new().restart(RestartType::Permanent)
}

fn eager(name: &str) -> SupervisorBuilder {
    let builder = Supervisor::builder(name).unlimited_restarts();
    builder.defaults(|child| child.backoff(Backoff::none()))
}

/// A child that overrides its policy and then fails at once. Its third incarnation stays up.
fn saying(say: impl Fn(&Context) -> Exit + Send + Sync + Clone + 'static) -> ChildSpec {
    worker("child", move |ctx: Context| {
        let say = say.clone();
        async move {
            if ctx.incarnation() == 3 {
                ctx.cancelled().await;
                return Ok(());
            }
            say(&ctx)?;
            Err(ExitError::from("it fails"))
        }
    })
}

#[tokio::test(start_paused = true)]
async fn seed4_28_an_override_lasts_for_one_incarnation_and_none_restores_the_spec() {
    // The first incarnation sets `never`; the second sets nothing.
    let app = start(eager("app").child(saying(|ctx| match ctx.incarnation() {
        1 => Ok(ctx.set_restart_policy(Some(never()))?),
        _ => Ok(()),
    })));
    let app = app.await;
    settle().await;
    let child = app.which_child("child").await.unwrap();
    assert_eq!((child.lifecycle, child.incarnation), (Lifecycle::Errored, 1));
    assert_eq!(child.why, Some("not restarted"));
    assert_eq!(child.last_exit.unwrap().to_string(), "failed: it fails");
    assert_eq!(child.restart, RestartType::Permanent, "the spec is what it was");

    app.otp().restart_child("child").await.unwrap();
    settle().await;
    assert_eq!(app.which_child("child").await.unwrap().incarnation, 3, "the next is forgotten");
    app.stop("done").await.unwrap();

    // Set and cleared again.
    let app = start(eager("app").child(saying(|ctx| {
        ctx.set_restart_policy(Some(never()))?;
        Ok(ctx.set_restart_policy(None)?)
    })));
    let app = app.await;
    settle().await;
    assert_eq!(app.which_child("child").await.unwrap().incarnation, 3);
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_76_a_file_beats_the_defaults_and_the_childs_override_beats_the_file() {
    let defaults = || {
        eager("app")
            .defaults(|child| child.restart(RestartType::Temporary).backoff(Backoff::none()))
    };
    let file =
        |word: &str| -> RestartPolicy { toml::from_str(&format!("restart = {word:?}")).unwrap() };
    // The policy of the file, the child's override, and the number of runs.
    let table = [
        (None, vec![], None),
        (Some("always"), vec![], Some(3)),
        (Some("always"), vec![Some(never())], Some(1)),
        (Some("always"), vec![Some(never()), None], Some(3)),
        (None, vec![Some(always())], Some(3)),
        (None, vec![Some(always()), None], None),
    ];
    for (word, said, runs) in table {
        let says = said.clone();
        let mut child = saying(move |ctx| {
            says.iter().try_for_each(|policy| ctx.set_restart_policy(policy.clone()))?;
            Ok(())
        });
        if let Some(word) = word {
            child = child.policy(file(word));
        }
        let app = start(defaults().child(child)).await;
        settle().await;
        let child = app.which_child("child").await.ok();
        assert_eq!(child.map(|child| child.incarnation), runs, "{word:?}, {said:?}");
        app.stop("done").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_override_right_before_the_exit_applies() {
    let backoff = |wait| RestartPolicy::new().backoff(Backoff::constant(secs(wait)));
    let app = start(eager("app").child(saying(move |ctx| {
        ctx.set_restart_policy(Some(never()))?;
        Ok(ctx.set_restart_policy(Some(backoff(u64::from(ctx.incarnation()) * 4)))?)
    })));
    let app = app.await;
    let began = Instant::now();
    sleep(secs(60)).await;
    let child = app.which_child("child").await.unwrap();
    assert_eq!((child.incarnation, child.age), (3, began.elapsed() - secs(4 + 8)));
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_override_from_an_earlier_incarnation_is_ignored() {
    let first: Arc<Mutex<Option<Context>>> = Arc::default();
    let kept = Arc::clone(&first);
    let app = start(eager("app").child(saying(move |ctx| {
        let mut kept = kept.lock().unwrap();
        let earlier = kept.get_or_insert_with(|| ctx.clone());
        match ctx.incarnation() {
            1 => Ok(()),
            _ => Ok(earlier.set_restart_policy(Some(never()))?),
        }
    })));
    let app = app.await;
    settle().await;
    assert_eq!(app.which_child("child").await.unwrap().incarnation, 3);
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_override_also_decides_about_a_normal_end() {
    let runs = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&runs);
    let child = worker("child", move |ctx: Context| {
        count.fetch_add(1, Ordering::Relaxed);
        let transient = RestartPolicy::new().restart(RestartType::Transient);
        async move { ctx.set_restart_policy(Some(transient)) }
    });
    let app = start(eager("app").child(child)).await;
    settle().await;
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    let child = app.which_child("child").await.unwrap();
    assert_eq!((child.lifecycle, child.why), (Lifecycle::Stopped, Some("finished")));
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_dynamic_supervisor_removes_a_child_that_overrides_its_restart_to_never() {
    let app = eager("app").child(DynamicSupervisor::builder("conns"));
    let app = start(app).await;
    let conns = app.supervisor("conns").await.unwrap();
    let child = saying(|ctx| Ok(ctx.set_restart_policy(Some(never()))?));
    conns.start_child(child).await.unwrap();
    settle().await;
    assert_eq!(conns.otp().count_children().await.unwrap().specs, 0);
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_invalid_backoff_is_refused_with_the_path() {
    let said: Arc<Mutex<String>> = Arc::default();
    let sink = Arc::clone(&said);
    let app = start(eager("app").child(saying(move |ctx| {
        let backoff = Backoff::exponential(secs(2), secs(1));
        let policy = never().backoff(backoff);
        let refused = ctx.set_restart_policy(Some(policy)).unwrap_err();
        *sink.lock().unwrap() = refused.to_string();
        Ok(())
    })));
    let app = app.await;
    settle().await;
    let text = said.lock().unwrap().clone();
    assert!(text.starts_with("the backoff of `app/child` cannot work: "), "{text}");
    assert_eq!(app.which_child("child").await.unwrap().incarnation, 3, "nothing is changed");
    app.stop("done").await.unwrap();
}
