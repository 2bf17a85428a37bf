//! Dead letters of children: each supervisor has its own channel, letters propagate upwards, and a
//! store keeps them.

use std::time::Duration;

use crate::common::{End, FakeChildren, settle, start};
use verger::dead_letter::{DeadLetterReason, DeadLetterStore, ReplayError};
use verger::policy::OnExhausted;
use verger::{DynamicSupervisor, Supervisor, SupervisorBuilder};

/// A supervisor that gives up on a child at its first failure and continues without it.
fn strict(name: &str) -> SupervisorBuilder {
    let builder = Supervisor::builder(name).restarts(0, Duration::from_secs(60));
    builder.on_exhausted(OnExhausted::StopChild)
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_reaches_its_ancestors_only() {
    let fakes = FakeChildren::new();
    let minute = Duration::from_secs(60);
    let mid = Supervisor::builder("mid").restarts(0, minute).child(fakes.child("leaf"));
    let top = Supervisor::builder("top").restarts(0, minute).child(mid);
    let beside = Supervisor::builder("beside").child(fakes.child("other"));
    let app = Supervisor::builder("app").child(top).child(beside);
    let app = app.build().unwrap().start().await.unwrap();
    let mut at_app = app.dead_letters();
    let mut at_top = app.supervisor("top").await.unwrap().dead_letters();
    let mut at_mid = app.supervisor("top/mid").await.unwrap().dead_letters();
    let mut at_beside = app.supervisor("beside").await.unwrap().dead_letters();

    fakes.end("leaf", End::Error).await;
    settle().await;

    let leaf = ("app/top/mid/leaf", "failed: leaf failed");
    let mid = ("app/top/mid", "escalated: child app/top/mid/leaf: failed: leaf failed");
    for (letters, expected) in
        [(&mut at_mid, vec![leaf]), (&mut at_top, vec![leaf, mid]), (&mut at_app, vec![leaf, mid])]
    {
        for (target, error) in expected {
            let letter = letters.try_next().expect("a letter");
            assert_eq!(letter.reason, DeadLetterReason::GaveUp);
            assert_eq!((letter.target.as_str(), letter.incarnation), (target, 1));
            assert_eq!(letter.error.unwrap().to_string(), error);
        }
        assert!(letters.try_next().is_none());
    }
    assert!(at_mid.next().await.is_none(), "its supervisor has ended, and so has the channel");
    assert!(at_beside.try_next().is_none());
    app.stop("enough").await.unwrap();
    assert!(at_app.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn seed3_03_every_subscriber_receives_every_dead_letter() {
    let fakes = FakeChildren::new();
    let app = start(strict("app").child(fakes.child("a")).child(fakes.child("b"))).await;
    let mut both = [app.dead_letters(), app.dead_letters()];
    fakes.end("a", End::Error).await;
    fakes.end("b", End::Panic).await;
    for letters in &mut both {
        for (target, error) in [("app/a", "failed: a failed"), ("app/b", "panicked: b panicked")] {
            let letter = letters.try_next().expect("a letter");
            assert_eq!((letter.target.as_str(), letter.event_type), (target, None));
            assert_eq!(letter.error.as_ref().unwrap().to_string(), error);
            assert!(!letter.suppressed && !letter.is::<()>());
            assert_eq!(letter.take::<()>(), None, "there is no message");
        }
        assert!(letters.try_next().is_none());
    }
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn seed3_04_a_serialised_dead_letter_has_all_its_fields() {
    let fakes = FakeChildren::new();
    let app = start(strict("app").child(fakes.child("a"))).await;
    let mut letters = app.dead_letters();
    fakes.end("a", End::Error).await;
    let mut json = serde_json::to_value(letters.try_next().unwrap()).unwrap();
    assert!(json["at_ms"].as_u64().unwrap() > 1_700_000_000_000, "of this age: {json}");
    json.as_object_mut().unwrap().remove("at_ms");
    let expected = serde_json::json!({
        "reason": "gave_up",
        "target": "app/a",
        "incarnation": 1,
        "event_type": null,
        "error": { "kind": "failed", "message": "failed: a failed" },
        "suppressed": false,
    });
    assert_eq!(json, expected);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn seed3_06_a_panicking_subscriber_affects_no_other_subscriber() {
    let fakes = FakeChildren::new();
    let app = start(strict("app").child(fakes.child("a")).child(fakes.child("b"))).await;
    let (mut clumsy, mut other) = (app.dead_letters(), app.dead_letters());
    let clumsy = tokio::spawn(async move {
        let letter = clumsy.next().await.unwrap();
        panic!("what is this: {letter:?}");
    });
    fakes.end("a", End::Error).await;
    assert!(clumsy.await.unwrap_err().is_panic());
    fakes.end("b", End::Error).await;
    let targets: Vec<_> =
        std::iter::from_fn(|| other.try_next()).map(|letter| letter.target.to_string()).collect();
    assert_eq!(targets, ["app/a", "app/b"], "and no letter about it");
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_131_a_store_keeps_the_letters_of_its_supervisor_and_descendants() {
    let fakes = FakeChildren::new();
    let (all, some, counted) =
        (DeadLetterStore::default(), DeadLetterStore::ring(1), DeadLetterStore::metrics_only());
    let a = strict("a").dead_letter_store(&some).dead_letter_store(&counted);
    let a = a.child(fakes.child("x")).child(fakes.child("y"));
    let ab = strict("ab").child(fakes.child("z"));
    let app = start(strict("app").dead_letter_store(&all).child(a).child(ab)).await;
    for child in ["x", "z", "y"] {
        fakes.end(child, End::Error).await;
    }
    app.stop("enough").await.unwrap();

    // A store can be read after its tree has ended.
    let targets = |entries: Vec<verger::dead_letter::DeadLetterEntry>| {
        let targets = entries.iter().map(|entry| entry.letter.target.to_string());
        targets.collect::<Vec<_>>()
    };
    assert_eq!(targets(all.entries()), ["app/a/x", "app/ab/z", "app/a/y"]);
    assert_eq!(targets(all.under("app/a")), ["app/a/x", "app/a/y"]);
    assert_eq!(targets(some.entries()), ["app/a/y"], "the other made room");
    assert_eq!(targets(counted.entries()), [""; 0]);
    let counts = [&all, &some, &counted].map(|store| {
        let counts = store.counts();
        (counts.total, counts.of(DeadLetterReason::GaveUp), counts.forgotten)
    });
    assert_eq!(counts, [(3, 3, 0), (2, 2, 1), (2, 2, 0)]);
}

#[tokio::test(start_paused = true)]
async fn kin_132_a_letter_without_a_message_can_not_be_replayed() {
    let fakes = FakeChildren::new();
    let store = DeadLetterStore::default();
    let conns = DynamicSupervisor::builder("conns").dead_letter_store(&store);
    let conns = conns.restarts(0, Duration::from_secs(60)).on_exhausted(OnExhausted::StopChild);
    let app = start(Supervisor::builder("app").child(conns)).await;
    let handle = app.supervisor("conns").await.unwrap();
    handle.start_child(fakes.child("conn")).await.unwrap();
    fakes.end("conn", End::Error).await;
    let entry = store.entry(1).expect("a letter");
    assert_eq!((entry.replays, entry.quarantined), (0, false));
    let error = store.replay(entry.id).unwrap_err();
    assert!(matches!(error, ReplayError::NoPayload { .. }), "{error}");
    assert_eq!(store.remove(entry.id).unwrap().letter.target.as_str(), "app/conns/conn#1");
    let error = store.replay(entry.id).unwrap_err();
    assert_eq!(error, ReplayError::UnknownEntry { id: entry.id });
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_store_outlives_its_tree_and_serves_the_next_tree() {
    let store = DeadLetterStore::default();
    for _ in 0..2 {
        let fakes = FakeChildren::new();
        let app = start(strict("app").dead_letter_store(&store).child(fakes.child("a"))).await;
        fakes.end("a", End::Error).await;
        app.stop("enough").await.unwrap();
    }
    let numbers: Vec<_> = store.entries().iter().map(|entry| entry.id.number()).collect();
    assert_eq!(numbers, [1, 2]);
}
