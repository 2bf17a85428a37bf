//! What happens in a tree while a plan is checked and applied to it.

use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use verger::config::{ApplyError, ChildConfig, Config};
use verger::policy::{Jitter, RestartPolicy};
use verger::{
    Backoff, ChildSpec, Context, ControlError, DynamicSupervisor, Exit, Lifecycle, Readiness,
    Shutdown, Supervisor, SupervisorHandle, worker,
};

use super::{Server, app, apply, config, idle, secs, start, try_apply};
use crate::common::{End, FakeChildren, settle};

fn restarts() -> ChildConfig<Server> {
    ChildConfig::<Server>::new().restart_on_change()
}

/// The ports that a child has seen.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<u16>>>, Arc<Notify>);

impl Seen {
    /// A child that reports each value of its configuration, and fails when it is told to.
    fn reader(&self, name: &str) -> ChildSpec {
        let Self(seen, fail) = self.clone();
        let run = move |ctx: Context| {
            let (seen, fail) = (Arc::clone(&seen), Arc::clone(&fail));
            async move {
                let mut config = ctx.config::<Server>()?;
                loop {
                    seen.lock().unwrap().push(config.get().port);
                    tokio::select! {
                        () = fail.notified() => return Err("told to".into()),
                        () = config.changed() => {}
                        () = ctx.cancelled() => return Exit::Ok(()),
                    }
                }
            }
        };
        worker(name, run).config(ChildConfig::<Server>::new())
    }

    fn ports(&self) -> Vec<u16> {
        self.0.lock().unwrap().clone()
    }
}

/// A child whose check takes 5 s.
fn slow(name: &str) -> ChildSpec {
    worker(name, idle).config(ChildConfig::<Server>::new().validate(async |_| -> Exit {
        tokio::time::sleep(secs(5)).await;
        Ok(())
    }))
}

/// A child that takes 10 s to find out that it can't work with port 2.
fn late(name: &str) -> ChildSpec {
    let run = async |ctx: Context| -> Exit {
        if ctx.config::<Server>()?.get().port == 2 {
            tokio::time::sleep(secs(10)).await;
            return Err("no".into());
        }
        ctx.ready();
        idle(ctx).await
    };
    worker(name, run).readiness(Readiness::Signal).config(restarts())
}

