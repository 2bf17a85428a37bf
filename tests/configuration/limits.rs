//! Restart limits in layers: what is written replaces the built-in limit, and what is taken out brings the lower layer
//! back.

use verger::policy::{Intensity, PolicySource, Preset, RestartPolicy};
use verger::{Backoff, Context, Exit, Lifecycle, Readiness, Supervisor, SupervisorHandle, worker};

use crate::{app, apply, idle, secs, start, start_with};

/// The limit over time that applies to the child, where it was written, and its consecutive restarts.
async fn limits(
    tree: &SupervisorHandle,
    path: &str,
) -> (Option<Intensity>, PolicySource, Option<u32>) {
    let spec = tree.child_spec(path).await.unwrap();
    (spec.intensity, spec.sources.intensity, spec.consecutive_restarts)
}

fn sliding(max: u32, seconds: u64) -> Option<Intensity> {
    Some(Intensity::sliding(max, secs(seconds)))
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_a_file_replaces_the_built_in_one_until_it_is_taken_out() {
    let tree = start(app().child(worker("a", idle))).await;
    let built_in = (sliding(12, 300), PolicySource::Default, None);
    assert_eq!(limits(&tree, "a").await, built_in);
    apply(&tree, "[a.restart]\nown_restarts = { max = 3, period = \"10s\" }").await;
    assert_eq!(limits(&tree, "a").await, (sliding(3, 10), PolicySource::File, None));
    apply(&tree, "[a.restart]\nconsecutive_restarts = 20").await;
    assert_eq!(limits(&tree, "a").await, (None, PolicySource::Default, Some(20)));
    apply(&tree, "").await;
    assert_eq!(limits(&tree, "a").await, built_in);
}

#[tokio::test(start_paused = true)]
async fn a_higher_layer_replaces_the_limit_of_its_kind_and_leaves_the_others() {
    let child = worker("a", idle).own_restarts(5, secs(60)).consecutive_restarts(4);
    let tree = start(app().child(child)).await;
    assert_eq!(limits(&tree, "a").await, (sliding(5, 60), PolicySource::Spec, Some(4)));
    apply(&tree, "[a.restart]\nown_restarts = { max = 9, period = \"1m\" }").await;
    assert_eq!(limits(&tree, "a").await, (sliding(9, 60), PolicySource::File, Some(4)));
    tree.set_policy("a", RestartPolicy::new().own_restarts(7, secs(60))).await.unwrap();
    assert_eq!(limits(&tree, "a").await, (sliding(7, 60), PolicySource::Call, Some(4)));
    tree.clear_policy("a").await.unwrap();
    assert_eq!(limits(&tree, "a").await, (sliding(9, 60), PolicySource::File, Some(4)));
}

#[tokio::test(start_paused = true)]
async fn unlimited_restarts_in_a_file_void_every_limit_below_it() {
    let child = worker("a", idle).own_restarts(5, secs(60)).consecutive_restarts(4);
    let tree = start(app().child(child)).await;
    apply(&tree, "[a.restart]\nunlimited_restarts = true").await;
    assert_eq!(limits(&tree, "a").await, (None, PolicySource::Default, None));
    apply(&tree, "[a.restart]\nunlimited_restarts = true\nconsecutive_restarts = 9").await;
    assert_eq!(limits(&tree, "a").await, (None, PolicySource::Default, Some(9)));
    apply(&tree, "[common.restart]\nfailing_for = \"1h\"\n[a.restart]\nunlimited_restarts = true")
        .await;
    assert_eq!(tree.child_spec("a").await.unwrap().failing_for, None);
    apply(&tree, "[a.restart]\nunlimited_restarts = false").await;
    assert_eq!(limits(&tree, "a").await, (sliding(5, 60), PolicySource::Spec, Some(4)));
}

#[tokio::test(start_paused = true)]
async fn a_written_period_is_not_extended_even_if_it_has_the_value_of_the_default() {
    let tree = start(app().child(worker("a", idle).watchdog(secs(3_600)))).await;
    // 12 * (3,600 + 5 + 1) s, and 205.2 s of delays.
    let default = (sliding(12, 725 * 60), PolicySource::Default, None);
    assert_eq!(limits(&tree, "a").await, default);
    apply(&tree, "[a.restart]\nown_restarts = { max = 12, period = \"5m\" }").await;
    assert_eq!(limits(&tree, "a").await, (sliding(12, 300), PolicySource::File, None));
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_all_children_in_a_file_replaces_the_built_in_one_of_each() {
    let tree = start(app().child(worker("a", idle))).await;
    apply(&tree, "[app]\nmax_restarts = 5\nperiod = \"60s\"").await;
    assert_eq!(limits(&tree, "a").await, (None, PolicySource::Default, None));
    let root = tree.status().await.unwrap().root.supervisor.unwrap();
    assert_eq!((root.max_restarts, root.child_limit), (Some(5), None));
    apply(&tree, "[app]\nunlimited_restarts = true").await;
    assert_eq!(limits(&tree, "a").await, (None, PolicySource::Default, None));
    apply(&tree, "").await;
    assert_eq!(limits(&tree, "a").await.0, sliding(12, 300));
}

async fn refused(_ctx: Context) -> Exit {
    Err("connection refused".into())
}

#[tokio::test(start_paused = true)]
async fn whether_failed_starts_are_charged_can_be_changed_while_the_tree_runs() {
    let db = worker("db", refused).readiness(Readiness::Signal).backoff(Backoff::constant(secs(1)));
    let app = Supervisor::builder("app").restarts(3, secs(60)).child(worker("a", idle)).child(db);
    let tree = app.first_start(verger::policy::FirstStart::Retry).build().unwrap();
    let tree = tokio::spawn(tree.start());
    tokio::time::sleep(secs(100)).await;
    assert!(!tree.is_finished(), "a hundred failures are not charged");
    tree.abort();

    let db = worker("db", async |ctx: Context| -> Exit {
        if ctx.incarnation() > 1 {
            return Err("connection refused".into());
        }
        ctx.ready();
        tokio::time::sleep(secs(1)).await;
        Err("the connection was closed".into())
    });
    let db = db.readiness(Readiness::Signal).backoff(Backoff::constant(secs(1)));
    let tree = start(Supervisor::builder("app").restarts(3, secs(600)).child(db)).await;
    tokio::time::sleep(secs(100)).await;
    assert_eq!(tree.which_child("db").await.unwrap().lifecycle, Lifecycle::Restarting);
    let changes = apply(&tree, "[app]\ncount_failed_starts = true").await;
    assert_eq!(
        changes,
        ["~ app  count_failed_starts  false → true  at the next failure  app.toml:2"]
    );
    let began = tokio::time::Instant::now();
    let error = tree.wait().await.unwrap_err().to_string();
    assert!(error.starts_with("`app` gave up on `app/db`"), "{error}");
    // One was charged in the beginning, two more are granted.
    assert!(began.elapsed() <= secs(3), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_written_false_in_a_file_overrides_a_preset() {
    let db = worker("db", async |ctx: Context| -> Exit {
        if ctx.incarnation() < 50 {
            return Err("connection refused".into());
        }
        ctx.ready();
        ctx.cancelled().await;
        Ok(())
    });
    let db = db.readiness(Readiness::Signal).backoff(Backoff::constant(secs(1)));
    let app = app().preset(Preset::oversight()).child(db);
    let tree = start_with(app, "[app]\ncount_failed_starts = false").await;
    assert_eq!(tree.which_child("db").await.unwrap().incarnation, 50);
}
