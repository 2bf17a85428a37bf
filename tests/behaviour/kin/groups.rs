//! Rules 100 to 115: the children of one supervisor that restart together, or don't.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{eager, endings, lifecycle, runs, secs, start};
use crate::common::{End, FakeChildren, NextStart, settle};
use tokio::time::{Instant, sleep};
use verger::status::ChildKind;
use verger::{
    Backoff, Child, Context, DynamicSupervisor, Exit, Lifecycle, RestartType, Shutdown, Strategy,
    Supervisor, async_trait, child,
};

/// In actor-ts, a child may have its own strategy. Here, a strategy belongs to the supervisor, and
/// a child sets everything else.
#[tokio::test(start_paused = true)]
async fn kin_100_a_childs_own_option_beats_the_supervisors_default() {
    let fakes = FakeChildren::new();
    let own = Backoff::constant(secs(7));
    let defaults = Backoff::constant(secs(3));
    let tree = Supervisor::builder("app").defaults(|child| {
        child.restart(RestartType::Transient).shutdown(secs(2)).backoff(defaults.clone())
    });
    let special = fakes.child("special").restart(RestartType::Temporary).shutdown(secs(9));
    let app = start(tree.child(fakes.child("plain")).child(special.backoff(own.clone()))).await;

    let plain = app.child_spec("plain").await.unwrap();
    assert_eq!(plain.restart, RestartType::Transient);
    assert_eq!((plain.shutdown, plain.backoff), (Shutdown::Timeout(secs(2)), defaults));
    let special = app.child_spec("special").await.unwrap();
    assert_eq!(special.restart, RestartType::Temporary);
    assert_eq!((special.shutdown, special.backoff), (Shutdown::Timeout(secs(9)), own));
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_102_a_failure_stays_within_its_supervisor() {
    for (strategy, group) in [(Strategy::OneForOne, [1, 2, 1]), (Strategy::OneForAll, [2, 2, 2])] {
        let fakes = FakeChildren::new();
        let below = eager("below").child(fakes.child("x")).child(fakes.child("y"));
        let mid = eager("mid").strategy(strategy);
        let mid = mid.child(fakes.child("a")).child(fakes.child("b")).child(below);
        let app = eager("app").strategy(Strategy::OneForAll);
        let app = start(app.child(fakes.child("top")).child(mid)).await;
        fakes.end("b", End::Error).await;

        assert_eq!(runs(&app).await, [1, 1], "{strategy}: not above");
        assert_eq!(runs(&app.supervisor("mid").await.unwrap()).await, group, "{strategy}");
        fakes.end("x", End::Panic).await;
        assert_eq!(runs(&app.supervisor("mid/below").await.unwrap()).await, [2, 1]);
        assert_eq!(runs(&app.supervisor("mid").await.unwrap()).await, group, "not above");
        // Several fail at once.
        fakes.end_without_settling("a", End::Error);
        fakes.end_without_settling("b", End::Panic);
        settle().await;
        let mid = runs(&app.supervisor("mid").await.unwrap()).await;
        let expected = if strategy == Strategy::OneForOne { [2, 3, 1] } else { [3, 3, 3] };
        assert_eq!(mid, expected, "{strategy}");
        app.stop("done").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn kin_103_a_temporary_child_ends_for_good() {
    for end in [End::Normal, End::Error, End::Panic] {
        let fakes = FakeChildren::new();
        let job = fakes.child("job").restart(RestartType::Temporary);
        let tree = eager("app").strategy(Strategy::OneForAll);
        let app = start(tree.child(fakes.child("a")).child(job)).await;
        fakes.actions();
        fakes.end("job", end).await;
        sleep(secs(1000)).await;

        assert_eq!(fakes.actions(), ["end job"]);
        assert_eq!(runs(&app).await, [1], "and is forgotten");
        app.stop("done").await.unwrap();
    }
}

/// A value whose first drop panics.
struct Dirty(u32);

#[async_trait]
impl Child for Dirty {
    async fn run(&mut self, ctx: &Context) -> Exit {
        ctx.run_until_cancelled(sleep(secs(1))).await;
        if self.0 == 1 {
            return Err("first".into());
        }
        ctx.cancelled().await;
        Ok(())
    }
}

impl Drop for Dirty {
    fn drop(&mut self) {
        assert_ne!(self.0, 1, "while it goes");
    }
}

#[tokio::test(start_paused = true)]
async fn kin_104_a_child_starts_after_two_failed_restarts() {
    let made = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&made);
    let spec = child("dirty", move || {
        let number = count.fetch_add(1, Ordering::Relaxed) + 1;
        assert_ne!(number, 2, "while it comes");
        Dirty(number)
    });
    let app = Supervisor::builder("app").restarts(3, secs(60)).child(spec.backoff(Backoff::none()));
    let app = start(app).await;
    let mut events = app.events();
    sleep(secs(2)).await;

    assert_eq!(made.load(Ordering::Relaxed), 3);
    assert_eq!(lifecycle(&app, "dirty").await, Lifecycle::Active);
    assert_eq!(endings(&mut events), ["app/dirty#1 panicked", "app/dirty#2 panicked"]);
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_105_a_failed_first_start_is_retried() {
    let fakes = FakeChildren::new();
    fakes.next_starts("a", [NextStart::Error, NextStart::Panic]);
    let tree =
        Supervisor::builder("app").child(fakes.child("a").backoff(Backoff::constant(secs(1))));
    let began = Instant::now();
    let app = start(tree).await;
    assert_eq!(began.elapsed(), secs(2));
    assert_eq!(fakes.actions(), ["try a", "try a", "start a"]);
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_109_each_strategy_restarts_exactly_these_children() {
    for (strategy, expected) in [
        (Strategy::OneForOne, [1, 2, 1]),
        (Strategy::OneForAll, [2, 2, 2]),
        (Strategy::RestForOne, [1, 2, 2]),
    ] {
        let fakes = FakeChildren::new();
        let tree = eager("app").strategy(strategy);
        let tree = tree.child(fakes.child("a")).child(fakes.child("b")).child(fakes.child("c"));
        let app = start(tree).await;
        fakes.end("b", End::Error).await;
        assert_eq!(runs(&app).await, expected, "{strategy}");
        app.stop("done").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn kin_111_restarting_is_transient_and_status_tells_supervisors_from_workers() {
    let fakes = FakeChildren::new();
    let wait = Backoff::constant(secs(1));
    let tree = eager("app").child(fakes.child("a").backoff(wait)).child(eager("mid"));
    let app = start(tree.child(DynamicSupervisor::builder("conns"))).await;
    fakes.end("a", End::Error).await;
    assert_eq!(lifecycle(&app, "a").await, Lifecycle::Restarting);
    sleep(secs(1)).await;
    settle().await;
    assert_eq!(lifecycle(&app, "a").await, Lifecycle::Active);

    let kinds: Vec<_> = app.children().await.unwrap().iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [ChildKind::Worker, ChildKind::Supervisor, ChildKind::Supervisor]);
    let counts = app.otp().count_children().await.unwrap();
    assert_eq!((counts.workers, counts.supervisors), (1, 2));
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_113_a_dynamic_supervisor_restarts_like_one_for_one() {
    let fakes = FakeChildren::new();
    let app = start(eager("app").child(DynamicSupervisor::builder("conns").unlimited_restarts()));
    let conns = app.await.supervisor("conns").await.unwrap();
    for name in ["a", "b", "c"] {
        conns.start_child(fakes.child(name).backoff(Backoff::none())).await.unwrap();
    }
    fakes.end("b", End::Error).await;
    assert_eq!(runs(&conns).await, [1, 2, 1]);
    fakes.end("b", End::Panic).await;
    fakes.end("c", End::Error).await;
    assert_eq!(runs(&conns).await, [1, 3, 2]);
}

#[tokio::test(start_paused = true)]
async fn kin_114_exactly_these_exits_restart_a_child() {
    use End::{Error, Normal, Panic};
    use RestartType::{Permanent, Temporary, Transient};
    for (restart, end, restarts) in [
        (Permanent, Normal, true),
        (Permanent, Error, true),
        (Permanent, Panic, true),
        (Transient, Normal, false),
        (Transient, Error, true),
        (Transient, Panic, true),
        (Temporary, Normal, false),
        (Temporary, Error, false),
        (Temporary, Panic, false),
    ] {
        let fakes = FakeChildren::new();
        let app = start(eager("app").child(fakes.child("a").restart(restart))).await;
        fakes.end("a", end).await;
        let expected: &[&str] =
            if restarts { &["start a", "end a", "start a"] } else { &["start a", "end a"] };
        assert_eq!(fakes.actions(), expected, "{restart}, {end:?}");
        app.stop("done").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn kin_115_each_strategy_stops_exactly_these_siblings() {
    let names = ["a", "b", "c", "d"];
    for strategy in [Strategy::OneForOne, Strategy::OneForAll, Strategy::RestForOne] {
        for (index, offender) in names.into_iter().enumerate() {
            let fakes = FakeChildren::new();
            let tree = eager("app").strategy(strategy);
            let tree = names.iter().fold(tree, |tree, name| tree.child(fakes.child(name)));
            let app = start(tree).await;
            fakes.actions();
            fakes.end(offender, End::Error).await;

            let siblings = names.iter().enumerate().rev().filter(|&(at, _)| at != index);
            let stopped = siblings.filter(|&(at, _)| match strategy {
                Strategy::OneForAll => true,
                Strategy::RestForOne => at > index,
                _ => false,
            });
            let expected: Vec<_> = stopped.map(|(_, name)| format!("stop {name}")).collect();
            let mut acts = fakes.actions();
            acts.retain(|act| act.starts_with("stop"));
            assert_eq!(acts, expected, "{strategy}, {offender}");
            let error = app.kill("missing").await.unwrap_err();
            assert_eq!(error.to_string(), "there is no `app/missing`");
            app.stop("done").await.unwrap();
        }
    }
}