/// Applies a configuration in a task of its own, which has a second to begin.
async fn begin(
    tree: &SupervisorHandle,
    text: &'static str,
) -> tokio::task::JoinHandle<Result<Vec<String>, String>> {
    let tree = tree.clone();
    let applied = tokio::spawn(async move { try_apply(&tree, text).await });
    tokio::time::sleep(secs(1)).await;
    applied
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_added_while_values_are_checked_sees_the_new_one() {
    let seen = Seen::default();
    let tree = start(app().child(slow("slow")).child(DynamicSupervisor::builder("jobs"))).await;
    let jobs = tree.supervisor("jobs").await.unwrap();
    let applied = begin(&tree, "[slow.config]\nport = 2\n[\"jobs/job\".config]\nport = 2").await;
    jobs.start_child(seen.reader("job")).await.unwrap();
    settle().await;
    assert_eq!(seen.ports(), [0]);
    applied.await.unwrap().unwrap();
    settle().await;
    assert_eq!(seen.ports(), [0, 2]);

    let seen = Seen::default();
    let applied = begin(&tree, "[common.config]\nport = 3").await;
    tree.start_child(seen.reader("added")).await.unwrap();
    settle().await;
    applied.await.unwrap().unwrap();
    settle().await;
    assert_eq!(seen.ports(), [0, 3]);
}

#[tokio::test(start_paused = true)]
async fn a_supervisor_that_restarts_while_values_are_checked_has_the_new_ones() {
    let (seen, fakes) = (Seen::default(), FakeChildren::new());
    let room = Supervisor::builder("room").restarts(0, secs(60)).child(seen.reader("a"));
    let room = ChildSpec::from(room.child(fakes.child("bad").backoff(Backoff::none())));
    let tree = start(app().child(slow("slow")).child(DynamicSupervisor::builder("rooms"))).await;
    let rooms = tree.supervisor("rooms").await.unwrap();
    let backoff = Backoff::constant(secs(2)).jitter(Jitter::None);
    rooms.start_child(room.backoff(backoff)).await.unwrap();
    fakes.end("bad", End::Error).await;
    settle().await;
    let text = "[slow.config]\nport = 2\n[\"rooms/room/a\".config]\nport = 2";
    let applied = begin(&tree, text).await;
    applied.await.unwrap().unwrap();
    settle().await;
    assert_eq!(seen.ports(), [0, 0, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_value_that_is_taken_back_is_taken_back_from_a_child_that_came_meanwhile() {
    let seen = Seen::default();
    let backoff = Backoff::constant(secs(5)).jitter(Jitter::None);
    let tree = start(app().child(seen.reader("a").backoff(backoff)).child(late("b"))).await;
    settle().await;
    seen.1.notify_one();
    settle().await;
    let error = try_apply(&tree, "[common.config]\nport = 2").await.unwrap_err();
    assert_eq!(error, "rolled back, not active: `app/b`: activation failed: no");
    settle().await;
    assert_eq!(seen.ports(), [0, 2, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_meanwhile_is_the_answer() {
    let deaf = worker("deaf", async |ctx: Context| -> Exit {
        ctx.cancelled().await;
        tokio::time::sleep(secs(3)).await;
        Ok(())
    });
    let tree = start(app().child(deaf.config(restarts()))).await;
    let plan = tree.plan(&config("[deaf.config]\nport = 2")).await.unwrap();
    let applied = tokio::spawn({
        let tree = tree.clone();
        async move { tree.apply(plan).await }
    });
    tokio::time::sleep(secs(1)).await;
    tree.stop("done").await.unwrap();
    let error = applied.await.unwrap().unwrap_err();
    let is_over = matches!(
        error,
        ApplyError::Control(ControlError::ShuttingDown { .. } | ControlError::Ended { .. })
    );
    assert!(is_over, "{error}");
}

/// It changes nothing that runs, so it doesn't wait for the plan that waits for the child.
#[tokio::test(start_paused = true)]
async fn a_child_that_starts_or_stops_for_a_plan_can_set_a_policy() {
    fn policy() -> RestartPolicy {
        RestartPolicy::new().consecutive_restarts(2)
    }
    let starts = worker("starts", async |ctx: Context| -> Exit {
        ctx.parent().set_policy("b", policy()).await?;
        ctx.ready();
        idle(ctx).await
    });
    let stops = worker("stops", async |ctx: Context| -> Exit {
        ctx.cancelled().await;
        ctx.parent().set_policy("b", policy()).await?;
        Ok(())
    });
    let starts = starts.readiness(Readiness::Signal).config(restarts());
    let stops = stops.shutdown(Shutdown::Infinity);
    let tree = start(app().child(worker("b", idle)).child(starts).child(stops)).await;
    let began = tokio::time::Instant::now();
    apply(&tree, "[starts.config]\nport = 1\n[stops]\nenabled = false").await;
    assert_eq!(began.elapsed(), secs(0));
    assert_eq!(tree.child_spec("b").await.unwrap().consecutive_restarts, Some(2));
}

#[tokio::test(start_paused = true)]
async fn a_child_that_a_call_has_configured_stays_until_a_forced_plan() {
    let config = |section: Option<&str>| {
        let config = ChildConfig::<Server>::new().start_when_configured();
        match section {
            Some(section) => config.section(section),
            None => config,
        }
    };
    for section in [None, Some("storage")] {
        let tree = start(app().child(worker("a", idle).config(config(section)))).await;
        tree.set_config("a", Server { port: 1 }).await.unwrap();
        apply(&tree, "[common]\nshutdown = \"9s\"").await;
        let a = tree.which_child("a").await.unwrap();
        assert_eq!((a.lifecycle, a.incarnation), (Lifecycle::Active, 1), "{section:?}");
        tree.apply(tree.plan(&Config::new()).await.unwrap().forced()).await.unwrap();
        let a = tree.which_child("a").await.unwrap();
        assert_eq!(a.lifecycle, Lifecycle::Discovered, "{section:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dynamic_child_that_is_added_while_values_are_checked_is_restarted_as_well() {
    let seen = Seen::default();
    let slow = || {
        restarts().validate(async |_| -> Exit {
            tokio::time::sleep(secs(5)).await;
            Ok(())
        })
    };
    let tree = start(app().child(DynamicSupervisor::builder("jobs"))).await;
    let jobs = tree.supervisor("jobs").await.unwrap();
    jobs.start_child(seen.reader("job").config(slow())).await.unwrap();
    let set = tokio::spawn({
        let tree = tree.clone();
        async move { tree.set_config("jobs/job", Server { port: 2 }).await }
    });
    tokio::time::sleep(secs(1)).await;
    jobs.start_child(seen.reader("job").config(slow())).await.unwrap();
    set.await.unwrap().unwrap();
    settle().await;
    for name in ["job#1", "job#2"] {
        let job = jobs.which_child(name).await.unwrap();
        assert_eq!((job.lifecycle, job.incarnation), (Lifecycle::Active, 2), "{name}");
    }
    assert_eq!(seen.ports(), [0, 0, 2, 2]);
}
