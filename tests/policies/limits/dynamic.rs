//! The limits of dynamic supervisors: per child by default, or shared.

use tracing::level_filters::LevelFilter;

use super::{MINUTE, secs};
use crate::common::{End, FakeChildren, NextStart, settle, start};
use crate::log::Log;
use verger::dead_letter::DeadLetterReason;
use verger::policy::{Effective, Intensity, OnExhausted, PolicySource, Preset};
use verger::status::{EventKind, Status};
use verger::{
    Backoff, ChildDefaults, ChildSpec, ControlError, DynamicSupervisor, DynamicSupervisorBuilder,
    Exit, Lifecycle, RunError, Supervisor, SupervisorHandle, mailbox, worker_with_mailbox,
};

fn at_once(child: ChildDefaults) -> ChildDefaults {
    child.backoff(Backoff::none())
}

async fn run(pool: DynamicSupervisorBuilder) -> SupervisorHandle {
    pool.build().unwrap().start().await.unwrap()
}

/// Starts children named `0`, `1` and so on, whose segments are `0#1`, `1#2` and so on.
async fn fill(tree: &SupervisorHandle, fakes: &FakeChildren, count: usize) {
    for number in 0..count {
        tree.start_child(fakes.child(&number.to_string())).await.unwrap();
    }
}

