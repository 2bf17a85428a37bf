//! Dead letters: each supervisor has a channel of its own, and letters climb.

mod common;

use std::time::Duration;

use common::{End, World, settle};
use verger::{DeadLetterReason, Supervisor};

#[tokio::test(start_paused = true)]
async fn a_letter_climbs_to_every_supervisor_above_and_to_no_other() {
    let world = World::new();
    let minute = Duration::from_secs(60);
    let mid = Supervisor::builder("mid").restarts(0, minute).child(world.child("leaf"));
    let top = Supervisor::builder("top").restarts(0, minute).child(mid);
    let beside = Supervisor::builder("beside").child(world.child("other"));
    let app = Supervisor::builder("app").child(top).child(beside);
    let app = app.build().unwrap().start().await.unwrap();
    let mut at_app = app.dead_letters();
    let mut at_top = app.supervisor("top").await.unwrap().dead_letters();
    let mut at_mid = app.supervisor("top/mid").await.unwrap().dead_letters();
    let mut at_beside = app.supervisor("beside").await.unwrap().dead_letters();

    world.end("leaf", End::Error).await;
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