async fn names(tree: &SupervisorHandle) -> Vec<String> {
    let children = tree.children().await.unwrap();
    children.into_iter().map(|child| child.path.name().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn six_failing_connections_do_not_end_three_healthy_ones() {
    let fakes = FakeChildren::new();
    let app = Supervisor::builder("app").child(DynamicSupervisor::builder("conns"));
    let tree = start(app).await;
    let conns = tree.supervisor("conns").await.unwrap();
    fill(&conns, &fakes, 9).await;
    let mut events = conns.events();

    for round in 0..13 {
        for number in 0..6 {
            fakes.end(&number.to_string(), End::Error).await;
        }
        if round < 12 {
            assert_eq!(names(&conns).await.len(), 9, "after {} restarts", round + 1);
            tokio::time::sleep(secs(if round < 5 { 8 } else { 31 })).await;
        }
    }

    assert_eq!(names(&conns).await, ["6#7", "7#8", "8#9"]);
    let conns = tree.which_child("conns").await.unwrap();
    assert_eq!((conns.lifecycle, conns.incarnation), (Lifecycle::Active, 1));
    let mut given_up = Vec::new();
    while let Some(event) = events.try_next() {
        match event.kind {
            EventKind::GaveUp { .. } => given_up.push(event.path.name().to_owned()),
            EventKind::Removed => assert_eq!(given_up.last().unwrap(), event.path.name()),
            _ => {}
        }
    }
    assert_eq!(given_up, ["0#1", "1#2", "2#3", "3#4", "4#5", "5#6"]);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_exceeds_its_limit_is_logged_and_removed_and_its_queue_becomes_letters() {
    let log = Log::at(LevelFilter::ERROR);
    let tree = run(DynamicSupervisor::builder("conns").defaults(at_once)).await;
    let mut letters = tree.dead_letters();
    let mut events = tree.events();
    let (address, mailbox) = mailbox::<u32>();
    let conn = worker_with_mailbox("conn", mailbox, async |_ctx, _inbox| -> Exit {
        Err("reset by peer".into())
    });
    address.try_send(1).unwrap();
    address.try_send(2).unwrap();

    tree.start_child(conn).await.unwrap();
    settle().await;

    assert_eq!(names(&tree).await, [""; 0]);
    assert_eq!(
        log.lines(),
        ["ERROR verger::restart: giving up child=conns/conn#1 incarnation=13 \
          cause=\"failed: reset by peer\" lived=0ns failing=0ns restarts=12 limit=\"12 in 5m\" source=default \
          then=remove"]
    );
    let mut reasons = Vec::new();
    while let Some(letter) = letters.try_next() {
        assert_eq!(letter.target.as_str(), "conns/conn#1");
        reasons.push(letter.reason);
    }
    assert_eq!(reasons, [DeadLetterReason::GaveUp; 3], "the child and its two messages");
    let mut edges = Vec::new();
    while let Some(event) = events.try_next() {
        match event.kind {
            EventKind::Moved { from, to, .. } => edges.push(format!("{from} {to}")),
            EventKind::Removed => edges.push("removed".to_owned()),
            _ => {}
        }
    }
    let last = &edges[edges.len() - 3..];
    assert_eq!(last, ["active errored", "errored stopped", "removed"]);
    let error = tree.which_child("conn#1").await.unwrap_err();
    assert!(matches!(error, ControlError::NotFound { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn restarts_that_fail_to_start_do_not_count_for_the_default_limit() {
    let fakes = FakeChildren::new();
    let tree = run(DynamicSupervisor::builder("conns")).await;
    fill(&tree, &fakes, 1).await;
    fakes.next_starts("0", [NextStart::Error; 20]);
    fakes.end("0", End::Error).await;
    tokio::time::sleep(secs(3_600)).await;
    assert_eq!(tree.which_child("0#1").await.unwrap().lifecycle, Lifecycle::Active, "it is back");

    // An explicit limit of the child counts them.
    let fakes = FakeChildren::new();
    let limited = |child: ChildDefaults| child.own_restarts(5, MINUTE);
    let tree = run(DynamicSupervisor::builder("conns").defaults(limited)).await;
    fill(&tree, &fakes, 1).await;
    fakes.next_starts("0", [NextStart::Error; 20]);
    fakes.end("0", End::Error).await;
    tokio::time::sleep(secs(3_600)).await;
    assert_eq!(names(&tree).await, [""; 0]);
}

/// Fails one of two children up to twenty times. Returns how often it was restarted, and whether the
/// supervisor has ended.
async fn failures(pool: DynamicSupervisorBuilder, spec: fn(ChildSpec) -> ChildSpec) -> (u32, bool) {
    let fakes = FakeChildren::new();
    let tree = run(pool.defaults(|child| child.backoff(Backoff::none()))).await;
    fill(&tree, &fakes, 1).await;
    let bad = tree.start_child(spec(fakes.child("bad"))).await.unwrap();
    for restarts in 0..20 {
        fakes.end("bad", End::Error).await;
        match tree.which_child(bad.name()).await {
            Ok(child) if child.lifecycle == Lifecycle::Active => {}
            Ok(_) | Err(ControlError::NotFound { .. }) => return (restarts, false),
            Err(_) => return (restarts, true),
        }
    }
    (20, false)
}

#[tokio::test(start_paused = true)]
async fn the_limit_is_per_child_or_shared_or_both() {
    let pool = || DynamicSupervisor::builder("conns");
    let same = |spec| spec;
    assert_eq!(failures(pool(), same).await, (12, false), "the default");
    assert_eq!(failures(pool().restarts(3, MINUTE), same).await, (3, true), "it is shared");
    assert_eq!(failures(pool().unlimited_restarts(), same).await, (20, false), "there is none");
    let own = |spec: ChildSpec| spec.own_restarts(2, MINUTE);
    assert_eq!(failures(pool(), own).await, (2, false), "the spec replaces the default");
    let each = |max| pool().defaults(move |child| child.own_restarts(max, MINUTE));
    assert_eq!(failures(each(7), same).await, (7, false), "the defaults replace it");
    assert_eq!(failures(each(2).restarts(3, MINUTE), same).await, (2, false), "both count");
    assert_eq!(failures(each(4).restarts(3, MINUTE), same).await, (3, true), "both count");
    let escalates = pool().on_exhausted(OnExhausted::Escalate);
    assert_eq!(failures(escalates, same).await, (12, true), "an explicit answer");
    for (preset, restarts) in [(Preset::otp(), 1), (Preset::elixir(), 3)] {
        let name = preset.name();
        assert_eq!(failures(pool().preset(preset), same).await, (restarts, true), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_stopped_at_its_limit_is_kept_for_a_retry() {
    let fakes = FakeChildren::new();
    let pool = DynamicSupervisor::builder("conns").on_exhausted(OnExhausted::StopChild);
    let tree = run(pool.defaults(|child| at_once(child).own_restarts(0, MINUTE))).await;
    fill(&tree, &fakes, 1).await;
    fakes.end("0", End::Error).await;
    let child = tree.which_child("0#1").await.unwrap();
    assert_eq!((child.lifecycle, child.why), (Lifecycle::Stopped, Some("given up")));
    tree.resume("0#1").await.unwrap();
    assert_eq!(tree.which_child("0#1").await.unwrap().lifecycle, Lifecycle::Active);
}

#[tokio::test(start_paused = true)]
async fn status_and_spec_show_the_limit_of_each_child() {
    let fakes = FakeChildren::new();
    let tree = run(DynamicSupervisor::builder("conns")).await;
    fill(&tree, &fakes, 1).await;
    let limit = Intensity::sliding(12, 5 * MINUTE);

    let policy = tree.which_child("0#1").await.unwrap().policy.unwrap();
    let intensity = policy.intensity().unwrap();
    assert_eq!((intensity.value, intensity.source), (limit, PolicySource::Default));
    let Effective { value, source, .. } = policy.on_exhausted();
    assert_eq!((value, source), (OnExhausted::Remove, PolicySource::Default));
    let spec = tree.child_spec("0#1").await.unwrap();
    assert_eq!((spec.intensity, spec.on_exhausted), (Some(limit), OnExhausted::Remove));
    let status = tree.status().await.unwrap();
    let limit = |status: &Status| status.root.supervisor.as_ref().unwrap().max_restarts;
    assert_eq!(
        status.root.supervisor.as_ref().unwrap().child_limit,
        Some(Intensity::sliding(12, 5 * MINUTE))
    );
    assert!(status.to_string().starts_with("conns  dynamic 12 in 5m for each  active"), "{status}");
    assert_eq!(limit(&status), None, "there is no limit for all");

    let tree = run(DynamicSupervisor::builder("conns").restarts(3, MINUTE)).await;
    fill(&tree, &fakes, 1).await;
    assert_eq!(tree.child_spec("0#1").await.unwrap().intensity, None);
    assert_eq!(limit(&tree.status().await.unwrap()), Some(3));
}

#[tokio::test(start_paused = true)]
async fn the_last_child_of_an_ordered_supervisor_keeps_its_place_when_it_is_to_be_removed() {
    let fakes = FakeChildren::new();
    let child = fakes.child("a").own_restarts(0, MINUTE).on_exhausted(OnExhausted::Remove);
    let tree = start(Supervisor::builder("app").child(child).child(fakes.child("b"))).await;
    fakes.end("a", End::Error).await;
    assert_eq!(tree.which_child("a").await.unwrap().lifecycle, Lifecycle::Stopped);

    let app = Supervisor::builder("app").restarts(0, MINUTE).on_exhausted(OnExhausted::Remove);
    let tree = start(app.child(fakes.child("c"))).await;
    fakes.end("c", End::Error).await;
    assert!(matches!(tree.wait().await, Err(RunError::GaveUp { .. })), "the limit of all");
}

#[test]
fn a_pool_without_room_is_warned_of() {
    let pool = DynamicSupervisor::builder("conns").max_children(0);
    let app = Supervisor::builder("app").child(pool).build().unwrap();
    let [warning] = app.warnings() else { panic!("{:?}", app.warnings()) };
    assert!(matches!(warning, verger::error::BuildWarning::NoRoom { .. }));
    assert_eq!(
        warning.to_string(),
        "`app/conns` has `max_children(0)`, so it refuses every child; write the number of \
         children that it may have, or leave it out for no limit"
    );
    let app = DynamicSupervisor::builder("conns").max_children(1).build().unwrap();
    assert_eq!(app.warnings(), []);
}
